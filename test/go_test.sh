#!/usr/bin/env bash
# go_test.sh sim|faults|admission|chart|cluster/node: the Go tests that need no server, with the Go that built the control plane. They
# test the simulator, the fault kit, the rules for pods, the chart, and the code that makes images.
set -euo pipefail
cd "$(dirname "$0")/$1"
go=go
if ! [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]]; then
  go=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -maxdepth 3 -path '*/go-1.*/bin/go' | sort -V | tail -n1)
fi
case $1 in
  admission|chart) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false -count=1 -timeout 20m -v . ;;
  faults) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false ./kit/... ;;
  *) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false ./... ;;
esac
