#!/usr/bin/env bash
# run.sh: the extender as the chart installs it, on a real control plane. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--operator FILE] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Two minutes.
  -run REGEX      only tests whose name matches
  --operator      the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}

cluster_variable=QM_PLACEMENTS_CLUSTER
read_options "--k8s -run --operator --cluster" "$@"
build_cluster etcd,kwok,helm
run_tests placements
