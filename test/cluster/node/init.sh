#!/bin/bash
# init.sh FOLDER HOSTNAME ADDRESS SERVICES REAL-NODE: process 1 of the real node, in namespaces of its own: gives it its own /run, /var/lib, /var/log
# and /etc/kubernetes, its addresses, and waits. Nothing of it is seen outside, and all of it goes with the last process in here.
set -euo pipefail
folder=$1 hostname=$2 address=$3 services=$4 pause=$5

mount -n --make-rprivate /     # -n: nothing in the machine's /run either
mount -n -t proc proc /proc
mount -n -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/etc/upper /run/etc/work /run/lock
mount -t overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work overlay /etc
mkdir -p /etc/kubernetes /etc/cdi
rm -f /etc/resolv.conf; echo "nameserver 192.0.2.53" >/etc/resolv.conf # the machine's may point into its own /run; no server answers here
mount --bind "$folder/etc/kubernetes" /etc/kubernetes
mount --bind "$folder/var/lib" /var/lib
mount --bind "$folder/var/log" /var/log
mount --make-rshared / # for pods that mount things for others

# A kubelet sets these for the whole kernel, so it gets copies.
mkdir -p /run/sysctl
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [[ -f /proc/sys/$name ]] || continue
  cat "/proc/sys/$name" >"/run/sysctl/${name//\//.}"
  mount --bind "/run/sysctl/${name//\//.}" "/proc/sys/$name"
done

hostname "$hostname"
ip link set lo up
ip address add "$address/32" dev lo       # a kubelet refuses loopback addresses
ip route add local "$services" dev lo     # addresses of Services: only listeners on this node answer
touch /run/ready
exec "$pause" pause
