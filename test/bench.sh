#!/usr/bin/env bash
# bench.sh NAME: the short form of a bench. It shows that the bench runs, does its work, and gives every figure; no time is judged.
# `./dev test` has built the programs before it calls this.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = micro ]; then (. test/cluster/go.sh && cd bench && go test ./figures ./micro ./sync/load ./extender); fi
exec bench/run.sh "$1" --short
