#!/usr/bin/env bash
# bench/enrolment/run.sh [options]: builds the Go programs of the bench into build/bench-go and runs it. `./dev bench` has built
# build/release and the control plane before it calls this. README.md in this folder explains the figures.
# Rows of docs/claims.md: T16.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
build peers/operator=peer-operator enrolment
(cd bench && go test ./enrolment >/dev/null) || { echo "run.sh: the witness does not pass its own test (cd bench && go test ./enrolment)" >&2; exit 1; }
exec build/bench-go/enrolment "$@"
