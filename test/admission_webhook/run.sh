#!/usr/bin/env bash
# run.sh: the rules for pods on a real API server, by the admission webhook, and its certificates under load. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.30|1.36|1.37] [-run REGEX] [--operator FILE] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. About four minutes.
  -run REGEX      only tests whose name matches
  --operator FILE the program under test (default: build/release/quartermaster)
  --cluster NAME  use this cluster (./dev cluster up), start it when it is not there, and leave it up
The C++ form that answers are held against is $QM_JUDGE, else build/dev/admission_judge.
H
}

k8s=1.30
cluster_variable=QM_ADMISSION_CLUSTER
read_options "--k8s -run --operator --cluster" "$@"
[[ -n ${QM_OPERATOR:-} || -x $root/build/release/quartermaster ]] || wrong "no operator: ./dev build release"
build_cluster etcd,kwok,helm
run_tests admission_webhook
