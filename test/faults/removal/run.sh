#!/usr/bin/env bash
# run.sh [--nightly] [--k8s 1.36|1.30] [--operator FILE]: install, enrol, upgrade and remove in two combinations of the switches, in all eight
# with --nightly; nothing may be left.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/test/faults/removal}
wrong() { echo "run.sh: $1 (usage: run.sh [--nightly] [--k8s 1.36|1.30] [--operator FILE])" >&2; exit 2; }
k8s=1.36 operator=''
while (($#)); do
  case $1 in
    --k8s) [[ $# -ge 2 ]] || wrong "$1 needs a value"; k8s=$2; shift 2 ;;
    --operator) [[ $# -ge 2 ]] || wrong "$1 needs a value"; operator=$(readlink -f "$2") || wrong "no file $2"; shift 2 ;;
    --nightly) export QM_NIGHTLY=1; shift ;;
    *) wrong "unknown argument '$1'" ;;
  esac
done
case $k8s in 1.36|1.30) ;; *) wrong "--k8s '$k8s' is not one of: 1.36, 1.30" ;; esac
for candidate in "$root/build/release/quartermaster" "$root/build/dev/quartermaster"; do [[ -n $operator || ! -x $candidate ]] || operator=$candidate; done
[[ -n $operator ]] || { echo "run.sh: no operator: ./dev build release" >&2; exit 1; }
"$root/test/cluster/build.sh" --k8s "$k8s" --tools etcd,kwok,helm,sim
# The Go that built the control plane, when the one on the PATH is too old to fetch it by itself.
go=go
if ! [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]]; then
  go=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -maxdepth 3 -path '*/go-1.*/bin/go' | sort -V | tail -n1)
fi
mkdir -p "$root/build/test"
(cd "$here" && GOWORK=off CGO_ENABLED=0 "$go" test -c -buildvcs=false -o "$root/build/test/removal.test" .)
cd "$here"
QM_K8S=$k8s QM_OPERATOR=$operator exec "$root/build/test/removal.test" -test.v -test.timeout 30m
