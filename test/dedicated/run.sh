#!/usr/bin/env bash
# run.sh: how pods that ask for accelerators find their scheduler, on a real API server. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. A few minutes.
  -run REGEX      only tests whose name matches
  --cluster NAME  use this cluster (./dev cluster up), start it when it is not there, and leave it up
H
}

cluster_variable=QM_DEDICATED_CLUSTER
read_options "--k8s -run --cluster" "$@"
build_cluster etcd,kwok,helm
run_tests dedicated
