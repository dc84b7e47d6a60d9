#!/usr/bin/env bash
# bench/extender/run.sh [options]: builds the Go programs of the bench into build/bench-go and runs it. `./dev bench` has built
# build/release and the control plane before it calls this. README.md in this folder explains the figures.
# Rows of docs/claims.md: T8, T10, T12.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build peers/extender=peer-extender extender
exec build/bench-go/extender "$@"
