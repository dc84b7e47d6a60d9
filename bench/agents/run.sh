#!/usr/bin/env bash
# bench/agents/run.sh [options]: builds the Go program of the bench into build/bench-go and runs it. `./dev bench` has built build/release
# and the control plane before it calls this. README.md in this folder explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
[[ -e build/dev/nvml/libnvidia-ml.so.1 || " $* " == *" -standin"* || " $* " == *" --standin"* ]] ||
  { echo "run.sh: no stand-in for the card: ./dev build dev nvml_standin" >&2; exit 1; }
build agents
exec build/bench-go/agents "$@"
