#!/usr/bin/env bash
# bench/sync/run.sh sync|idle|load [options]: builds the Go programs of the bench into build/bench-go and runs the verb.
# `./dev bench` has built build/release and the control plane before it calls this. README.md in this folder explains the figures.
# Rows of docs/claims.md: T1, T2, T3, T4, T5, T6, T7, T18.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build peers/informer=informer sync
exec build/bench-go/sync "$@"
