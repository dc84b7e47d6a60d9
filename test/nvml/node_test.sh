#!/usr/bin/env bash
# node_test.sh LIBRARY NVIDIA-SMI: node.sh in a mount namespace, and that nothing of it is seen outside. Exit code 77:
# this machine cannot run it.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
library=$1 smi=$2
((EUID == 0)) || { echo "not run: not root"; exit 77; }
unshare --mount true 2>/dev/null || { echo "not run: no right to make namespaces (CAP_SYS_ADMIN)"; exit 77; }
command -v jq >/dev/null || { echo "not run: no jq"; exit 77; }
grep -qw overlay /proc/filesystems || { echo "not run: no overlay file system"; exit 77; }

if [[ ${3:-} != inside ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  outside() {
    ls -d /dev/nvidia* /proc/driver/nvidia* /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libnvidia-ml* \
      /run/nvidia-standin* 2>/dev/null | sort
    sha256sum </etc/ld.so.cache
  }
  before=$(outside)
  cp "$here/fixtures/a100_mig.json" "$folder/node.json"; cp "$here/fixtures/models.json" "$folder/"
  FOLDER=$folder unshare --mount "$0" "$library" "$smi" inside
  [[ $(outside) == "$before" ]] ||
    { echo "FAILED: something was left outside:"; diff <(echo "$before") <(outside); exit 1; }
  echo "passed: nothing was left outside"
  exit 0
fi

mount -n --make-rprivate /
library_copy=$FOLDER/library smi_copy=$FOLDER/smi # the build folder may lie below /run
cp "$library" "$library_copy"; cp "$smi" "$smi_copy"
mount -n -t tmpfs tmpfs /run
"$here/node.sh" "$FOLDER" "$library_copy" "$smi_copy"

expect() { # expect WHAT EXPECTED ACTUAL
  [[ $2 == "$3" ]] || { printf 'FAILED: %s: expected "%s", is "%s"\n' "$1" "$2" "$3"; exit 1; }
  echo "passed: $1"
}
expect "numbers of the device nodes" "c3:0 c3:1 c3:fe c3:ff" \
  "$(stat -c '%t:%T' /dev/nvidia0 /dev/nvidia1 /dev/nvidia-modeset /dev/nvidiactl | paste -sd' ')"
expect "an old device node" "1:3" "$(stat -c '%t:%T' /dev/null)"
expect "a device node has no driver" "No such device or address" \
  "$( (: </dev/nvidia0) 2>&1 | grep -oE 'No such device or address|Operation not permitted')"
expect "the driver's version" 550.54.15 "$(grep -oE '[0-9]+\.[0-9.]+' /proc/driver/nvidia/version)"
expect "the second card's UUID" GPU-a1160000-0000-4000-8000-000000000001 \
  "$(sed -n 's/^GPU UUID: *\t *//p' /proc/driver/nvidia/gpus/0000:47:00.0/information)"
expect "capability of GPU instance 11" 102 \
  "$(sed -n 's/^DeviceFileMinor: //p' /proc/driver/nvidia/capabilities/gpu0/mig/gi11/access)"
expect "its line in mig-minors" "gpu0/gi11/access 102" "$(grep '^gpu0/gi11/access' /proc/driver/nvidia-caps/mig-minors)"
expect "its device node" 1fe:66 "$(stat -c '%t:%T' /dev/nvidia-caps/nvidia-cap102)"
expect "the driver of a card" nvidia "$(basename "$(readlink /sys/bus/pci/devices/0000:07:00.0/driver)")"
expect "the PCI class" 0x030200 "$(cat /sys/bus/pci/devices/0000:07:00.0/class)"
expect "nvidia-smi -L" 5 "$(nvidia-smi -L | wc -l)"
jq '.cards[1].temperature_c = 91' "$FOLDER/node.json" >"$FOLDER/new.json" && mv "$FOLDER/new.json" "$FOLDER/node.json"
expect "a replaced fixture" 91 "$(nvidia-smi -i 1 --query-gpu=temperature.gpu --format=csv,noheader)"
