#!/bin/bash
# cluster_test.sh [--real-nodes] [1.37|1.36|1.30]...: does the test cluster do what its help says? Starts clusters in its own folder and leaves
# nothing behind. --real-nodes: only the checks of real nodes, which it makes last.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
real_only=; if [[ ${1:-} == --real-nodes ]]; then real_only=yes; shift; fi
versions=("$@"); ((${#versions[@]})) || versions=(1.37)
QUARTERMASTER_CLUSTERS=$(mktemp -d); export QUARTERMASTER_CLUSTERS
. ./layout.sh
real_node() { echo "$(unit_home node)/bin/real-node"; }
trap './cluster.sh down --all 2>/dev/null; rm -rf "$QUARTERMASTER_CLUSTERS"' EXIT
passed=0 failed=0

# check SENTENCE COMMAND...: the command must succeed.
check() {
  local sentence=$1 output; shift
  if output=$("$@" 2>&1); then passed=$((passed + 1)); echo "ok    $sentence"
  else failed=$((failed + 1)); echo "FAIL  $sentence"; sed 's/^/      /' <<<"$output" | tail -n 15; fi
}
# soon SECONDS COMMAND...: the command must succeed within the time.
soon() { local end=$((SECONDS + $1)); shift; until "$@"; do ((SECONDS < end)) || return 1; sleep 0.2; done; }
# refuses PATTERN COMMAND...: exit code 2 and one line that matches.
refuses() {
  local pattern=$1 output rc; shift
  output=$("$@" 2>&1); rc=$?
  echo "$output"; [[ $rc == 2 && $(wc -l <<<"$output") == 1 && $output =~ $pattern ]]
}
is() { [[ $1 == "$2" ]] || { echo "'$1' is not '$2'"; return 1; }; }
jsonpath() { kubectl get "${@:2}" -o "jsonpath=$1"; }
no_process_of() { ! grep -lsz "$1" /proc/[0-9]*/cmdline; }

control_plane_checks() {
  check "an unknown verb is refused in one line"       refuses "unknown verb 'upp'" ./cluster.sh upp
  check "an unknown option is refused in one line"     refuses "unknown option '--nods'" ./cluster.sh up --nods 3
  check "an unknown Kubernetes version names those there are" refuses "not one of: 1.37 1.36 1.30" ./cluster.sh up --k8s 1.29
  check "an option of another verb is refused"         refuses "'down' does not take --port" ./cluster.sh down --port 1
  check "no real node at all is refused"               refuses "--real-nodes 0 is none of 1 to" ./cluster.sh up --real-nodes 0
  check "an unknown component is refused"              refuses "not a component" ./cluster.sh restart kube-proxies
  check "a name that is a path is refused"             refuses "lower case" ./cluster.sh up --name ../x
  check "down --all is refused where others may have clusters" refuses "clusters that others started" env -u QUARTERMASTER_CLUSTERS ./cluster.sh down --all
  check "down without a cluster is no error"           ./cluster.sh down

  local version name component signal pid rc
  for version in "${versions[@]}"; do
    name=t-${version/./-}
    up() { kubeconfig=$(./cluster.sh up --name "$name" --k8s "$version" --nodes 2 --kcm-arg=--node-monitor-grace-period=15s --apiserver-arg=--v=1 --audit-bodies); }
    began=$SECONDS
    up || exit 1
    eval "$(./cluster.sh env --name "$name")"
    echo "      $version is up after $((SECONDS - began)) s"
    check "$version: the last line of up is the kubeconfig"  is "$kubeconfig" "$KUBECONFIG"
    check "$version: the server says its version"            grep -q "Server Version: v$version\." <(kubectl version)
    check "$version: a second up says the cluster is up"     grep -q "already up" <(./cluster.sh up --name "$name" --k8s "$version" 2>&1)
    check "$version: every component is ready"               ./cluster.sh status --name "$name"

    kubectl apply -f - >/dev/null <<'EOF'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere, namespace: kube-system}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      containers: [{name: main, image: none, securityContext: {privileged: true}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: two}}
  template:
    metadata: {labels: {app: two}}
    spec:
      containers: [{name: main, image: none, resources: {requests: {cpu: 1}}}]
EOF
    check "$version: DaemonSet pods run on the nodes"        kubectl -n kube-system rollout status daemonset/everywhere --timeout=20s
    check "$version: scheduled pods run"                     kubectl rollout status deployment/two --timeout=20s

    account() { kubectl --kubeconfig="$(./cluster.sh sa-kubeconfig --name "$name" --namespace default --serviceaccount default "$@")" auth whoami; }
    check "$version: a ServiceAccount's kubeconfig is that account" grep -q system:serviceaccount:default:default <(account)
    check "$version: also with a token file"                 grep -q system:serviceaccount:default:default <(account --token-file --duration 10m)
    check "$version: the audit log has writes"               grep -q '"verb":"create"' "${KUBECONFIG%/*}/audit.log"
    check "$version: with --audit-bodies it has what pods were answered" grep -q '"resource":"pods".*"responseObject":{"kind":"Pod"' "${KUBECONFIG%/*}/audit.log"
    check "$version: the audit log has no reads"             bash -c '! grep -q "\"verb\":\"\(get\|list\|watch\)\"" "$1"' _ "${KUBECONFIG%/*}/audit.log"

    for component in kube-apiserver etcd kube-controller-manager kube-scheduler kwok leases; do
      check "$version: $component comes back after SIGKILL"  ./cluster.sh restart "$component" --name "$name" --signal KILL
    done
    check "$version: what was there is still there"          soon 10 is "$(jsonpath '{.items[*].metadata.name}' nodes)" "node-0 node-1"
    check "$version: and new pods run"                       bash -c 'kubectl scale deployment/two --replicas=4 && kubectl rollout status deployment/two --timeout=30s'
    kubectl label node node-1 kwok.x-k8s.io/node=ignore >/dev/null
    check "$version: a node that KWOK ignores is lost"  kubectl wait node/node-1 --for=condition=Ready=Unknown --timeout=60s
    kubectl label node node-1 kwok.x-k8s.io/node- >/dev/null
    check "$version: and comes back"                         kubectl wait node/node-1 --for=condition=Ready=True --timeout=30s
    check "$version: and its pods are ready again"           soon 20 is "$(kubectl get pods -A --no-headers | grep -vc ' 1/1 ')" 0

    ./cluster.sh stop scheduler --name "$name"
    check "$version: a stopped component shows in status"    bash -c '! ./cluster.sh status --name "$1"' _ "$name"
    check "$version: up says which component does not run"   bash -c './cluster.sh up --name "$1" --k8s "$2" 2>&1 | grep "do not run: kube-scheduler"' _ "$name" "$version"
    ./cluster.sh start scheduler --name "$name"
    check "$version: another version under the same name is refused" bash -c '! ./cluster.sh up --name "$1" --k8s "$2"' _ "$name" "$([[ $version == 1.30 ]] && echo 1.37 || echo 1.30)"
  done

  # Interrupted while the API server starts: nothing of it may stay.
  for signal in INT TERM; do
    # a background job of a script ignores SIGINT, so the signal's default is put back first
    python3 -c 'import os,signal,sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
      ./cluster.sh up --name interrupted >/dev/null 2>&1 & pid=$!
    soon 20 test -f "$QUARTERMASTER_CLUSTERS/interrupted/pids/kube-apiserver"
    kill -$signal $pid; wait $pid; rc=$?
    check "up ended by SIG$signal fails"                     is $rc 130
    check "and leaves no process"                            no_process_of "$QUARTERMASTER_CLUSTERS/interrupted"
    check "and no folder"                                    test ! -e "$QUARTERMASTER_CLUSTERS/interrupted"
  done

  # Killed so that it cannot clean up: the next `up` cleans up.
  ./cluster.sh up --name killed >/dev/null 2>&1 & pid=$!
  soon 20 test -f "$QUARTERMASTER_CLUSTERS/killed/pids/kube-apiserver"
  kill -KILL $pid; wait $pid 2>/dev/null
  check "after an up that was killed, up works"              ./cluster.sh up --name killed --no-kwok --no-scheduler
  check "status shows what was left out"                     grep -q "kwok *left out" <(./cluster.sh status --name killed)
  check "two ups of one name at once make one cluster"       bash -c './cluster.sh up --name twice 2>/dev/null >"$1/a" & ./cluster.sh up --name twice 2>/dev/null >"$1/b"; wait $!; cmp "$1/a" "$1/b"' _ "$QUARTERMASTER_CLUSTERS"

  ./cluster.sh down --all 2>/dev/null
  check "down --all leaves no process"                       no_process_of "$QUARTERMASTER_CLUSTERS"
  # shellcheck disable=SC2010  # names we made ourselves
  check "and no file"                                        is "$(ls -A "$QUARTERMASTER_CLUSTERS" | grep -vx 'a\|b\|.ports.lock')" ""

}

# ---- real nodes ----

# machine: all that a cluster could leave behind on it, outside its folder.
machine() { # CLUSTER'S FOLDER
  ip -oneline link | cut -d: -f2; ip -oneline address; ip route show table all; ip netns
  nft list ruleset
  cut -d' ' -f4- /proc/self/mountinfo | sort
  find /sys/fs/cgroup -type d -name "quartermaster-$(sha256sum <<<"$1" | cut -c1-12)"
  sysctl -a 2>/dev/null | grep -E '^(net\.(ipv4\.(ip_forward|conf)|bridge|netfilter\.nf_conntrack_(max|tcp_timeout))|vm\.(overcommit|panic)|kernel\.(panic|keys))'
}
namespace() { readlink "/proc/$1/ns/net"; }
first_process() { cut -d' ' -f1 "$QUARTERMASTER_CLUSTERS/$name/pids/$1-init"; } # of the namespaces of node, node-2, network
birth() { sed -E 's/.*\) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
# processes_of node|node-2|network: lines "PID BIRTH", because the kernel uses the numbers of namespaces and processes again.
processes_of() {
  local in file pid; in=$(namespace "$(first_process "$1")")
  for file in /proc/[0-9]*; do
    pid=${file#/proc/}
    if [[ $(namespace "$pid" 2>/dev/null) == "$in" ]]; then echo "$pid $(birth "$pid")"; fi
  done
}
have_ended() { local pid born; while read -r pid born; do [[ $(birth "$pid") != "$born" ]] || { echo "process $pid"; return 1; }; done <<<"$1"; } # LINES

# in_pod POD COMMAND...: what a pod that runs the command says. It has curl and getent; POD is one of pods_of_tests.
pods_of_tests() {
  local i
  for i in 1 2; do
    cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: on-$i, namespace: default, labels: {app: asks}}
spec:
  nodeName: real-$i
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "example.test/asks:1", imagePullPolicy: Never}]
---
EOF
  done
}
in_pod() { kubectl exec "$1" -- "${@:2}"; }
api_address() { in_pod "$1" /bin/getent hosts kubernetes.default.svc.cluster.local | awk '{ print $1 }'; }
answers() { [[ $(in_pod "$1" /bin/curl -sk --max-time 5 "$2") == *"$3"* ]]; } # POD URL PATTERN
dns_pod_on() { kubectl get pods -n kube-system -l k8s-app=kube-dns -o jsonpath="{.items[?(@.spec.nodeName==\"$1\")].status.podIP}"; }

real_node_checks() {
  local version name before left part i began
  for version in "${versions[@]}"; do
    name=r-${version/./-}
    before=$(machine "$QUARTERMASTER_CLUSTERS/$name")
    began=$SECONDS
    check "$version: two real nodes come up"               ./cluster.sh up --name "$name" --k8s "$version" --real-nodes 2 --nodes 1
    echo "      $version is up with two real nodes after $((SECONDS - began)) s"
    eval "$(./cluster.sh env --name "$name")"
    check "$version: all nodes are Ready"                  kubectl wait --for=condition=Ready node real-1 real-2 node-0 --timeout=5s
    check "$version: every component is ready"             ./cluster.sh status --name "$name"
    check "$version: there is a name server on each node"  test -n "$(dns_pod_on real-1)" -a -n "$(dns_pod_on real-2)"
    check "$version: an image for both nodes"              ./cluster.sh node-image --name "$name" example.test/asks:1 "$(real_node)":/pause /usr/bin/curl:/bin/curl /usr/bin/getent:/bin/getent -- /pause pause
    pods_of_tests | kubectl apply -f - >/dev/null
    check "$version: pods run on both nodes"               kubectl wait --for=condition=Ready pod on-1 on-2 --timeout=20s
    for i in 1 2; do
      check "$version: a pod on real-$i resolves a Service" is "$(api_address on-$i)" 10.96.0.1
      check "$version: and reaches it by its name"         answers on-$i https://kubernetes.default.svc/healthz ok
      check "$version: and a pod on the other node by its address" answers on-$i "http://$(dns_pod_on real-$((3 - i))):8181/ready" OK
      check "$version: and a pod on its own node"          answers on-$i "http://$(dns_pod_on real-$i):8181/ready" OK
    done
    kubectl create service clusterip health -n kube-system --tcp=80:8080 --dry-run=client -o yaml | kubectl set selector --local -f - k8s-app=kube-dns -o yaml | kubectl create -f - >/dev/null
    check "$version: a new Service answers"                soon 10 answers on-2 http://health.kube-system.svc/health OK
    kubectl delete service health -n kube-system >/dev/null
    check "$version: and does not when it is gone"         soon 10 bash -c '! kubectl exec on-2 -- /bin/curl -s --max-time 1 http://health.kube-system.svc/health'

    ./cluster.sh node-freeze --name "$name" --node real-2
    check "$version: a frozen node's pod does not answer"  bash -c '! timeout 3 kubectl exec on-2 -- /bin/getent hosts localhost'
    check "$version: the other node's does"                in_pod on-1 /bin/getent hosts localhost
    ./cluster.sh node-thaw --name "$name" --node real-2
    check "$version: and when it is thawed it does"        in_pod on-2 /bin/getent hosts localhost
    check "$version: a killed network is made again"       ./cluster.sh restart network --name "$name" --signal KILL
    check "$version: and pods reach each other again"      soon 10 answers on-2 "http://$(dns_pod_on real-1):8181/ready" OK
    left=$(processes_of node-2)
    check "$version: a killed node comes back"             ./cluster.sh restart node-2 --name "$name" --signal KILL
    check "$version: and nothing of before is left"        have_ended "$left"
    check "$version: and its pod runs again"               soon 30 answers on-2 "http://$(dns_pod_on real-1):8181/ready" OK

    left=$(for part in network node node-2; do processes_of $part; done)
    check "$version: the nodes have processes"             test "$(wc -l <<<"$left")" -gt 10
    kill -KILL "$(cut -d' ' -f1 "$QUARTERMASTER_CLUSTERS/$name/pids/node")"    # the parent of real-1's namespaces
    ./cluster.sh node-freeze --name "$name" --node real-2                      # one that is frozen must go, too
    check "$version: down, after a node was killed and one frozen" ./cluster.sh down --name "$name"
    check "$version: no process of it is left"             no_process_of "$QUARTERMASTER_CLUSTERS/$name/"
    check "$version: nor any of the nodes'"                have_ended "$left"
    check "$version: the machine is as before"             diff <(echo "$before") <(machine "$QUARTERMASTER_CLUSTERS/$name")
  done
}

if [[ -z $real_only ]]; then control_plane_checks; fi
if obstacle=$(./cluster.sh node-check 2>&1); then real_node_checks; else echo "skip  real nodes: $obstacle"; [[ -z $real_only ]] || exit 77; fi

echo "$passed passed, $failed failed"
((failed == 0))
