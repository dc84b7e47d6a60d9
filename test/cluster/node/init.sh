#!/bin/bash
# init.sh FOLDER HOSTNAME CGROUP REAL-NODE: process 1 of a real node, in namespaces of its own: gives it its own /run, /var/lib, /var/log and
# /etc/kubernetes, and waits. Nothing of it is seen outside, and all of it goes with the last process in here. node.sh joins it to the
# cluster's network. CGROUP: it and what it starts can be frozen there.
set -euo pipefail
folder=$1 hostname=$2 cgroup=$3 pause=$4

echo 0 >"$cgroup/cgroup.procs"
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
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables # or a pod gets no answer from a Service's pod on the same bridge
touch /run/ready
exec "$pause" pause
