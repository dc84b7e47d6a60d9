# components.sh: how each part of the control plane is started, asked whether it is ready, and stopped. Sourced by cluster.sh.
#
# A component is a file start/NAME (its whole command line, so a restart is exact), pids/NAME (pid and start time: a pid used again
# by another process is never signalled) and logs/NAME.log. All functions run in the cluster's folder, with cluster.env sourced.

# In start order; stopped in reverse. Those from `network` on: node.sh
components=(etcd kube-apiserver kube-controller-manager kube-scheduler kwok leases network)
for suffix in "" -2 -3 -4; do components+=({node,containerd,kubelet,kube-proxy}"$suffix"); done

# write_start NAME PROGRAM ARG...
# The garbage collector waits until the heap has grown fivefold instead of twofold: a lane of tests then takes about 15 % less CPU, and
# kube-apiserver up to 1.3 GiB. A caller's own GOGC wins; benches keep Go's default of 100.
write_start() {
  local name=$1 arg; shift
  { echo "#!/bin/bash"
    echo "# $name of the test cluster \"$CLUSTER_NAME\". 'cluster.sh restart $name' runs this file again."
    echo "export GOGC=${GOGC:-400}"
    printf 'exec %q' "$1"; shift
    for arg in "$@"; do printf ' \\\n  %q' "$arg"; done
    echo
  } >"start/$name"
  chmod +x "start/$name"
}

write_start_files() { # uses the arrays apiserver_args and kcm_args of `up`
  local dir=$PWD
  write_start etcd "$(program_path etcd etcd)" \
    --name=etcd --data-dir="$dir/etcd" --unsafe-no-fsync --snapshot-count=20000 --quota-backend-bytes=4294967296 --log-level=warn \
    --listen-client-urls="http://127.0.0.1:$ETCD_PORT" --advertise-client-urls="http://127.0.0.1:$ETCD_PORT" \
    --listen-peer-urls="http://127.0.0.1:$ETCD_PEER_PORT" --initial-advertise-peer-urls="http://127.0.0.1:$ETCD_PEER_PORT" \
    --initial-cluster="etcd=http://127.0.0.1:$ETCD_PEER_PORT"
  # The advertised address only fills the Endpoints of the Service `kubernetes`, where loopback is refused; a documentation address
  # (RFC 5737) also keeps kube-apiserver from looking for a default route, which a closed machine does not have. Real nodes and their pods
  # reach the server there.
  write_start kube-apiserver "$(program_path "$K8S_MINOR" kube-apiserver)" \
    --etcd-servers="http://127.0.0.1:$ETCD_PORT" \
    --bind-address=127.0.0.1 --secure-port="$APISERVER_PORT" --advertise-address="$server_address" --service-cluster-ip-range=10.96.0.0/16 \
    --tls-cert-file="$dir/certs/server.crt" --tls-private-key-file="$dir/certs/server.key" --client-ca-file="$dir/certs/ca.crt" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$dir/certs/service-account.pub" --service-account-signing-key-file="$dir/certs/service-account.key" \
    --requestheader-client-ca-file="$dir/certs/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$dir/certs/front-proxy.crt" --proxy-client-key-file="$dir/certs/front-proxy.key" \
    --audit-policy-file="$dir/audit-policy.yaml" --audit-log-path="$dir/audit.log" \
    --max-requests-inflight=3000 --max-mutating-requests-inflight=1000 "${apiserver_args[@]}"
  write_start kube-controller-manager "$(program_path "$K8S_MINOR" kube-controller-manager)" \
    --kubeconfig="$dir/certs/kube-controller-manager.kubeconfig" --authentication-kubeconfig="$dir/certs/kube-controller-manager.kubeconfig" \
    --authorization-kubeconfig="$dir/certs/kube-controller-manager.kubeconfig" --kube-api-qps=300 --kube-api-burst=600 \
    --bind-address=127.0.0.1 --secure-port="$KCM_PORT" --tls-cert-file="$dir/certs/server.crt" --tls-private-key-file="$dir/certs/server.key" \
    --use-service-account-credentials=true --service-account-private-key-file="$dir/certs/service-account.key" --root-ca-file="$dir/certs/ca.crt" \
    --cluster-signing-cert-file="$dir/certs/ca.crt" --cluster-signing-key-file="$dir/certs/ca.key" \
    --leader-elect=false --node-monitor-period=2s --node-monitor-grace-period=40s "${kcm_args[@]}"
  write_start kube-scheduler "$(program_path "$K8S_MINOR" kube-scheduler)" \
    --config="$dir/kube-scheduler.yaml" --authentication-kubeconfig="$dir/certs/kube-scheduler.kubeconfig" \
    --authorization-kubeconfig="$dir/certs/kube-scheduler.kubeconfig" --bind-address=127.0.0.1 --secure-port="$SCHEDULER_PORT" \
    --tls-cert-file="$dir/certs/server.crt" --tls-private-key-file="$dir/certs/server.key"
  # KWOK and the simulator play the kubelet of every node except those with the label kwok.x-k8s.io/node=ignore. If you set the
  # label, the node's heartbeat stops. test/sim/leases.go explains why the simulator renews the leases.
  write_start kwok "$(program_path kwok kwok)" \
    --kubeconfig="$dir/certs/kwok.kubeconfig" --config="$dir/kwok.yaml" --server-address="127.0.0.1:$KWOK_PORT" \
    --manage-nodes-with-label-selector='kwok.x-k8s.io/node!=ignore' --node-lease-duration-seconds=0 \
    --node-ip=192.0.2.10 --cidr=10.128.0.1/9
  write_start leases "$(program_path sim sim)" leases --kubeconfig="$dir/certs/kwok.kubeconfig"
}

# audit_rules: what `up --audit-bodies` adds. Bodies are large, and a lane with thousands of pods does without.
audit_rules() {
  [[ -n $audit_bodies ]] || return 0
  cat <<'EOF'
- level: RequestResponse
  omitManagedFields: true
  resources:
  - {group: "", resources: [pods, pods/*, nodes, nodes/status, namespaces]}
EOF
}

# Verbs that change, by anyone, in one line each; reads are not logged, nor the renewed node leases (500 a second for 5,000 nodes).
write_config_files() {
  cat >audit-policy.yaml <<EOF
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  users: [kwok]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
$(audit_rules)
- level: Metadata
EOF
  cat >kube-scheduler.yaml <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $PWD/certs/kube-scheduler.kubeconfig, qps: 300, burst: 600}
EOF
  local stages file
  stages=$(unit_home kwok)/stage
  { echo "apiVersion: config.kwok.x-k8s.io/v1alpha1"  # KWOK's four workers each are too few for fleets
    echo "kind: KwokConfiguration"
    echo "options: {nodePlayStageParallelism: 16, podPlayStageParallelism: 16, nodeLeaseParallelism: 16, podsOnNodeSyncParallelism: 4}"
    for file in "$stages"/node/fast/node-initialize.yaml "$stages"/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml \
                "$stages"/pod/fast/pod-*.yaml "$cluster_src"/stages/*.yaml; do
      echo ---; cat "$file"
    done
  } >kwok.yaml
}

# birth PID: its start time; empty when the process is gone. A process that was not reaped yet counts as gone when its last thread is
# gone: after a SIGKILL the first thread is a zombie while other threads still hold the ports.
birth() {
  local stat tasks
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  read -r -a stat <<<"${stat##*) }"
  if [[ ${stat[0]} == Z ]]; then tasks=("/proc/$1/task/"*); ((${#tasks[@]} > 1)) || return 0; fi
  echo "${stat[19]}"
}

# pid_of NAME: empty when it does not run.
pid_of() {
  local pid born
  [[ -f pids/$1 ]] && read -r pid born <"pids/$1" && [[ -n $born && $(birth "$pid") == "$born" ]] && echo "$pid" || true
}

close_files() { local fd; for fd in /proc/self/fd/*; do fd=${fd##*/}; if ((fd > 2 && fd != 255)); then eval "exec $fd>&-"; fi; done; }

start() { # NAME: in a session of its own, so that Ctrl-C at a terminal reaches only cluster.sh, and holding none of its caller's files
  local pid
  [[ -z $(pid_of "$1") ]] || return 0
  case $(node_part "$1") in containerd|kubelet|kube-proxy) start_in_node "$1"; return ;; esac
  (close_files; exec setsid "$PWD/start/$1") >>"logs/$1.log" 2>&1 </dev/null &
  pid=$!; disown
  echo "$pid $(birth "$pid")" >"pids/$1"
}

# stop NAME [SIGNAL]: waits until it has exited, so that its port is free. Sends SIGKILL after 15 s.
stop() {
  local pid i; pid=$(pid_of "$1")
  if [[ -n $pid ]]; then
    kill "-${2:-TERM}" "$pid" 2>/dev/null || true
    for ((i = 0; i < 300; i++)); do [[ -n $(pid_of "$1") ]] || break; sleep 0.05; done
    if [[ -n $(pid_of "$1") ]]; then
      say "$1 did not end in 15 s, killing it"; kill -KILL "$pid" 2>/dev/null || true
      for ((i = 0; i < 100; i++)); do [[ -n $(pid_of "$1") ]] || break; sleep 0.05; done
    fi
  fi
  rm -f "pids/$1"
}

# http_ok PORT PATH: whether a plain GET returns 200. Runs in a subshell, because SIGPIPE ends it if the server dies meanwhile.
http_ok() (
  exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
  printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
  read -r -t 2 status <&3 && [[ $status == *" 200 "* ]]
)

raw_ok() { "$KUBECTL" --kubeconfig="$KUBECONFIG_FILE" --server="https://127.0.0.1:$1" --request-timeout=2s get --raw "$2" >/dev/null 2>&1; }

answers() { # NAME
  case $1 in
    etcd) http_ok "$ETCD_PORT" /health ;;
    kube-apiserver) raw_ok "$APISERVER_PORT" /readyz ;;
    kube-controller-manager) raw_ok "$KCM_PORT" /healthz ;;
    kube-scheduler) raw_ok "$SCHEDULER_PORT" /healthz ;;
    kwok) http_ok "$KWOK_PORT" /healthz ;;
    leases) [[ -n $(pid_of leases) ]] ;;
    *) node_answers "$1" ;;
  esac
}

# last_lines NAME: the end of its log, and what to do about the one cause that the machine has and the log does not explain.
last_lines() {
  tail -n 15 "logs/$1.log" >&2
  ! grep -q 'too many open files' "logs/$1.log" ||
    say "this machine has no inotify instance left (fs.inotify.max_user_instances is $(</proc/sys/fs/inotify/max_user_instances)): end other clusters, or raise it with sysctl"
}

# await NAME: waits until it answers. If it dies or 180 s pass, prints the end of its log and returns 1.
await() {
  local deadline=$((SECONDS + 180))
  until answers "$1"; do
    if [[ -z $(pid_of "$1") ]]; then say "$1 ended while starting; its last lines:"; last_lines "$1"; return 1; fi
    if ((SECONDS > deadline)); then say "$1 is not ready after 180 s; its last lines:"; last_lines "$1"; return 1; fi
    sleep 0.1
  done
}
