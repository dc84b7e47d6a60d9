#!/usr/bin/env bash
# go_test.sh sim|faults|admission|chart|monitoring|cluster/node|plugins: the Go tests that need no server, with the Go that built the control
# plane. They test the simulator, the fault kit, the rules for pods, the chart, its rules for Prometheus, and the code that makes images. Of
# the lane `plugins`, which is not run where there are no plugins, only that it compiles.
set -euo pipefail
. "$(dirname "$0")/cluster/go.sh"
cd "$(dirname "$0")/$1"
case $1 in
  monitoring) ../cluster/build.sh --k8s none --tools helm,prometheus; GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false -count=1 -v . ;;
  admission|chart) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false -count=1 -timeout 20m -v . ;;
  plugins) GOWORK=off CGO_ENABLED=0 "$go" vet ./... ;;
  faults) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false ./kit/... ;;
  *) GOWORK=off CGO_ENABLED=0 "$go" test -buildvcs=false ./... ;;
esac
