#!/bin/bash
# cluster.sh: a real Kubernetes control plane on loopback, with KWOK playing the kubelets. `cluster.sh --help` says how it is used.
#
# One cluster is one folder: ${QUARTERMASTER_CLUSTERS:-${XDG_STATE_HOME:-~/.local/state}/quartermaster/clusters}/NAME. Nothing else on
# the machine is touched. The file `cluster.env` is written to the folder when the cluster is ready. A folder without it is left over
# from an `up` that was killed, and the next `up` removes it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/layout.sh"
source "$here/certs.sh"
source "$here/components.sh"
source "$here/node.sh"

clusters=${QUARTERMASTER_CLUSTERS:-${XDG_STATE_HOME:-$HOME/.local/state}/quartermaster/clusters}

usage() {
  cat <<EOF
usage: ./dev cluster VERB [--name NAME] ...           (NAME: "default" when not given)

  up        start a cluster; the last line on stdout is the path of its admin kubeconfig
              [--k8s $(IFS="|"; echo "${k8s_minors[*]}")] [--port P] [--nodes N] [--no-kwok] [--no-scheduler]
              [--apiserver-arg=ARG]... [--kcm-arg=ARG]... [--real-nodes N | --real-node]
              [--until PID]      it is taken down when that process has ended, however it ends
              [--audit-bodies]   audit.log also has what was sent and answered about pods, nodes and namespaces
  down      stop it and delete its folder                        [--all, with QUARTERMASTER_CLUSTERS]
  status    what runs, on which ports, with how much memory; of every cluster when no name is given
  env       print 'export KUBECONFIG=... PATH=...' for a shell: eval "\$(./dev cluster env)"
  restart   restart one component with the same arguments        COMPONENT [--signal TERM|KILL|...]
  stop, start  the two halves of restart                         COMPONENT [--signal ...]
  logs      the last lines of its logs                           [COMPONENT] [--lines N] [--follow]
  sa-kubeconfig  write and print a kubeconfig with a token of a ServiceAccount, as a pod of it would have
              --namespace NS --serviceaccount SA [--duration 1h] [--token-file]

With --real-nodes N, 1 to $most_nodes, the cluster also has real-1 to real-N. Each has containerd, a kubelet and kube-proxy in namespaces
of its own; pods reach each other, Services and the cluster's DNS (CoreDNS). real-1 is tainted and labelled as a control plane's node.
--real-node is --real-nodes 1.
  node-check    can this machine have them? exit code 1 and one line when not
  node-exec     [--node real-1] COMMAND...   run it in the node's namespaces (its /etc/kubernetes is node/etc/kubernetes in the cluster's folder)
  node-image    [--node NODE] NAME:TAG [VARIABLE=VALUE]... PROGRAM:PATH... [-- COMMAND...]   make an image of programs of this machine and
                give it to that node, or to all
                [--node NODE] NAME:TAG --archive FILE   give them an OCI archive whose image is called TAG
  node-freeze, node-thaw   [--node real-1]   stop all its processes where they are, pods too; and let them go on
  node-forward  LISTEN=TARGET...   until it is ended: LISTEN in the nodes' network, as $server_address:8443, leads to TARGET on this machine

Components: etcd kube-apiserver kube-controller-manager kube-scheduler kwok leases (apiserver, kcm and scheduler for short); with real
nodes also network, and ${node_parts[*]} of real-1, or with -2 behind them of real-2.
KUBEBUILDER_ASSETS, when set, brings ${assets_programs[*]}. Exit codes: 0 done, 1 failed, 2 wrong usage.
EOF
}

say() { echo "cluster: $*" >&2; }
die() { echo "cluster: $1" >&2; exit "${2:-1}"; }
wrong() { die "$1 (see ./dev cluster --help)" 2; }

# ---- arguments ----

(($#)) || { usage >&2; exit 2; }
verb=$1; shift
case $verb in
  up|down|status|env|restart|stop|start|logs|sa-kubeconfig|node-check|node-exec|node-image|node-freeze|node-thaw|node-forward) ;;
  -h|--help|help) usage; exit 0 ;;
  *) wrong "unknown verb '$verb'; there are up, down, status, env, restart, stop, start, logs, sa-kubeconfig and node-..." ;;
esac

name=default named= minor=${k8s_minors[0]} port= nodes=0 kwok=yes scheduler=yes real_nodes= node= apiserver_args=() kcm_args=() audit_bodies= until_pid= all= component= signal=TERM
lines=20 follow= namespace= serviceaccount= duration=1h token_file= words=()
takes() { [[ " $1 " == *" $verb "* ]] || wrong "'$verb' does not take $2"; }
while (($#)); do
  option=$1; shift
  if [[ $verb == node-* && ! $option =~ ^--(name|node)(=|$) ]]; then words=("$option" "$@"); break; fi
  if [[ $option == --*=* ]]; then set -- "${option#*=}" "$@"; option=${option%%=*}; fi
  case $option in  # options with a value
    --name|--k8s|--port|--nodes|--real-nodes|--node|--apiserver-arg|--kcm-arg|--signal|--lines|--namespace|--serviceaccount|--duration|--until)
      (($#)) || wrong "$option needs a value"; value=$1; shift ;;
  esac
  case $option in
    --name) name=$value named=yes ;;
    --k8s) takes up "$option"; minor=$value ;;
    --port) takes up "$option"; port=$value ;;
    --nodes) takes up "$option"; nodes=$value ;;
    --no-kwok) takes up "$option"; kwok= ;;
    --no-scheduler) takes up "$option"; scheduler= ;;
    --real-nodes) takes up "$option"; real_nodes=$value ;;
    --real-node) takes up "$option"; real_nodes=1 ;;
    --node) takes "node-exec node-image node-freeze node-thaw" "$option"; node=$value ;;
    --apiserver-arg) takes up "$option"; apiserver_args+=("$value") ;;
    --kcm-arg) takes up "$option"; kcm_args+=("$value") ;;
    --until) takes up "$option"; until_pid=$value ;;
    --audit-bodies) takes up "$option"; audit_bodies=yes ;;
    --all) takes down "$option"; all=yes ;;
    --signal) takes "restart stop" "$option"; signal=${value#SIG} ;;
    --lines) takes logs "$option"; lines=$value ;;
    -f|--follow) takes logs "$option"; follow=-F ;;
    --namespace) takes sa-kubeconfig "$option"; namespace=$value ;;
    --serviceaccount) takes sa-kubeconfig "$option"; serviceaccount=$value ;;
    --duration) takes sa-kubeconfig "$option"; duration=$value ;;
    --token-file) takes sa-kubeconfig "$option"; token_file=yes ;;
    -h|--help) usage; exit 0 ;;
    -*) wrong "unknown option '$option'" ;;
    *) takes "restart stop start logs" "the argument '$option'"; [[ -z $component ]] || wrong "one component at a time"; component=$option ;;
  esac
done
number() { [[ $2 =~ ^[0-9]{1,6}$ ]] || wrong "$1 needs a number, not '$2'"; }
[[ $name =~ ^[a-z0-9][a-z0-9-]{0,40}$ ]] || wrong "--name '$name' must be lower case letters, digits and dashes, 41 at most"
[[ " ${k8s_minors[*]} " == *" $minor "* ]] || wrong "--k8s '$minor' is not one of: ${k8s_minors[*]}"
number --nodes "$nodes"; number --until "${until_pid:-0}"; number --lines "$lines"
if [[ -n $real_nodes ]]; then
  number --real-nodes "$real_nodes"
  ((10#$real_nodes >= 1 && 10#$real_nodes <= most_nodes)) || wrong "--real-nodes $real_nodes is none of 1 to $most_nodes; without the option there are none"
fi
real_nodes=$((10#${real_nodes:-0}))
[[ -z $node || $node =~ ^real-[1-$most_nodes]$ ]] || wrong "--node '$node' is not real-1 to real-$most_nodes"
if [[ -n $port ]]; then number --port "$port"; ((port > 0 && port < 65536)) || wrong "--port $port is not a port"; fi
((nodes == 0)) || [[ -n $kwok ]] || wrong "--nodes needs KWOK: without it no node becomes Ready"
kill -l "$signal" >/dev/null 2>&1 || wrong "--signal '$signal' is not a signal"
case $component in apiserver) component=kube-apiserver ;; kcm) component=kube-controller-manager ;; scheduler) component=kube-scheduler ;; esac
[[ -z $component || " ${components[*]} " == *" $component "* ]] || wrong "'$component' is not a component: ${components[*]}"
case $verb in
  restart|stop|start) [[ -n $component ]] || wrong "$verb needs a component: ${components[*]}" ;;
  sa-kubeconfig) [[ -n $namespace && -n $serviceaccount ]] || wrong "sa-kubeconfig needs --namespace and --serviceaccount" ;;
  node-check|node-freeze|node-thaw) ((${#words[@]} == 0)) || wrong "$verb does not take '${words[*]}'" ;;
  node-exec) ((${#words[@]})) || wrong "node-exec needs a COMMAND" ;;
  node-image) ((${#words[@]} > 1)) || wrong "node-image needs NAME:TAG and PROGRAM:PATH, as in example.test/mine:1 ./mine:/bin/mine"
    [[ ${words[1]} != --archive || ${#words[@]} == 3 ]] || wrong "node-image NAME:TAG --archive needs one FILE" ;;
  node-forward) ((${#words[@]})) || wrong "node-forward needs LISTEN=TARGET, as in $server_address:8443=127.0.0.1:8443" ;;
esac
folder=$clusters/$name

# ---- what the verbs share ----

# lock: one change of a cluster at a time. The lock file is next to the folder, because `down` deletes the folder. As its last step
# `down` deletes the lock file too, so a caller that gets the lock checks whether it still holds the same file.
lock_file=$clusters/.$name.lock
lock() {
  mkdir -p "$clusters"
  while true; do
    exec 8>"$lock_file"
    flock -n 8 || { say "another command is working on \"$name\", waiting"; flock 8; }
    [[ ! /proc/self/fd/8 -ef $lock_file ]] || return 0
  done
}

enter() { # the cluster's folder and facts, or one line
  [[ -f $folder/cluster.env ]] || die "no cluster \"$name\" is up (./dev cluster up${named:+ --name $name})"
  cd "$folder"; source ./cluster.env
}

running() { local c; for c in "${components[@]}"; do if [[ -n $(pid_of "$c") ]]; then echo "$c"; fi; done; }
started() { local c; for c in "${components[@]}"; do if [[ -f start/$c ]]; then echo "$c"; fi; done; }

take_down() { # in any state, also half started
  [[ -d $folder ]] || return 0
  cd "$folder"
  local i c
  for c in $(started); do
    [[ ! -f pids/$c || -n $(pid_of "$c") ]] || { say "$c of \"$name\" had ended by itself; its last lines:"; tail -n 40 "logs/$c.log" >&2; }
  done
  take_nodes_down
  for ((i = ${#components[@]} - 1; i >= 0; i--)); do stop "${components[i]}"; done
  cd /; rm -rf "$folder"
}

port_free() { ! { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null; }

# free_port: sets REPLY to a port below the range of outgoing connections that is not in use and that no other cluster has.
ports_taken=
free_port() {
  local tries
  for ((tries = 0; tries < 1000; tries++)); do
    REPLY=$((20000 + RANDOM % 12000))
    [[ " $ports_taken " != *" $REPLY "* ]] && port_free "$REPLY" && { ports_taken+=" $REPLY"; return; }
  done
  die "no free port found between 20000 and 32000"
}

choose_ports() {
  mkdir -p "$clusters"; exec 7>"$clusters/.ports.lock"; flock 7
  ports_taken=$(cat "$clusters"/*/ports 2>/dev/null | tr '\n' ' ') || true
  if [[ -n $port ]]; then
    port_free "$port" || die "--port $port is in use"
    [[ " $ports_taken " != *" $port "* ]] || die "--port $port belongs to another cluster"
    ports_taken+=" $port"
  fi
  if [[ -z $port ]]; then free_port; port=$REPLY; fi
  APISERVER_PORT=$port
  free_port; ETCD_PORT=$REPLY;  free_port; ETCD_PEER_PORT=$REPLY;  free_port; KCM_PORT=$REPLY
  free_port; SCHEDULER_PORT=$REPLY;  free_port; KWOK_PORT=$REPLY
  printf '%s\n' "$APISERVER_PORT" "$ETCD_PORT" "$ETCD_PEER_PORT" "$KCM_PORT" "$SCHEDULER_PORT" "$KWOK_PORT" >ports
  exec 7>&-
}

# ---- up ----

up() {
  local with_real_nodes=; if ((real_nodes)); then with_real_nodes=yes; fi
  ((real_nodes == 0)) || node_check
  lock
  if [[ -f $folder/cluster.env ]]; then already_up && return; fi
  [[ ! -d $folder ]] || { say "clearing what an interrupted \"up\" of \"$name\" left"; take_down; }
  "$here/build.sh" --k8s "$minor" --tools etcd,kwok,sim ${with_real_nodes:+--real-node} 8>&-
  say_assets
  command -v openssl >/dev/null || die "openssl is needed to make the cluster's certificates (Debian: apt-get install openssl)"

  local began=${EPOCHREALTIME/./}
  trap 'rc=$?; trap "" INT TERM; say "stopping what was started"; take_down; rm -f "$lock_file"; exit $rc' EXIT
  trap 'say "interrupted"; exit 130' INT TERM
  mkdir -p "$folder"; cd "$folder"; mkdir -p start pids logs etcd
  chmod 700 etcd
  [[ -z $until_pid ]] || take_down_after "$until_pid"
  CLUSTER_NAME=$name K8S_MINOR=$minor KUBECTL=$(program_path "$minor" kubectl) KUBECONFIG_FILE=$folder/kubeconfig
  choose_ports
  make_certs
  local c
  certificate_kubeconfig kubeconfig "https://127.0.0.1:$APISERVER_PORT" admin
  for c in kube-controller-manager kube-scheduler kwok; do certificate_kubeconfig "certs/$c.kubeconfig" "https://127.0.0.1:$APISERVER_PORT" "$c"; done
  write_config_files
  if ((real_nodes)); then write_egress; mapfile -t -O "${#apiserver_args[@]}" apiserver_args < <(node_apiserver_args); fi
  write_start_files
  [[ -n $kwok ]] || rm start/kwok start/leases
  [[ -n $scheduler ]] || rm start/kube-scheduler

  say "starting etcd $(unit_version etcd) and Kubernetes $(unit_version "$minor") as \"$name\" on port $APISERVER_PORT"
  start etcd;           await etcd || die "etcd did not start"
  start kube-apiserver; await kube-apiserver || die "kube-apiserver did not start"
  say "kube-apiserver is ready after $(seconds_since "$began") s"
  for c in $(started); do start "$c"; done
  for c in $(started); do await "$c" || die "$c did not start"; done
  await_default_account || die "the ServiceAccount \"default\" was not made in 60 s"
  if ((nodes)); then make_nodes; fi
  if ((real_nodes)); then make_real_nodes; fi
  write_env
  trap - EXIT INT TERM
  say "\"$name\" is ready after $(seconds_since "$began") s"
  echo "$folder/kubeconfig"
}

# take_down_after PID. A cluster of the same name that someone made in between has another PID in its file, and stays.
take_down_after() {
  echo "$1" >until
  (cd / && exec setsid --fork bash -c '
    mine() { [[ $(cat "$3/until" 2>/dev/null) == "$1" ]]; }
    while mine "$@" && kill -0 "$1" 2>/dev/null; do sleep 1; done
    ! mine "$@" || exec "$2" down --name "$4"' \
    take_down_after "$1" "$here/cluster.sh" "$folder" "$name" </dev/null >/dev/null 2>&1 8>&-)
}

say_assets() { # which programs are not ours, and of which version
  local program version
  for program in "${assets_programs[@]}"; do
    from_assets "$program" || continue
    # shellcheck disable=SC2046  # two words for kubectl, one for the others
    version=$("$KUBEBUILDER_ASSETS/$program" $([[ $program == kubectl ]] && echo version --client || echo --version) 2>/dev/null | head -n1) || true
    say "$program comes from KUBEBUILDER_ASSETS: $version"
    if [[ $program == kube-apiserver && $version != *" v$minor."* ]]; then
      say "warning: the other Kubernetes programs are $(unit_version "$minor"); a controller manager newer than its API server is not supported"
    fi
  done
}

seconds_since() { local d=$(((${EPOCHREALTIME/./} - $1) / 100000)); echo "$((d / 10)).$((d % 10))"; }

already_up() { # 0: it serves; 1: nothing of it runs any more, start afresh
  cd "$folder"; source ./cluster.env
  if [[ -z $(running) ]]; then say "nothing of \"$name\" runs any more, starting afresh"; take_down; return 1; fi
  if [[ $(running) != "$(started)" ]]; then
    die "\"$name\" is up, but these do not run: $(comm -13 <(running | sort) <(started | sort) | tr '\n' ' ')- start them (cluster.sh start) or take it down"
  fi
  [[ $K8S_MINOR == "$minor" ]] || die "\"$name\" is up already, with Kubernetes $K8S_MINOR: take it down first or use another --name"
  ((real_nodes == 0 || real_nodes == $(all_nodes | wc -l))) ||
    die "\"$name\" is up already, with $(all_nodes | wc -l) real nodes: take it down first or use another --name"
  say "\"$name\" is already up"
  echo "$folder/kubeconfig"
}

await_default_account() {
  local deadline=$((SECONDS + 60))
  until "$KUBECTL" --kubeconfig=kubeconfig get serviceaccount default -n default >/dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

make_real_nodes() {
  local i
  say "making real nodes: $real_nodes"
  write_network_files; start_network
  for ((i = 1; i <= real_nodes; i++)); do write_node_files $i; done
  # shellcheck disable=SC2046  # numbers
  start_nodes $(all_nodes)
  if [[ -n $scheduler ]]; then start_dns; else say "no CoreDNS: nothing would schedule its pods"; fi
}

make_nodes() { # plain ones; the simulator (test/sim) makes nodes with cards
  local i
  say "making $nodes nodes"
  for ((i = 0; i < nodes; i++)); do
    cat <<EOF
{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-$i","labels":{"kubernetes.io/hostname":"node-$i","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","sim.quartermaster.io/profile":"cpu"}},"status":{"capacity":{"cpu":"32","memory":"256Gi","pods":"110"},"allocatable":{"cpu":"32","memory":"256Gi","pods":"110"}}}
EOF
  done | "$KUBECTL" --kubeconfig=kubeconfig create -f - >/dev/null
  "$KUBECTL" --kubeconfig=kubeconfig wait --for=condition=Ready node -l sim.quartermaster.io/profile=cpu --timeout=120s >/dev/null
}

write_env() {
  local path dirs=() t
  dirs+=("$(dirname "$(program_path "$minor" kubectl)")" "$(unit_home "$minor")/bin")
  for t in "${tool_names[@]}"; do dirs+=("$(unit_home "$t")/bin"); done
  path=$(printf '%s\n' "${dirs[@]}" | awk '!seen[$0]++' | paste -sd:)
  { printf '%s=%q\n' CLUSTER_NAME "$name" K8S_MINOR "$minor" K8S_VERSION "$(unit_version "$minor")" \
      KUBECONFIG_FILE "$folder/kubeconfig" KUBECTL "$KUBECTL" PROGRAMS_PATH "$path" \
      APISERVER_PORT "$APISERVER_PORT" ETCD_PORT "$ETCD_PORT" ETCD_PEER_PORT "$ETCD_PEER_PORT" KCM_PORT "$KCM_PORT" \
      SCHEDULER_PORT "$SCHEDULER_PORT" KWOK_PORT "$KWOK_PORT" AUDIT_LOG "$folder/audit.log"
  } >cluster.env.new
  mv cluster.env.new cluster.env
}

# ---- the other verbs ----

down() {
  if [[ -n $all ]]; then
    [[ -n ${QUARTERMASTER_CLUSTERS:-} ]] || wrong "--all would end clusters that others started in $clusters: name yours, or keep them in a folder of your own with QUARTERMASTER_CLUSTERS"
    local n; for n in "$clusters"/*/; do if [[ -d $n ]]; then "$here/cluster.sh" down --name "$(basename "$n")"; fi; done
    return
  fi
  [[ -d $folder ]] || { say "no cluster \"$name\" is up"; return; }
  lock; take_down; rm -f "$lock_file"
  say "\"$name\" is down"
}

status() {
  if [[ -z $named ]]; then
    local n any= worst=0
    for n in "$clusters"/*/cluster.env; do if [[ -f $n ]]; then any=yes; "$here/cluster.sh" status --name "$(basename "$(dirname "$n")")" || worst=1; echo; fi; done
    [[ -n $any ]] || say "no cluster is up"
    return $worst
  fi
  enter
  echo "$CLUSTER_NAME: Kubernetes $K8S_VERSION, $KUBECONFIG_FILE"
  printf '%-24s %-9s %-9s %-7s %s\n' COMPONENT STATE PID PORT MEMORY
  local c pid state rc=0
  for c in "${components[@]}"; do
    local -A ports=([etcd]=$ETCD_PORT [kube-apiserver]=$APISERVER_PORT [kube-controller-manager]=$KCM_PORT [kube-scheduler]=$SCHEDULER_PORT [kwok]=$KWOK_PORT
      [leases]=-)
    [[ -f start/$c || $c != network && -z $(node_part "$c") ]] || continue
    [[ -f start/$c ]] || { printf '%-24s %-9s\n' "$c" "left out"; continue; }
    pid=$(pid_of "$c")
    if [[ -z $pid ]]; then printf '%-24s %-9s %-9s %-7s\n' "$c" stopped - "${ports[$c]:--}"; rc=1; continue; fi
    if answers "$c"; then state=ready; else state=unready rc=1; fi
    printf '%-24s %-9s %-9s %-7s %s MiB\n' "$c" "$state" "$pid" "${ports[$c]:--}" "$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")"
  done
  return $rc
}

print_env() { enter; printf 'export KUBECONFIG=%q PATH=%s:"$PATH"\n' "$KUBECONFIG_FILE" "$(printf %q "$PROGRAMS_PATH")"; }

change() { # stop, start or restart one component
  enter; lock; enter
  [[ -f start/$component ]] || die "\"$name\" was made without $component"
  if [[ $component == network || $(node_part "$component") == node ]]; then change_namespaces; return; fi
  [[ $verb == start ]] || stop "$component" "$signal"
  [[ $verb != stop ]] || return 0
  start "$component"; await "$component" || die "$component did not start"
}

change_namespaces() { # everything in a node's namespaces ends with them, as when a machine is switched off
  local c i; i=$(node_number "$component")
  if [[ $verb != start ]]; then
    if [[ $component != network ]]; then freeze_node "$i" no; fi # what is frozen does not end
    stop "$component" "$signal"; stop "$component-init" KILL
    if [[ $component != network ]]; then for c in "${node_parts[@]}"; do stop "$c$(suffix "$i")" "$signal"; done; fi
  fi
  [[ $verb != stop ]] || return 0
  if [[ $component == network ]]; then start_network; else start_nodes "$i"; fi
}

node_check() {
  local obstacle; obstacle=$(node_obstacle)
  [[ -z $obstacle ]] || die "no real node on this machine: $obstacle"
}

node_word() { # node-exec, node-image, node-freeze, node-thaw, node-forward
  local file resolved=() word end=
  if [[ $verb == node-image && ${words[1]} == --archive ]]; then
    file=$(readlink -f -- "${words[2]}") && [[ -f $file ]] || die "no file ${words[2]}"
  elif [[ $verb == node-image ]]; then # programs are named from where the caller is
    for word in "${words[@]}"; do
      [[ $word != -- ]] || end=yes
      if [[ -z $end && $word == ?*:/* ]]; then
        file=$(readlink -f -- "${word%%:*}") && [[ -f $file ]] || die "no file ${word%%:*}"
        word=$file:${word#*:}
      fi
      resolved+=("$word")
    done
  fi
  enter
  [[ -f start/network ]] || die "\"$name\" was made without real nodes"
  local i nodes pid; i=${node:-real-1}; i=${i#real-}; nodes=${node:+$i}
  [[ -f start/node$(suffix "$i") ]] || die "\"$name\" has no node $node"
  case $verb in
    node-exec) in_node "$i" env PATH="$(unit_home containerd)/bin:$PROGRAMS_PATH:$PATH" "${words[@]}" ;;
    node-image) nodes=${nodes:-$(all_nodes | xargs)}
      if [[ ${words[1]} == --archive ]]; then import_archive "$nodes" "${words[0]}" "$file"; else import_image "$nodes" "${resolved[@]}"; fi ;;
    node-freeze) freeze_node "$i" yes || die "$(node_name "$i") could not be frozen" ;;
    node-thaw) freeze_node "$i" no || die "$(node_name "$i") could not be thawed" ;;
    node-forward) pid=$(namespaces_of network) || exit; exec "$(real_node)" forward --pid "$pid" "${words[@]}" ;;
  esac
}

logs() {
  enter
  local files=() c
  for c in ${component:-$(started)}; do [[ ! -f logs/$c.log ]] || files+=("logs/$c.log"); done
  ((${#files[@]})) || die "no log of $component"
  exec tail -n "$lines" $follow "${files[@]}"
}

sa_kubeconfig() {
  enter
  local token base=$folder/serviceaccounts/$namespace.$serviceaccount
  token=$("$KUBECTL" --kubeconfig=kubeconfig create token "$serviceaccount" -n "$namespace" --duration="$duration") ||
    die "no token for ServiceAccount $namespace/$serviceaccount"
  (umask 077; mkdir -p serviceaccounts; echo -n "$token" >"$base.token.new"; mv "$base.token.new" "$base.token")
  if [[ -n $token_file ]]; then write_kubeconfig "$base.kubeconfig" "https://127.0.0.1:$APISERVER_PORT" "$serviceaccount" "tokenFile: $base.token"
  else write_kubeconfig "$base.kubeconfig" "https://127.0.0.1:$APISERVER_PORT" "$serviceaccount" "token: $token"; rm "$base.token"; fi
  echo "$base.kubeconfig"
}

case $verb in
  env) print_env ;;
  restart|stop|start) change ;;
  sa-kubeconfig) sa_kubeconfig ;;
  node-check) node_check ;;
  node-*) node_word ;;
  *) "$verb" ;;
esac
