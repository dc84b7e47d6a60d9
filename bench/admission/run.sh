#!/usr/bin/env bash
# bench/admission/run.sh [options]: builds the bench into build/bench-go and runs it. `./dev bench` has built the control plane before it calls
# this. README.md in this folder explains the figures; --help lists the options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
go=go
# Go before 1.21 cannot fetch the toolchain that go.mod asks for. test/cluster/build.sh has then put one next to the control plane.
if ! go version 2>/dev/null | grep -qE 'go1\.(2[1-9]|[3-9][0-9])'; then
  for candidate in "${XDG_CACHE_HOME:-$HOME/.cache}"/quartermaster/go-*/bin/go; do [[ -x $candidate ]] && go=$candidate; done
fi
command -v "$go" >/dev/null || { echo "run.sh: Go is not on the PATH" >&2; exit 1; }
mkdir -p build/bench-go
(cd bench && GOWORK=off "$go" build -trimpath -o ../build/bench-go/admission ./admission)
exec build/bench-go/admission "$@"
