#!/usr/bin/env bash
# run.sh: a real Prometheus with the chart's rules, on the operator and two agents. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. About a minute.
The program under test is $QM_OPERATOR, else build/release/quartermaster, else build/dev/quartermaster.
QM_PROMETHEUS_OPERATOR=FOLDER also has a Prometheus whose configuration the Prometheus operator makes of the chart's monitors and rules. In the
folder: `operator`, its program, and `crds/`, its types.
H
}

read_options "--k8s -run" "$@"
build_cluster etcd,kwok,helm,sim,prometheus
run_tests monitoring/server
