#!/usr/bin/env bash
# run.sh: pods on a real node, kube-scheduler among them. `run.sh --help` says how it is used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/test/realnode}

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.36|1.30] [-run REGEX] [--operator FILE] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when this machine can
have no real node (it takes root and cgroups). Three to four minutes, most of it waiting for kubelets.
  -run REGEX      only tests whose name matches
  --operator      the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}
wrong() { echo "run.sh: $1 (see --help)" >&2; exit 2; }

run='' k8s=1.36
while (($#)); do
  case $1 in
    --k8s) [[ $# -ge 2 ]] || wrong "$1 needs a value"; k8s=$2; shift 2 ;;
    -run|--run) [[ $# -ge 2 ]] || wrong "$1 needs a value"; run=$2; shift 2 ;;
    --operator) [[ $# -ge 2 ]] || wrong "$1 needs a value"; QM_OPERATOR=$(readlink -f "$2") || wrong "no file $2"; export QM_OPERATOR; shift 2 ;;
    --cluster) [[ $# -ge 2 ]] || wrong "$1 needs a value"; export QM_REALNODE_CLUSTER=$2; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) wrong "unknown argument '$1'" ;;
  esac
done
case $k8s in 1.36|1.30) ;; *) wrong "--k8s '$k8s' is not one of: 1.36, 1.30" ;; esac

"$root/test/cluster/cluster.sh" node-check || exit 77
"$root/test/cluster/build.sh" --k8s "$k8s" --tools etcd,kwok,helm --real-node
# The Go that built the control plane, when the one on the PATH is too old to fetch it by itself.
go=go
if ! [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]]; then
  go=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -maxdepth 3 -path '*/go-1.*/bin/go' | sort -V | tail -n1)
fi
cd "$here"
go=$(command -v "$go")
export QM_K8S=$k8s GOWORK=off CGO_ENABLED=0 PATH=${go%/*}:$PATH
exec go test -buildvcs=false -count=1 -timeout 20m -parallel 3 -v . ${run:+-run "$run"}
