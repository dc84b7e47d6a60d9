#!/usr/bin/env bash
# run.sh: a virtual machine as a node, with a kernel and systemd of its own. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--cluster NAME]
Boots a virtual machine with QEMU, without acceleration: Debian's cloud kernel, systemd, cgroup version 2, containerd and a kubelet. The
control plane runs next to it on this machine, and the chart's agent and plugin as pods in it, of the image of build/release/quartermaster.
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when this machine has no
QEMU (./dev setup --machine), no root, or can make no image. Five minutes, most of it computing.
  -run REGEX      only tests whose name matches
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up; the machine is booted again
The stand-in for the card is taken from QM_NVML, else from build/dev/nvml (./dev build dev nvml_standin nvml_smi mps_control).
H
}

cluster_variable=QM_MACHINE_CLUSTER
read_options "--k8s -run --cluster" "$@"
command -v qemu-system-x86_64 >/dev/null || { echo "not run: no qemu-system-x86_64: ./dev setup --machine installs it"; exit 77; }
((EUID == 0)) || { echo "not run: not root: the files of the machine's disk belong to root"; exit 77; }
"$root/image/build.sh" --check || exit 77
[[ -x $root/build/release/quartermaster ]] || die "no program build/release/quartermaster: ./dev build release quartermaster"
build_cluster etcd,kwok,helm,sim --real-node
QM_MACHINE=$("$here/disk.sh")
QM_IMAGE=$("$root/image/build.sh" | awk 'END { print $1 }')
QM_CONTAINERD=$(unit_home containerd)/bin
QM_KUBELET=$(program_path "$k8s" kubelet)
QM_REAL_NODE=$(unit_home node)/bin/real-node
export QM_MACHINE QM_IMAGE QM_CONTAINERD QM_KUBELET QM_REAL_NODE
. "$root/test/cluster/go.sh" # the tests call go
run_tests machine
