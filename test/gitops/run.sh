#!/usr/bin/env bash
# run.sh: the chart kept by Flux. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: QM_GITOPS=FOLDER run.sh [-run REGEX] [--cluster NAME]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when there is nothing to
run: no ready program in the folder, no right to make a real node, no image. README.md names the program. Two minutes.
  -run REGEX      only tests whose name matches
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
QM_GITOPS_WINDOW=4m makes the first time without a write longer (16s).
H
}

cluster_variable=QM_GITOPS_CLUSTER
read_options "-run --cluster" "$@"
[[ -n ${QM_GITOPS:-} ]] || { echo "not run: QM_GITOPS names no folder with ready programs (test/gitops/README.md)"; exit 77; }
[[ -f $QM_GITOPS/helm-controller && -x $QM_GITOPS/helm-controller ]] || wrong "QM_GITOPS: no program $QM_GITOPS/helm-controller that can be started"
[[ -d $QM_GITOPS/crds/flux ]] || wrong "QM_GITOPS: no folder $QM_GITOPS/crds/flux"
QM_GITOPS=$(readlink -f "$QM_GITOPS"); export QM_GITOPS
"$root/test/cluster/cluster.sh" node-check || exit 77
"$root/image/build.sh" --check || exit 77
[[ -x $root/build/release/quartermaster ]] || die "no program build/release/quartermaster: ./dev build release quartermaster"
QM_IMAGE=$("$root/image/build.sh" | awk 'END { print $1 }'); export QM_IMAGE
QM_IMAGE_TAG=$(<"$root/VERSION"); export QM_IMAGE_TAG
build_cluster etcd,kwok,helm,sim --real-node
run_tests gitops
