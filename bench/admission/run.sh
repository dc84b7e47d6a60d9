#!/usr/bin/env bash
# bench/admission/run.sh [options]: builds the bench into build/bench-go and runs it. `./dev bench` has built the control plane before it calls
# this. README.md in this folder explains the figures; --help lists the options.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build admission
exec build/bench-go/admission "$@"
