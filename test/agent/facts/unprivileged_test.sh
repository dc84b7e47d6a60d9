#!/usr/bin/env bash
# unprivileged_test.sh PROGRAM LIBRARY: the agent's checks as its DaemonSet makes them. The program is user 65531 without
# a capability, and sees dev, etc, run and usr of a machine with the stand-in for the card. Exit code 77: this machine
# cannot run it.
# Rows of docs/claims.md: S5.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=${here%/test/agent/facts}
program=$(readlink -f "$1") library=$(readlink -f "$2")
((EUID == 0)) || { echo "not run: not root"; exit 77; }
unshare --mount true 2>/dev/null || { echo "not run: no right to make namespaces (CAP_SYS_ADMIN)"; exit 77; }
command -v jq >/dev/null || { echo "not run: no jq"; exit 77; }
grep -qw overlay /proc/filesystems || { echo "not run: no overlay file system"; exit 77; }

if [[ ${3:-} != inside ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  chmod 755 "$folder"
  cp "$root/test/nvml/fixtures/h100x8.json" "$folder/node.json"; cp "$root/test/nvml/fixtures/models.json" "$folder/"
  cp "$program" "$folder/program"; cp "$library" "$folder/library" # the build folder may lie below /run, or be root's
  FOLDER=$folder unshare --mount "$0" "$1" "$2" inside
  exit 0
fi

mount -n --make-rprivate /
mount -n -t tmpfs -o mode=755 tmpfs /run
"$root/test/nvml/node.sh" "$FOLDER" "$FOLDER/library" /bin/true
node=$FOLDER/node
mkdir -p "$node"/{dev,etc/containerd,etc/cdi,run,usr,var/lib/kubelet/device-plugins} /run/containerd /run/cdi /run/systemd/units
touch /usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8 /run/containerd/containerd.sock \
  "$node/var/lib/kubelet/device-plugins/kubelet.sock"
chmod 600 /run/containerd/containerd.sock
ln -s 0123 /run/systemd/units/invocation:nvidia-fabricmanager.service
touch /usr/bin/nvidia-container-runtime
cat >"$node/etc/containerd/config.toml" <<'CONFIG'
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
CONFIG
for name in dev run usr; do mount -n --rbind "/$name" "$node/$name"; done
seen() {
  setpriv --reuid 65531 --regid 65531 --clear-groups --bounding-set -all --inh-caps -all --no-new-privs \
    "$FOLDER/program" agent --print --node-root "$node"
}

failed=0
expect() { # expect CHECK STATE FOUND
  local is
  is=$(jq -r --arg check "$1" '.preflight[] | select(.check == $check) | .state + " " + .found' <<<"$report")
  if [[ $is == "$2 $3" ]]; then echo "passed: $1 is $is"; else echo "FAILED: $1: expected '$2 $3', is '$is'"; failed=1; fi
}
report=$(seen)
expect cards ok 8
expect driver ok 550.90.07
expect driver_library ok 550.90.07
expect driver_branch ok 550.90.07
expect device_nodes ok 9
expect nvidia_uvm ok /dev/nvidia-uvm
expect persistence ok on
expect fabric ok completed
expect container_toolkit ok 1.17.8
expect container_runtime ok containerd
expect default_runtime ok nvidia
expect visible_devices warning "containers get the cards that NVIDIA_VISIBLE_DEVICES names"
expect cdi ok none
expect kubelet_device_plugins ok /var/lib/kubelet/device-plugins/kubelet.sock
expect kubelet_pod_resources unknown "/var/lib/kubelet/pod-resources of the node is not mounted at $node/var/lib/kubelet/pod-resources"
[[ $(jq '.cards | length' <<<"$report") == 8 ]] || { echo "FAILED: not 8 cards"; failed=1; }

chmod 660 /dev/nvidia3
rm /dev/nvidia5
chmod 600 "$node/etc/containerd/config.toml"
report=$(seen)
expect device_nodes failed "missing: /dev/nvidia5"
expect default_runtime unknown "/etc/containerd/config.toml cannot be read: Permission denied"
exit "$failed"
