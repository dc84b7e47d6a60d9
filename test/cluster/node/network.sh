#!/bin/bash
# network.sh GATEWAY SERVER NODES REAL-NODE: process 1 of the cluster's network, in namespaces of its own: makes the bridge that the real
# nodes are joined by, and waits. NODES: lines "POD-NETWORK ADDRESS", the way to the pods of each node. SERVER is the API server's address,
# which the door listens at. The machine's own network sees nothing of it.
set -euo pipefail
gateway=$1 server=$2 nodes=$3 pause=$4

mount -n --make-rprivate /
mount -n -t proc proc /proc
mount -n -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
ip address add "$server/32" dev lo
ip link add name nodes type bridge
ip address add "$gateway" dev nodes
ip link set nodes up
echo 0 >/proc/sys/net/bridge/bridge-nf-call-iptables # frames between nodes are none of this namespace's business
while read -r network address; do ip route add "$network" via "$address"; done <<<"$nodes"
touch /run/ready
exec "$pause" pause
