#!/usr/bin/env bash
# run.sh: the agent for static pods on three simulated control-plane nodes. `run.sh --help` says how it is used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/test/static_pod}

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.36|1.30] [-run REGEX] [--operator FILE]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Needs root (mounts of its own).
Two minutes: the first test and a third of the others, another third each day; all of them, six minutes, with QM_NIGHTLY=1.
  -run REGEX   only tests whose name matches
  --operator   the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
H
}
wrong() { echo "run.sh: $1 (see --help)" >&2; exit 2; }

run='' k8s=1.36
while (($#)); do
  case $1 in
    --k8s) [[ $# -ge 2 ]] || wrong "$1 needs a value"; k8s=$2; shift 2 ;;
    -run|--run) [[ $# -ge 2 ]] || wrong "$1 needs a value"; run=$2; shift 2 ;;
    --operator) [[ $# -ge 2 ]] || wrong "$1 needs a value"; QM_OPERATOR=$(readlink -f "$2") || wrong "no file $2"; export QM_OPERATOR; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) wrong "unknown argument '$1'" ;;
  esac
done
case $k8s in 1.36|1.30) ;; *) wrong "--k8s '$k8s' is not one of: 1.36, 1.30" ;; esac

"$root/test/cluster/build.sh" --k8s "$k8s" --tools etcd,helm
# The Go that built the control plane, when the one on the PATH is too old to fetch it by itself.
go=go
if ! [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]]; then
  go=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -maxdepth 3 -path '*/go-1.*/bin/go' | sort -V | tail -n1)
fi
cd "$here"
QM_K8S=$k8s GOWORK=off CGO_ENABLED=0 exec "$go" test -buildvcs=false -count=1 -timeout 30m -v . ${run:+-run "$run"}
