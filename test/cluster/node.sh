# node.sh: the real nodes, real-1 to real-4, next to KWOK's nodes: containerd, runc, a kubelet and kube-proxy, each node in its own mount,
# network, pid and host name namespaces. Sourced by cluster.sh. All functions except node_obstacle run in the cluster's folder, with
# cluster.env sourced.
#
# The nodes are joined by a bridge in a network namespace of the cluster's own (component `network`, node/network.sh). The machine's network
# is not touched: sockets lead in and out (node/door.go). Component `node` is the parent of process 1 of real-1's namespaces; `containerd`,
# `kubelet` and `kube-proxy` are started into them. Those of real-2 are node-2, containerd-2 and so on. real-1 writes into node/ of the
# cluster's folder, real-2 into node-2/: etc/kubernetes, var/lib and var/log are at their usual places there.
#
# I is the number of a node. Its suffix is empty for real-1, and -2 for real-2.

most_nodes=4
node_parts=(node containerd kubelet kube-proxy) # of each node, in start order
node_network=198.18.0.0/15   # RFC 2544: nodes are 198.18.0.I, the pods of node I 198.18.I.0/24; every cluster has the same, in its own network
gateway=198.18.0.254         # the bridge
server_address=192.0.2.1     # the API server's for nodes and pods: the door to the machine's loopback listens there
dns_address=10.96.0.10
cni_plugins=/usr/lib/cni
pause_image=quartermaster.test/pause:1
dns_image=quartermaster.test/coredns:1

real_node() { echo "$(unit_home node)/bin/real-node"; }
node_name() { echo "real-$1"; }
node_ip() { echo "198.18.0.$1"; }
pod_network() { echo "198.18.$1.0/24"; }
suffix() { if (($1 > 1)); then echo "-$1"; fi; }
node_number() { if [[ $1 =~ -([2-9])$ ]]; then echo "${BASH_REMATCH[1]}"; else echo 1; fi; } # COMPONENT
node_part() { local part=${1%-[2-9]}; if [[ " ${node_parts[*]} " == *" $part "* ]]; then echo "$part"; fi; } # COMPONENT; empty for one of the control plane
all_nodes() { local i; for ((i = 1; i <= most_nodes; i++)); do if [[ -f start/node$(suffix $i) ]]; then echo $i; fi; done; }

# node_obstacle: one line that says why this machine cannot have a real node; empty if it can.
node_obstacle() {
  local controller program
  ((EUID == 0)) || { echo "not root"; return; }
  unshare --mount --net --pid --uts --fork true 2>/dev/null || { echo "no right to make namespaces (CAP_SYS_ADMIN)"; return; }
  for controller in cpu cpuset memory pids; do
    if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then echo "+$controller" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control # version 2
    else [[ -w /sys/fs/cgroup/$controller/cgroup.procs ]]; fi ||
      { echo "no cgroup controller '$controller' that can be given on in /sys/fs/cgroup"; return; }
  done
  grep -qw overlay /proc/filesystems || modprobe -q overlay 2>/dev/null || { echo "no overlay file system in the kernel"; return; }
  for program in nsenter ip nft runc "$cni_plugins/bridge"; do
    command -v "$program" >/dev/null || { echo "no $program (Debian: apt-get install util-linux iproute2 nftables runc containernetworking-plugins)"; return; }
  done
  unshare --net ip link add name nodes type bridge 2>/dev/null || { echo "no bridges in the kernel (ip link add type bridge)"; return; }
  unshare --net test -e /proc/sys/net/bridge/bridge-nf-call-iptables || { echo "no filter for bridges in the kernel (modprobe br_netfilter)"; return; }
  unshare --net nft add table ip nodes 2>/dev/null || { echo "no nftables in the kernel (nft add table)"; return; }
  case $clusters/ in
    /run/*|/var/lib/*|/var/log/*) echo "the node has its own /run, /var/lib and /var/log, and clusters are kept in $clusters (QUARTERMASTER_CLUSTERS)" ;;
  esac
}

# ---- cgroups. Of the cluster: quartermaster-HASH. Of a node in it: real-I, with pods/ for the kubelet, which kills unknown processes below
# its root, and host/ for the other processes. Freezing real-I freezes all of the node.

cluster_cgroup() { echo "quartermaster-$(sha256sum <<<"$folder" | cut -c1-12)"; } # of the folder: names are used twice
node_cgroup() { echo "$(cluster_cgroup)/$(node_name "$1")"; }
unified() { [[ -f /sys/fs/cgroup/cgroup.controllers ]]; } # cgroup version 2
hierarchies() { if unified; then echo /sys/fs/cgroup; else printf '%s\n' /sys/fs/cgroup/*/ | sed 's|/$||'; fi; }
freezer() { if unified; then echo "/sys/fs/cgroup/$(node_cgroup "$1")"; else echo "/sys/fs/cgroup/freezer/$(node_cgroup "$1")"; fi; }

make_cgroups() { # I
  local at level file # version 2: node_obstacle has given the controllers on
  for at in $(hierarchies); do
    for level in "$(cluster_cgroup)" "$(node_cgroup "$1")" "$(node_cgroup "$1")/pods" "$(node_cgroup "$1")/host"; do
      mkdir -p "$at/$level"
      for file in cpuset.cpus cpuset.mems; do # version 1: no process can enter a cgroup where they are empty
        if [[ -f $at/$level/$file ]] && ! unified; then cat "$(dirname "$at/$level")/$file" >"$at/$level/$file"; fi
      done
    done
  done
}

# freeze_node I yes|no: and wait until it is so.
freeze_node() {
  local i state at; at=$(freezer "$1")
  if unified; then
    if [[ $2 == yes ]]; then echo 1 >"$at/cgroup.freeze"; else echo 0 >"$at/cgroup.freeze"; fi
    return
  fi
  if [[ $2 == yes ]]; then state=FROZEN; else state=THAWED; fi
  for ((i = 0; i < 100; i++)); do
    echo $state >"$at/freezer.state" # a process that was on its way into another state is asked again
    [[ $(cat "$at/freezer.state") != "$state" ]] || return 0
    sleep 0.05
  done
  say "$(node_name "$1") is $(cat "$at/freezer.state"), not $state"; return 1
}

remove_cgroups() { # I
  local at i pid left
  if [[ -d $(freezer "$1") ]]; then freeze_node "$1" no || true; fi # what is frozen does not end
  for ((i = 0; i < 50; i++)); do
    left=
    for at in $(hierarchies); do
      at+=/$(node_cgroup "$1")
      [[ -d $at ]] || continue
      while read -r pid; do ((pid <= 1)) || kill -KILL "$pid" 2>/dev/null || true; done < <(find "$at" -name cgroup.procs -exec cat {} + 2>/dev/null) # all are ours
      find "$at" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [[ ! -d $at ]] || left+=" $at"
    done
    if [[ -z $left ]]; then
      for at in $(hierarchies); do rmdir "$at/$(cluster_cgroup)" 2>/dev/null || true; done # the last node's
      return
    fi
    sleep 0.1
  done
  say "these cgroups could not be removed:$left"
}

# ---- their files ----

write_egress() { # the API server reaches kubelets and pods through the door
  cat >egress.yaml <<'EOF'
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: door.sock}}}
EOF
  client kube-apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
}
# The API server looks up the pods of a Service itself: it is outside the nodes' network, where no kube-proxy changes addresses.
node_apiserver_args() {
  printf '%s\n' "--egress-selector-config-file=$PWD/egress.yaml" --kubelet-preferred-address-types=InternalIP --enable-aggregator-routing=true \
    "--kubelet-certificate-authority=$PWD/certs/ca.crt" "--kubelet-client-certificate=$PWD/certs/kube-apiserver-kubelet-client.crt" \
    "--kubelet-client-key=$PWD/certs/kube-apiserver-kubelet-client.key"
}

write_network_files() {
  local i nodes=
  for ((i = 1; i <= most_nodes; i++)); do nodes+="$(pod_network $i) $(node_ip $i)"$'\n'; done
  mkdir -p images
  client kube-proxy /CN=system:kube-proxy
  certificate_kubeconfig certs/kube-proxy.kubeconfig "https://$server_address:$APISERVER_PORT" kube-proxy
  write_start network "$(real_node)" run --pid-file "$PWD/pids/network-init" --proxy door.sock --network "$node_network" \
    --forward "$server_address:$APISERVER_PORT=127.0.0.1:$APISERVER_PORT" \
    -- "$cluster_src/node/network.sh" "$gateway/24" "$server_address" "${nodes%$'\n'}" "$(real_node)"
}

write_node_files() { # I
  local s name ip dir path server=https://$server_address:$APISERVER_PORT taints='[]'
  s=$(suffix "$1") name=$(node_name "$1") ip=$(node_ip "$1"); dir=$PWD/node$s
  if (($1 == 1)); then taints='[{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]'; fi
  mkdir -p "$dir"/{cni,etc/kubernetes/manifests,var/lib,var/log}
  issue "kubelet-server$s" "/CN=$name" extendedKeyUsage=serverAuth "subjectAltName=DNS:$name,IP:$ip"
  client "kubelet$s" "/O=system:nodes/CN=system:node:$name"
  certificate_kubeconfig "$dir/etc/kubernetes/kubelet.conf" "$server" "kubelet$s"
  certificate_kubeconfig "$dir/etc/kubernetes/scheduler.conf" "$server" kube-scheduler
  cat >"$dir/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $ip
authentication: {x509: {clientCAFile: $PWD/certs/ca.crt}}
tlsCertFile: $PWD/certs/kubelet-server$s.crt
tlsPrivateKeyFile: $PWD/certs/kubelet-server$s.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: /etc/kubernetes/manifests
volumePluginDir: /var/lib/kubelet/volumeplugins
registerWithTaints: $taints
cgroupDriver: cgroupfs
cgroupRoot: /$(node_cgroup "$1")/pods
failSwapOn: false
makeIPTablesUtilChains: false
clusterDomain: cluster.local
clusterDNS: [$dns_address]
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 5m
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
EOF
  if [[ $K8S_MINOR != 1.30 ]]; then echo "failCgroupV1: false" >>"$dir/kubelet.yaml"; fi
  cat >"$dir/containerd.toml" <<EOF
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "$pause_image"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["$cni_plugins"]
    conf_dir = "$dir/cni"
[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/containerd/opt"
EOF
  cat >"$dir/cni/10-bridge.conflist" <<EOF
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isDefaultGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pod_network "$1")"}]]}}]}
EOF
  # The counts and times of conntrack are the whole kernel's, so they stay as they are.
  cat >"$dir/kube-proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $PWD/certs/kube-proxy.kubeconfig}
hostnameOverride: $name
mode: nftables
detectLocalMode: BridgeInterface
detectLocal: {bridgeInterface: pods}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
EOF
  if [[ $K8S_MINOR == 1.30 ]]; then echo "featureGates: {NFTablesProxyMode: true}" >>"$dir/kube-proxy.yaml"; fi
  path=$(unit_home containerd)/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
  write_start "node$s" "$(real_node)" run --pid-file "$PWD/pids/node$s-init" \
    -- "$cluster_src/node/init.sh" "$dir" "$name" "$(freezer "$1")/host" "$(real_node)"
  write_start "containerd$s" /usr/bin/env PATH="$path" containerd --config "$dir/containerd.toml"
  write_start "kubelet$s" /usr/bin/env PATH="$path" "$(program_path "$K8S_MINOR" kubelet)" --config "$dir/kubelet.yaml" \
    --kubeconfig /etc/kubernetes/kubelet.conf --node-ip "$ip" --node-labels kwok.x-k8s.io/node=ignore --v 2
  write_start "kube-proxy$s" /usr/bin/env PATH="$path" "$(program_path "$K8S_MINOR" kube-proxy)" --config "$dir/kube-proxy.yaml" --v 2
}

# ---- running ----

# namespaces_of node|node-2|...|network: process 1 of its namespaces.
namespaces_of() {
  local pid; pid=$(pid_of "$1-init")
  [[ -n $pid ]] && echo "$pid" || die "$1 of \"$CLUSTER_NAME\" does not run"
}

# in_node I COMMAND...: in the node's namespaces.
in_node() { local pid; pid=$(namespaces_of "node$(suffix "$1")") || return; nsenter --target "$pid" --mount --uts --net --pid -- "${@:2}"; }

# start_in_node COMPONENT: nsenter stays as the parent of what it starts. The child counts, because it outlives nsenter.
start_in_node() {
  local outer inner i cgroup
  i=$(node_number "$1"); inner=$(namespaces_of "node$(suffix "$i")") || exit
  cgroup=$(freezer "$i")/host
  (close_files; echo 0 >"$cgroup/cgroup.procs"
   exec nsenter --target "$inner" --mount --uts --net --pid -- setsid "$PWD/start/$1") >>"logs/$1.log" 2>&1 </dev/null &
  outer=$!; disown
  for ((i = 0; i < 500; i++)); do
    inner=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null) || true
    [[ -z $inner && -n $(birth "$outer") ]] || break
    sleep 0.02
  done
  inner=${inner%% *}
  echo "${inner:-$outer} $(birth "${inner:-$outer}")" >"pids/$1"
  if [[ -n $inner ]]; then kill -KILL "$outer"; fi
}

node_answers() { # COMPONENT: network, or a part of a node
  local pid i; i=$(node_number "$1")
  if [[ $1 == network ]]; then pid=$(pid_of network-init); else pid=$(pid_of "node$(suffix "$i")-init"); fi
  [[ -n $pid ]] || return 1
  case $1 in
    network|node*) [[ -e /proc/$pid/root/run/ready ]] ;;
    containerd*) [[ -S /proc/$pid/root/run/containerd/containerd.sock ]] && in_node "$i" timeout 5 "$(unit_home containerd)/bin/ctr" version >/dev/null 2>&1 ;;
    kubelet*) in_node "$i" bash -c "$(declare -f http_ok); http_ok 10248 /healthz" ;;
    kube-proxy*) in_node "$i" bash -c "$(declare -f http_ok); http_ok 10256 /healthz" ;;
  esac
}

# node_says I KIND ARGUMENT...: what kubectl gets of the object that is called like the node.
node_says() { "$KUBECTL" --kubeconfig=kubeconfig get "$2" "$(node_name "$1")" "${@:3}" 2>/dev/null || true; }

start_network() {
  local i
  start network; await network || die "the network of the real nodes could not be made"
  for i in $(all_nodes); do if [[ -n $(pid_of "node$(suffix "$i")") ]]; then connect_node "$i"; fi; done
}

# connect_node I: a cable from the node to the bridge, and the ways to the other nodes' pods.
# The CNI plugin would make the bridge of the pods with the first pod; kube-proxy 1.30 writes no rule that names an interface before it is there,
# and tries again after 30 s.
connect_node() {
  local node network other
  node=$(namespaces_of "node$(suffix "$1")") && network=$(namespaces_of network) || exit
  nsenter --target "$node" --net -- ip link delete eth0 2>/dev/null || true # to a network that was killed
  nsenter --target "$network" --net -- bash -euc 'ip link add name "$1" type veth peer name eth0 netns "$2"; ip link set "$1" master nodes up' \
    connect "$(node_name "$1")" "$node" || die "$(node_name "$1") could not be joined to the network"
  nsenter --target "$node" --net -- ip -batch - <<EOF || die "$(node_name "$1") got no address"
address add $(node_ip "$1")/24 dev eth0
link set eth0 up
$(if nsenter --target "$node" --net -- ip link show pods >/dev/null 2>&1; then :; else echo "link add name pods type bridge"; fi)
route add default via $gateway
$(for ((other = 1; other <= most_nodes; other++)); do if ((other != $1)); then echo "route add $(pod_network $other) via $(node_ip $other)"; fi; done)
EOF
}

start_nodes() { # I...: the whole of them, until they are Ready; each step for all of them, because they work side by side
  local i s part deadline
  local -A lease
  for i in "$@"; do
    lease[$i]=$(node_says "$i" lease -n kube-node-lease -o 'jsonpath={.spec.renewTime}') # Ready is from before it was switched off until this is another
    s=$(suffix "$i")
    if [[ -z $(pid_of "node$s") ]]; then remove_cgroups "$i"; fi # those of before it was switched off: a kubelet looks long into each
    make_cgroups "$i"
    start "node$s"; await "node$s" || die "the namespaces of $(node_name "$i") could not be made"
    connect_node "$i"
    start "containerd$s"
  done
  for i in "$@"; do await "containerd$(suffix "$i")" || die "containerd of $(node_name "$i") did not start"; done
  import_image "$*" "$pause_image" "$(real_node):/pause" -- /pause pause
  for i in "$@"; do start "kubelet$(suffix "$i")"; done
  for i in "$@"; do await "kubelet$(suffix "$i")" || die "kubelet of $(node_name "$i") did not start"; done
  deadline=$((SECONDS + 60))
  for i in "$@"; do
    until [[ $(node_says "$i" node -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]] &&
          [[ -z ${lease[$i]} || $(node_says "$i" lease -n kube-node-lease -o 'jsonpath={.spec.renewTime}') != "${lease[$i]}" ]]; do
      ((SECONDS < deadline)) || { tail -n 15 "logs/kubelet$(suffix "$i").log" >&2; die "$(node_name "$i") is not Ready after 60 s"; }
      sleep 0.1
    done
    start "kube-proxy$(suffix "$i")" # it looks for its node's address when it starts
  done
  for i in "$@"; do await "kube-proxy$(suffix "$i")" || die "kube-proxy of $(node_name "$i") did not start"; done
  if [[ " $* " == *" 1 "* ]]; then
    "$KUBECTL" --kubeconfig=kubeconfig label node "$(node_name 1)" --overwrite node-role.kubernetes.io/control-plane= >/dev/null
  fi
}

start_dns() { # on the real nodes: one pod, or two where there are more
  local count; count=$(all_nodes | wc -l)
  import_image "$(all_nodes | xargs)" "$dns_image" "$(program_path coredns coredns):/coredns"
  sed -e "s|IMAGE|$dns_image|" -e "s|REPLICAS|$((count > 1 ? 2 : 1))|" "$cluster_src/node/coredns.yaml" |
    "$KUBECTL" --kubeconfig=kubeconfig apply -f - >/dev/null || die "CoreDNS could not be installed"
  "$KUBECTL" --kubeconfig=kubeconfig rollout status deployment/coredns -n kube-system --timeout=60s >/dev/null ||
    { "$KUBECTL" --kubeconfig=kubeconfig get pods,events -n kube-system >&2; die "CoreDNS is not ready after 60 s"; }
}

take_nodes_down() { # in any state
  local i s
  for i in $(all_nodes); do
    s=$(suffix "$i")
    if [[ -d $(freezer "$i") ]]; then freeze_node "$i" no || true; fi
    stop "node$s"; stop "node$s-init" KILL # process 1 ends after its parent, when that was killed
    remove_cgroups "$i"
  done
  stop network; stop network-init KILL
}

# import_image "I..." NAME:TAG [VARIABLE=VALUE]... PROGRAM:PATH... [-- COMMAND...]: for these nodes.
import_image() {
  local archive nodes=$1; shift
  archive=$PWD/images/$(tr -c 'a-zA-Z0-9.\n' - <<<"$1").tar
  "$(real_node)" image "$archive" "$@" || die "no image of $1"
  import_archive "$nodes" "$1" "$archive"
  rm -f "$archive"
}

# import_archive "I..." NAME:TAG FILE: an OCI archive whose image is called TAG, or has a whole name of its own.
import_archive() {
  local i ctr; ctr=$(unit_home containerd)/bin/ctr
  for i in $1; do
    in_node "$i" "$ctr" --namespace k8s.io images import --base-name "${2%:*}" "$3" >"logs/import.log" 2>&1 ||
      { cat logs/import.log >&2; die "containerd does not take the image $2"; }
    [[ -n $(in_node "$i" "$ctr" --namespace k8s.io images list --quiet "name==$2") ]] ||
      { cat logs/import.log >&2; die "the image in $3 is not called $2"; }
  done
}
