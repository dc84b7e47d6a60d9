#!/usr/bin/env bash
# run.sh: the image of the operator, and the operator as pods of it. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--cluster NAME]
Builds the image of build/release/quartermaster twice, in two folders, and reads it. Then installs the chart with it on two real nodes.
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when this machine can
have no real nodes (it takes root and cgroups) or make no image. Eight minutes, most of it waiting.
Also installs simulated nodes from the archive for clusters without a registry.
Also installs the console and a Prometheus and looks at the page with Chromium, where there are Chromium (QM_CHROMIUM) and the stand-in for
the card (QM_NVML, else build/dev/nvml).
  -run REGEX      only tests whose name matches
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}

cluster_variable=QM_IMAGE_CLUSTER
read_options "--k8s -run --cluster" "$@"
"$root/test/cluster/cluster.sh" node-check || exit 77
"$root/image/build.sh" --check || exit 77
[[ -x $root/build/release/quartermaster ]] || die "no program build/release/quartermaster: ./dev build release quartermaster"
build_cluster etcd,kwok,helm,sim,prometheus --real-node
run_tests image
