#!/usr/bin/env bash
# bench/webhook/run.sh [options]: builds the Go programs of the bench into build/bench-go and runs it. `./dev bench` has built
# build/release before it calls this. README.md in this folder explains the figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
go=go
# Go before 1.21 cannot fetch the toolchain that go.mod asks for. test/cluster/build.sh has then put one next to the control plane.
if ! go version 2>/dev/null | grep -qE 'go1\.(2[1-9]|[3-9][0-9])'; then
  for candidate in "${XDG_CACHE_HOME:-$HOME/.cache}"/quartermaster/go-*/bin/go; do [[ -x $candidate ]] && go=$candidate; done
fi
command -v "$go" >/dev/null || { echo "run.sh: Go is not on the PATH" >&2; exit 1; }
mkdir -p build/bench-go
(cd bench && GOWORK=off "$go" build -trimpath -o ../build/bench-go/peer-webhook ./peers/webhook && GOWORK=off "$go" build -trimpath -o ../build/bench-go/webhook ./webhook)
exec build/bench-go/webhook "$@"
