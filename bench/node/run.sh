#!/usr/bin/env bash
# bench/node/run.sh [options]: builds the Go program of the bench into build/bench-go and runs it. `./dev bench` has built build/release
# and the control plane before it calls this. Exit code 77 and one line where this machine can have no real node. README.md in this folder
# explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
test/cluster/cluster.sh node-check || exit 77
for program in libnvidia-ml.so.1 nvidia-smi nvidia-cuda-mps-control; do
  [[ -e build/dev/nvml/$program || " $* " == *" -standin"* || " $* " == *" --standin"* ]] ||
    { echo "run.sh: no stand-in for the card: ./dev build dev nvml_standin nvml_smi mps_control" >&2; exit 1; }
done
test/cluster/build.sh --k8s 1.37 --tools etcd,kwok --real-node
build node
exec build/bench-go/node "$@"
