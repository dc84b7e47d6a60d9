#!/usr/bin/env bash
# bench/share/run.sh [options]: builds the Go program of the bench into build/bench-go and runs it. `./dev bench` has built build/release
# and the control plane before it calls this. README.md in this folder explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
for program in libnvidia-ml.so.1 nvidia-cuda-mps-control; do
  [[ -e build/dev/nvml/$program || " $* " == *" -standin"* || " $* " == *" --standin"* ]] ||
    { echo "run.sh: no stand-in for the card: ./dev build dev nvml_standin mps_control" >&2; exit 1; }
done
build share
exec build/bench-go/share "$@"
