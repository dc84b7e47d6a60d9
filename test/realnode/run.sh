#!/usr/bin/env bash
# run.sh: pods on a real node, kube-scheduler among them. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--operator FILE] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when this machine can
have no real node (it takes root and cgroups). A minute; all of it three to four, most of it waiting for kubelets.
  -run REGEX      only tests whose name matches
  --operator      the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}

cluster_variable=QM_REALNODE_CLUSTER
read_options "--k8s -run --operator --cluster" "$@"
"$root/test/cluster/cluster.sh" node-check || exit 77
build_cluster etcd,kwok,helm --real-node
. "$root/test/cluster/go.sh" # the tests call go
run_tests realnode -test.parallel 3
