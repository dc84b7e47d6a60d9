# node.sh: the real node, real-1, next to KWOK's nodes: containerd, runc and a kubelet in their own mount, network, pid and host name
# namespaces. Sourced by cluster.sh. All functions except node_obstacle run in the cluster's folder, with cluster.env sourced.
#
# The machine's network is not touched: sockets lead in and out (node/door.go). Component `node` is the door and the parent of
# process 1 of the namespaces; `containerd` and `kubelet` are started into them. The node writes into node/ of the cluster's folder:
# etc/kubernetes, var/lib and var/log are at their usual places there.

node_name=real-1
node_ip=198.18.0.1           # RFC 2544; each cluster's node has the same, in its own network
node_network=198.18.0.0/15   # the node's and its pods'
services=10.96.0.0/16
cni_plugins=/usr/lib/cni
pause_image=quartermaster.test/pause:1

real_node() { echo "$(unit_home node)/bin/real-node"; }

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
  for program in nsenter ip runc "$cni_plugins/bridge"; do
    command -v "$program" >/dev/null || { echo "no $program (Debian: apt-get install util-linux iproute2 runc containernetworking-plugins)"; return; }
  done
  case $clusters/ in
    /run/*|/var/lib/*|/var/log/*) echo "the node has its own /run, /var/lib and /var/log, and clusters are kept in $clusters (QUARTERMASTER_CLUSTERS)" ;;
  esac
}

# ---- cgroups: its own one for all its pods, because a kubelet kills unknown processes below its root ----

node_cgroup() { echo "quartermaster-$(sha256sum <<<"$folder" | cut -c1-12)"; } # of the folder: names are used twice

# node_cgroups: its folder in every hierarchy.
node_cgroups() {
  local at
  if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then echo "/sys/fs/cgroup/$(node_cgroup)"; return; fi
  for at in /sys/fs/cgroup/*/; do echo "$at$(node_cgroup)"; done
}

make_cgroups() {
  local at file # version 2: node_obstacle has given the controllers on
  for at in $(node_cgroups); do
    mkdir -p "$at"
    for file in cpuset.cpus cpuset.mems; do # version 1: no process can enter a cgroup where they are empty
      if [[ -f $at/$file && ! -f $at/cgroup.controllers ]]; then cat "${at%/*}/$file" >"$at/$file"; fi
    done
  done
}

remove_cgroups() {
  local at i pid
  for ((i = 0; i < 50; i++)); do
    for at in $(node_cgroups); do
      [[ -d $at ]] || continue
      while read -r pid; do ((pid <= 1)) || kill -KILL "$pid" 2>/dev/null || true; done < <(find "$at" -name cgroup.procs -exec cat {} + 2>/dev/null) # all are ours
      find "$at" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    at=$(for at in $(node_cgroups); do [[ ! -d $at ]] || echo "$at"; done)
    [[ -n $at ]] || return 0
    sleep 0.1
  done
  say "these cgroups could not be removed: $at"
}

# ---- its files ----

write_egress() { # the API server reaches kubelets and pods through the door
  cat >egress.yaml <<'EOF'
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: node/door.sock}}}
EOF
  client kube-apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
}
node_apiserver_args() {
  printf '%s\n' "--egress-selector-config-file=$PWD/egress.yaml" --kubelet-preferred-address-types=InternalIP \
    "--kubelet-certificate-authority=$PWD/certs/ca.crt" "--kubelet-client-certificate=$PWD/certs/kube-apiserver-kubelet-client.crt" \
    "--kubelet-client-key=$PWD/certs/kube-apiserver-kubelet-client.key"
}

write_node_files() {
  local dir=$PWD/node path server=https://127.0.0.1:$APISERVER_PORT
  mkdir -p node/images node/cni node/etc/kubernetes/manifests node/var/lib node/var/log
  issue kubelet-server "/CN=$node_name" extendedKeyUsage=serverAuth "subjectAltName=DNS:$node_name,IP:$node_ip"
  client kubelet "/O=system:nodes/CN=system:node:$node_name"
  certificate_kubeconfig node/etc/kubernetes/kubelet.conf "$server" kubelet
  certificate_kubeconfig node/etc/kubernetes/scheduler.conf "$server" kube-scheduler
  cat >node/kubelet.yaml <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
authentication: {x509: {clientCAFile: $PWD/certs/ca.crt}}
tlsCertFile: $PWD/certs/kubelet-server.crt
tlsPrivateKeyFile: $PWD/certs/kubelet-server.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: /etc/kubernetes/manifests
volumePluginDir: /var/lib/kubelet/volumeplugins
registerWithTaints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]
cgroupDriver: cgroupfs
cgroupRoot: /$(node_cgroup)
failSwapOn: false
makeIPTablesUtilChains: false
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 5m
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
EOF
  if [[ $K8S_MINOR != 1.30 ]]; then echo "failCgroupV1: false" >>node/kubelet.yaml; fi
  cat >node/containerd.toml <<EOF
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
  cat >node/cni/10-bridge.conflist <<EOF
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isDefaultGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.1.0/24"}]]}}]}
EOF
  path=$(unit_home containerd)/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
  write_start node "$(real_node)" run --pid-file "$PWD/pids/node-init" --proxy node/door.sock --network "$node_network" \
    --forward "127.0.0.1:$APISERVER_PORT=127.0.0.1:$APISERVER_PORT" --forward "10.96.0.1:443=127.0.0.1:$APISERVER_PORT" \
    -- "$cluster_src/node/init.sh" "$dir" "$node_name" "$node_ip" "$services" "$(real_node)"
  write_start containerd /usr/bin/env PATH="$path" containerd --config "$dir/containerd.toml"
  write_start kubelet /usr/bin/env PATH="$path" "$(program_path "$K8S_MINOR" kubelet)" --config "$dir/kubelet.yaml" \
    --kubeconfig /etc/kubernetes/kubelet.conf --node-ip "$node_ip" --node-labels kwok.x-k8s.io/node=ignore --v 2
}

# ---- running ----

node_init() { local pid; pid=$(pid_of node-init); [[ -n $pid ]] && echo "$pid" || die "the real node of \"$CLUSTER_NAME\" does not run"; }

# in_node COMMAND...: in the node's namespaces.
in_node() { local pid; pid=$(node_init) || return; nsenter --target "$pid" --mount --uts --net --pid -- "$@"; }

# start_in_node NAME: nsenter stays as the parent of what it starts. The child counts, because it outlives nsenter.
start_in_node() {
  local outer inner i
  inner=$(node_init) || exit
  (close_files; exec nsenter --target "$inner" --mount --uts --net --pid -- setsid "$PWD/start/$1") >>"logs/$1.log" 2>&1 </dev/null &
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

node_answers() { # NAME: node, containerd, kubelet
  local pid; pid=$(pid_of node-init)
  [[ -n $pid ]] || return 1
  case $1 in
    node) [[ -e /proc/$pid/root/run/ready ]] ;;
    containerd) [[ -S /proc/$pid/root/run/containerd/containerd.sock ]] && in_node timeout 5 "$(unit_home containerd)/bin/ctr" version >/dev/null 2>&1 ;;
    kubelet) in_node bash -c "$(declare -f http_ok); http_ok 10248 /healthz" ;;
  esac
}

node_says() { "$KUBECTL" --kubeconfig=kubeconfig get "$1" "$node_name" "${@:2}" 2>/dev/null || true; }

start_node() { # the whole of it, until it is Ready
  local deadline lease
  lease=$(node_says lease -n kube-node-lease -o 'jsonpath={.spec.renewTime}') # Ready is from before it was switched off until this is another
  if [[ -z $(pid_of node) ]]; then remove_cgroups; fi # those of before it was switched off: a kubelet looks long into each
  make_cgroups
  start node; await node || die "the real node's namespaces could not be made"
  start containerd; await containerd || die "containerd did not start"
  import_image "$pause_image" "$(real_node):/pause" -- /pause pause
  start kubelet; await kubelet || die "kubelet did not start"
  deadline=$((SECONDS + 60))
  until [[ $(node_says node -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]] &&
        [[ -z $lease || $(node_says lease -n kube-node-lease -o 'jsonpath={.spec.renewTime}') != "$lease" ]]; do
    ((SECONDS < deadline)) || { tail -n 15 logs/kubelet.log >&2; die "$node_name is not Ready after 60 s"; }
    sleep 0.1
  done
  "$KUBECTL" --kubeconfig=kubeconfig label node "$node_name" --overwrite node-role.kubernetes.io/control-plane= >/dev/null
}

take_node_down() { # in any state
  [[ -f start/node ]] || return 0
  stop node; stop node-init KILL # process 1 ends after its parent, when that was killed
  remove_cgroups
}

# import_image NAME:TAG [VARIABLE=VALUE]... PROGRAM:PATH... [-- COMMAND...]
import_image() {
  local archive
  archive=$PWD/node/images/$(tr -c 'a-zA-Z0-9.\n' - <<<"$1").tar
  "$(real_node)" image "$archive" "$@" || die "no image of $1"
  import_archive "$1" "$archive"
  rm -f "$archive"
}

# import_archive NAME:TAG FILE: an OCI archive whose image is called TAG, or has a whole name of its own.
import_archive() {
  in_node "$(unit_home containerd)/bin/ctr" --namespace k8s.io images import --base-name "${1%:*}" "$2" >"logs/import.log" 2>&1 ||
    { cat logs/import.log >&2; die "containerd does not take the image $1"; }
  [[ -n $(in_node "$(unit_home containerd)/bin/ctr" --namespace k8s.io images list --quiet "name==$1") ]] ||
    { cat logs/import.log >&2; die "the image in $2 is not called $1"; }
}
