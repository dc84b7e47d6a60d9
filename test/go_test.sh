#!/usr/bin/env bash
# go_test.sh sim|faults|admission|chart|monitoring|mutants|grpc|cluster/node|release/scripts|plugins: the Go tests that need no server. They test
# the simulator, the fault kit, the rules for pods, the chart, its rules for Prometheus, the list of mutants, the agent's gRPC, the code that makes
# images, and which packages a release takes and what it signs. Of the lane `plugins`, which is not run where there are no plugins, only that it
# compiles.
set -euo pipefail
cd "$(dirname "$0")"
folder=$1
[[ $1 != faults ]] || folder=faults/kit
[[ $1 != monitoring ]] || cluster/build.sh --k8s none --tools helm,prometheus
./compile.sh "./$folder"
[[ $1 != plugins ]] || exit 0
program=$PWD/../build/test/$folder.test
cd "$folder"
# Those that end in _long are in --all alone, which sets QM_LONG (test/cluster/lane.sh).
exec "$program" -test.v -test.run "${QM_RUN:-.}" -test.timeout 20m -test.skip "$([[ -n ${QM_LONG:-} ]] && echo '^$' || echo '_long$')"
