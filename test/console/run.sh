#!/usr/bin/env bash
# run.sh: the console on a real API server, asked with real tokens of two namespaces. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Half a minute.
The program under test is $QM_OPERATOR, else build/release/quartermaster, else build/dev/quartermaster.
H
}

read_options "--k8s -run" "$@"
build_cluster etcd,helm,sim
run_tests console/server
