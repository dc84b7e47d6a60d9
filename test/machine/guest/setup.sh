#!/bin/bash
# setup.sh: makes the virtual machine a node when it starts: network, files of kubelet and containerd, and two cards that are stand-ins. It
# runs from the disk that the lane makes, mounted at /node; the file server there names the API server.
set -euo pipefail

modprobe -a overlay br_netfilter bridge veth nf_tables
ip link set lo up
ip link set eth0 up
ip address add 192.0.2.15/24 dev eth0
ip route add default via 192.0.2.1
echo 1 >/proc/sys/net/ipv4/ip_forward

# In the place of kube-proxy: the one Service that pods of this lane reach. QEMU's network knows this machine's address alone.
nft -f - <<NFT
table ip machine {
  chain received { type nat hook prerouting priority dstnat; ip daddr 10.96.0.1 tcp dport 443 dnat to $(</node/server); }
  chain own { type nat hook output priority -100; ip daddr 10.96.0.1 tcp dport 443 dnat to $(</node/server); }
  chain sent { type nat hook postrouting priority srcnat; ip saddr 198.18.1.0/24 oifname "eth0" masquerade; }
}
NFT

cp -r /node/files/. /
mkdir -p /etc/kubernetes/manifests /var/lib/cards
install -m 755 /node/bin/nvidia-container-runtime /usr/bin/
cp /node/cards/*.json /var/lib/cards/
mkdir /run/nvidia-standin.kept # the limits that the driver keeps
/node/node.sh /var/lib/cards /node/cards/libnvidia-ml.so.1 /node/cards/nvidia-smi
