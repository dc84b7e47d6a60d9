#!/usr/bin/env bash
# run.sh: real kube-schedulers with the files we render and judge. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--operator FILE] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. One minute;
three with QM_NIGHTLY=1, which takes all files instead of a third of them.
  -run REGEX      only tests whose name matches
  --operator      the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}

cluster_variable=QM_SCHEDULER_CLUSTER
read_options "--k8s -run --operator --cluster" "$@"
build_cluster etcd,kwok
run_tests scheduler_config -test.parallel 4
