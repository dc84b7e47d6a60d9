#!/usr/bin/env bash
# bench/webhook/run.sh [options]: builds the Go programs of the bench into build/bench-go and runs it. `./dev bench` has built
# build/release before it calls this. README.md in this folder explains the figures.
# Rows of docs/claims.md: T13, T14.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build peers/webhook=peer-webhook webhook
exec build/bench-go/webhook "$@"
