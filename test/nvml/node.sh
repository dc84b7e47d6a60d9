#!/usr/bin/env bash
# node.sh FOLDER LIBRARY NVIDIA-SMI: makes the mount namespace it runs in look like a machine with the NVIDIA driver.
# Everything it makes goes with that namespace. `node.sh --help` has the details.
set -euo pipefail

usage() {
  cat <<'H'
usage: node.sh FOLDER LIBRARY NVIDIA-SMI
Run it as root in a mount namespace with its own /run, as the test cluster's real node has (or unshare --mount and a
tmpfs on /run).
  FOLDER      has node.json, a fixture, and models.json. It is bound to /run/nvidia-standin, so a file that is
              replaced in FOLDER is seen inside.
  LIBRARY     libnvidia-ml.so.1, put into /usr/lib/x86_64-linux-gnu; NVIDIA-SMI into /usr/bin, with nvidia-cuda-mps-control from its folder
Made in addition: /dev/nvidia*, /dev/nvidia-caps, /proc/driver/nvidia, /proc/driver/nvidia-caps, /proc/devices,
/sys/bus/pci/devices and /etc/ld.so.cache. Device nodes have the real numbers, so opening one fails with ENXIO: no
driver is behind it. They stay as they are when the fixture changes; run node.sh again in a new namespace.
H
}

fail() { printf 'node.sh: %s\n' "$*" >&2; exit 1; }

uvm_major=511 # dynamic in the real driver; /proc/devices names them
caps_major=510
tab=$'\t'
stage=/run/nvidia-standin.stage

# field JQ: of the fixture, each card merged with its model and the defaults, in the order of addresses.
field() {
  jq -r --slurpfile models "$folder/models.json" '
    . as $node | .cards |= (map($models[0][.model // ""] // {} + {}) as $facts
      | to_entries | map($facts[.key] + ($node.defaults // {}) + .value) | sort_by(.pci_bus_id)) | '"$1" \
    "$folder/node.json"
}

# own_copy FOLDER: a writable layer over a folder of the machine.
own_copy() {
  local name=${1//\//.}
  mkdir -p "$stage/upper$name" "$stage/work$name"
  mount -n -t overlay -o "lowerdir=$1,upperdir=$stage/upper$name,workdir=$stage/work$name" overlay "$1"
}

# own_tmpfs FOLDER: a tmpfs with what is in the folder: links and devices copied, folders and files bound.
own_tmpfs() {
  local old=$stage/old${1//\//.} entry name copied=()
  mkdir -p "$old"
  mount -n --rbind "$1" "$old"
  mount -n -t tmpfs -o mode=755 tmpfs "$1"
  for entry in "$old"/* "$old"/.[!.]*; do
    name=$1/${entry##*/}
    if [[ -L $entry || -c $entry || -b $entry || -p $entry ]]; then copied+=("$entry")
    elif [[ -d $entry ]]; then mkdir -p "$name"; mount -n --rbind "$entry" "$name"
    elif [[ -e $entry ]]; then : >"$name"; mount -n --bind "$entry" "$name"
    fi
  done
  ((${#copied[@]} == 0)) || cp -a "${copied[@]}" "$1/"
}

node() { # node PATH MAJOR MINOR MODE
  [[ -e $1 ]] || mknod "$1" c "$2" "$3"
  chmod "$4" "$1"
}

make_devices() {
  local minor
  own_tmpfs /dev
  for minor in $(field '.cards[] | select(.lost | not) | .minor'); do node "/dev/nvidia$minor" 195 "$minor" 666; done
  node /dev/nvidiactl 195 255 666
  node /dev/nvidia-modeset 195 254 666
  node /dev/nvidia-uvm $uvm_major 0 666
  node /dev/nvidia-uvm-tools $uvm_major 1 666
}

make_proc() {
  local version minor address name uuid
  own_tmpfs /proc/driver
  mkdir -p /proc/driver/nvidia/gpus
  version=$(field .driver.version)
  printf 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  stand-in\nGCC version:  none\n' "$version" \
    >/proc/driver/nvidia/version
  printf '%s\n' 'ResmanDebugLevel: 4294967295' 'ModifyDeviceFiles: 1' 'DeviceFileUID: 0' 'DeviceFileGID: 0' \
    'DeviceFileMode: 438' >/proc/driver/nvidia/params
  field '.cards[] | select(.lost | not) | [.minor, .pci_bus_id, .name, .uuid] | @tsv' |
    while IFS=$'\t' read -r minor address name uuid; do
      mkdir -p "/proc/driver/nvidia/gpus/$address"
      printf '%s\n' "Model: $tab$tab $name" "IRQ:   $tab$tab 0" "GPU UUID: $tab $uuid" "Bus Type: $tab PCIe" \
        "Bus Location: $tab $address" "Device Minor: $tab $minor" "GPU Excluded:$tab No" \
        >"/proc/driver/nvidia/gpus/$address/information"
    done
  { cat /proc/devices | sed '/^$/,$d'
    printf '%3d %s\n' 195 nvidia 195 nvidiactl 195 nvidia-modeset $uvm_major nvidia-uvm $caps_major nvidia-caps
    echo; sed '1,/^$/d' /proc/devices; } >"$stage/devices"
  mount -n --bind "$stage/devices" /proc/devices
}

# capability PATH MINOR MODE: its file in /proc/driver/nvidia/capabilities and its device node.
capability() {
  local file=/proc/driver/nvidia/capabilities/$1
  mkdir -p "${file%/*}"
  printf 'DeviceFileMinor: %s\nDeviceFileMode: %s\nDeviceFileModify: 1\n' "$2" "$((8#$3))" >"$file"
  node "/dev/nvidia-caps/nvidia-cap$2" $caps_major "$2" "$3"
}

# The driver numbers capabilities of all possible instances: 9 per GPU instance, 15 GPU instances per card, from 3 on.
make_capabilities() {
  local card gpu compute first
  mkdir -p /proc/driver/nvidia-caps /dev/nvidia-caps
  {
    printf 'config 1\nmonitor 2\n'
    for ((card = 0; card < 32; card++)); do for ((gpu = 0; gpu < 15; gpu++)); do
      first=$((3 + (card * 15 + gpu) * 9))
      echo "gpu$card/gi$gpu/access $first"
      for ((compute = 0; compute < 8; compute++)); do echo "gpu$card/gi$gpu/ci$compute/access $((first + 1 + compute))"; done
    done; done
  } >/proc/driver/nvidia-caps/mig-minors
  capability mig/config 1 400
  capability mig/monitor 2 444
  field '.cards[] | select(.mig.enabled == true) | .minor as $card | .mig.instances[]? | .id as $gpu | .compute[] |
    [$card, $gpu, .id] | @tsv' |
    while IFS=$'\t' read -r card gpu compute; do
      first=$((3 + (card * 15 + gpu) * 9))
      capability "gpu$card/mig/gi$gpu/access" "$first" 444
      capability "gpu$card/mig/gi$gpu/ci$compute/access" $((first + 1 + compute)) 444
    done
}

# What programs read of a card's PCI device: class, ids, NUMA node and 64 bytes of configuration space.
make_pci() {
  local address device class numa folder_of
  [[ -d /sys/bus/pci/devices ]] || return 0
  own_tmpfs /sys/bus/pci/devices
  field '.cards[] | select(.lost | not) |
    [.pci_bus_id, .pci_device_id, .pci_class // "0x030200", .numa_node // -1] | @tsv' |
    while IFS=$'\t' read -r address device class numa; do
      folder_of=/sys/bus/pci/devices/$address
      rm -rf "$folder_of"; mkdir "$folder_of"
      echo "0x${device:6:4}" >"$folder_of/vendor"
      echo "0x${device:2:4}" >"$folder_of/device"
      echo "$class" >"$folder_of/class"
      echo "$numa" >"$folder_of/numa_node"
      ln -s ../../../../bus/pci/drivers/nvidia "$folder_of/driver"
      printf '0x%016x 0x%016x 0x%016x\n' 0 0 0 >"$folder_of/resource"
      printf '%b' "\x${device:8:2}\x${device:6:2}\x${device:4:2}\x${device:2:2}" >"$folder_of/config"
      head -c 252 /dev/zero >>"$folder_of/config"
    done
}

place_programs() { # place_programs LIBRARY NVIDIA-SMI
  local version libraries=/usr/lib/x86_64-linux-gnu
  own_copy $libraries
  own_copy /usr/bin
  version=$(field .driver.version)
  install -m 755 "$1" "$libraries/libnvidia-ml.so.$version"
  ln -sf "libnvidia-ml.so.$version" $libraries/libnvidia-ml.so.1
  install -m 755 "$2" /usr/bin/nvidia-smi
  [[ ! -e ${2%/*}/nvidia-cuda-mps-control ]] || install -m 755 "${2%/*}/nvidia-cuda-mps-control" /usr/bin/
  if [[ -f /etc/ld.so.cache ]] && ldconfig -C "$stage/ld.so.cache" 2>/dev/null; then
    mount -n --bind "$stage/ld.so.cache" /etc/ld.so.cache
  fi
}

[[ ${1:-} != --help ]] || { usage; exit 0; }
(($# == 3)) || { usage >&2; exit 2; }
((EUID == 0)) || fail "not root; mounts and device nodes need it"
folder=$(readlink -f "$1")
[[ -f $folder/node.json && -f $folder/models.json ]] || fail "$folder needs node.json and models.json"
mountpoint -q /run ||
  fail "/run is no mount of its own; make one (mount -t tmpfs tmpfs /run) in a mount namespace of its own"
[[ ! -e $stage ]] || fail "$stage exists: this namespace has a driver already"

mount -n --make-rprivate / # nothing leaves the namespace
mkdir -p "$stage" /run/nvidia-standin
mount -n -t tmpfs -o mode=755 tmpfs "$stage"
mount -n --bind "$folder" /run/nvidia-standin
make_devices
make_proc
make_capabilities
make_pci
place_programs "$2" "$3"
mount -n --make-rshared / # as systemd leaves it
