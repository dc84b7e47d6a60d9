#!/usr/bin/env bash
# bench/sync/run.sh sync|idle|load [options]: builds the Go programs of the bench into build/bench-go and runs the verb.
# `./dev bench` has built build/release and the control plane before it calls this. README.md in this folder explains the figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build peers/informer=informer sync
exec build/bench-go/sync "$@"
