#!/usr/bin/env bash
# bench/card/run.sh [options]: builds the Go program of the bench into build/bench-go and runs it. `./dev bench` has built what it runs on a card
# before it calls this. Exit code 77 and one line where this machine has no card. README.md in this folder explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
[[ -e /dev/nvidiactl || " $* " == *" -dry "* || " $* " == *" --dry "* || " $* " == *" -h"* || " $* " == *" --help "* ]] ||
  { echo "not run: no card of NVIDIA here (/dev/nvidiactl); ./dev bench card --dry plays one"; exit 77; }
build card
exec build/bench-go/card "$@"
