#!/usr/bin/env bash
# bench/usage/run.sh [options]: builds the Go program of the bench into build/bench-go and runs it. `./dev bench` has built build/release
# and the control plane before it calls this. README.md in this folder explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build usage
exec build/bench-go/usage "$@"
