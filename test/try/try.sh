#!/usr/bin/env bash
# The product to try: a real control plane with 40 simulated nodes, the chart, the operator under its own ServiceAccount, a kube-scheduler
# that asks it, and the console. objects/ has what is in the cluster. `./dev try` calls it after building everything it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
usage() { cat <<'H'
usage: ./dev try [--once] [--port PORT]
       ./dev try --env
       QM_PLUGINS=FOLDER ./dev try --real [--once] [--k8s 1.37|1.36|1.30]
Starts the whole product on this machine, without GPUs: a real Kubernetes control plane, 40 simulated nodes of six card models in all modes,
the chart, the operator, a kube-scheduler that asks it, and the console. Teams with quotas and prices have pods that run. Five pods wait,
each for another reason; one node waits for a pod before it changes its mode; one card is sick. You get the console's link and six commands
to type. Ctrl-C takes everything down.

  --once       prints the six commands with their answers, and why each of the five pods waits, and ends
  --port PORT  of the console; without it 8888, or a free one where that is taken. From another machine, first:
                 ssh -L PORT:127.0.0.1:PORT THIS-MACHINE
  --env        prints what another shell needs for the commands:   eval "$(./dev try --env)"
  --real       on two real nodes (kubelet, containerd, kube-proxy) with the operator as pods of its image: label a node, NVIDIA's device
               plugin starts there, and a container prints its card. FOLDER has NVIDIA's programs (test/plugins/README.md). Needs root.
               --k8s V takes that version of Kubernetes in place of the newest

Everything listens on 127.0.0.1 alone, takes about 2 GiB of memory, and leaves your other clusters and ~/.kube alone. Only --real needs root.
Simulated nodes run no containers, so kubectl logs and exec do not work there. What is in the cluster: test/try/objects.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 ended by Ctrl-C.
H
}
fail() { echo "try: $1" >&2; exit 1; }
wrong() { echo "try: $1 (see ./dev try --help)" >&2; exit 2; }
once='' k8s=1.37 port='' real='' env='' check='' arguments=("$@")
while [ $# -gt 0 ]; do case $1 in
  --once) once=1; shift ;;
  --env) env=1; shift ;;
  --real) real=1; shift ;;
  --check) check=1; shift ;;  # of ./dev: is it worth building?
  --k8s|--port) [ $# -gt 1 ] || wrong "$1 needs a value"
    case $1 in --k8s) k8s=$2 ;; --port) port=$2 ;; esac; shift 2 ;;
  --help|-h) usage; exit 0 ;;
  *) wrong "'$1' is not known; allowed are --once, --port, --env and --real" ;; esac; done
case $real:$k8s in 1:1.37|1:1.36|1:1.30|:1.37) ;; :*) wrong "--k8s goes with --real" ;; *) wrong "--k8s '$k8s' is not one of: 1.37, 1.36, 1.30" ;; esac
[[ $port =~ ^([1-9][0-9]{0,4})?$ ]] && [ "${port:-1}" -lt 65536 ] || wrong "--port '$port' is not a port: 1 to 65535"

clusters=${QUARTERMASTER_CLUSTERS:-${XDG_STATE_HOME:-$HOME/.local/state}/quartermaster/clusters}
running=$clusters/.try.running  # held by the one that runs, with its pid and the console's link
if [ -n "$env" ]; then
  [ -f "$clusters/try/env" ] || fail "no ./dev try runs here, or it is not ready yet: type ./dev try in another shell"
  cat "$clusters/try/env"
  exit 0
fi
[ -z "$real" ] || exec test/try/real.sh "${arguments[@]}"
mkdir -p "$clusters" 2>/dev/null && { exec 9>>"$running"; } 2>/dev/null || fail "$clusters cannot be written: name another folder in QUARTERMASTER_CLUSTERS"
if ! flock -n 9; then
  read -r pid link <"$running" || true
  fail "it runs already, as process ${pid:-?}. Its console: ${link:-not ready yet}
     In another shell: eval \"\$(./dev try --env)\"
     To end it: Ctrl-C where it runs, or kill ${pid:-PID}"
fi
is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
! is_taken "${port:-0}" || fail "port $port is taken by another program: choose another --port, or none, and a free one is found"
[ -z "$check" ] || exit 0

name=try namespace=quartermaster objects=test/try/objects quartermaster=$PWD/build/release/quartermaster
echo "$$" >"$running"
. test/try/steps.sh
cluster_up() { test/cluster/cluster.sh up --name "$name" --until $$; }
nodes_and_chart() {
  local chart fleet
  # As many of each profile as the file names.
  fleet=$(sed -n 's/.*kind: Node, .*name: \([a-z0-9]*\)-[0-9]*.*/\1/p' $objects/fleet.yaml | sort | uniq -c | awk '{ printf "%s%s=%d", (NR > 1 ? "," : ""), $2, $1 }')
  helm install quartermaster charts/quartermaster -n $namespace --create-namespace -f $objects/values.yaml & chart=$!
  sim nodes --kubeconfig "$KUBECONFIG" --profile "$fleet" && kubectl apply --server-side --field-manager=people -f $objects/fleet.yaml || return
  wait $chart
}
operator() {
  local kubeconfig metrics
  kubeconfig=$(test/cluster/cluster.sh sa-kubeconfig --name "$name" --namespace $namespace --serviceaccount quartermaster --duration 24h | tail -1) || return
  metrics=127.0.0.1:$(free_port) extender=127.0.0.1:$(free_port)
  start operator env POD_NAMESPACE=$namespace "$quartermaster" controller --kubeconfig "$kubeconfig" --metrics-address "$metrics" \
    --extender-address "$extender" --usage-checkpoint 5
  start plugins sim plugins --kubeconfig "$KUBECONFIG"
  start console "$quartermaster" console --kubeconfig "$KUBECONFIG" --listen "127.0.0.1:$port" -n $namespace
  kubectl wait crd --for=condition=Established --timeout=30s acceleratorpolicies.quartermaster.io acceleratorquotas.quartermaster.io || return
  kubectl apply -f $objects/namespaces.yaml -f $objects/declarations.yaml -f $objects/policy.yaml || return # one declaration is wrong: Deny refuses it
  kubectl patch acceleratorpolicy default --type merge -p '{"spec": {"scheduler": {"mode": "Dedicated"}}}' || return
  wait_for 30 curl -fs "http://$metrics/readyz"
}
enrolled() { wait_for 120 all_enrolled; }
all_enrolled() { # except for the one that asks for vgpus
  [ "$(kubectl get anode --no-headers | grep -cw Ready)" -eq "$(grep nvidia-device-enable: $objects/fleet.yaml | grep -cv vgpus)" ]
}
# The operator makes a Deployment for its kube-scheduler. Its pods are simulated, so the program runs here, with the file that they would read.
scheduler() {
  local folder=$work/scheduler kubeconfig
  mkdir "$folder"
  wait_for 30 kubectl get configmap -n $namespace quartermaster-scheduler || return
  kubectl get secret -n $namespace quartermaster-extender-client -o json | jq -r '.data | to_entries[] | "\(.key) \(.value)"' |
    while read -r key value; do base64 -d <<<"$value" >"$folder/$key"; done
  kubeconfig=$(test/cluster/cluster.sh sa-kubeconfig --name "$name" --namespace $namespace --serviceaccount quartermaster-scheduler --duration 24h | tail -1) || return
  { kubectl get configmap -n $namespace quartermaster-scheduler -o jsonpath='{.data.scheduler-config\.yaml}' |
      sed -e "s|https://quartermaster-extender.$namespace.svc/|https://$extender/|" -e "s|/etc/quartermaster/extender/|$folder/|"
    echo "clientConnection: {kubeconfig: $kubeconfig}"; } >"$folder/config.yaml"
  start scheduler kube-scheduler --config="$folder/config.yaml" --authentication-kubeconfig="$kubeconfig" \
    --authorization-kubeconfig="$kubeconfig" --bind-address=127.0.0.1 --secure-port="$(free_port)" --cert-dir="$folder"
  wait_for 60 sends_pods
}
sends_pods() {
  [ "$(kubectl create --dry-run=server -o jsonpath='{.spec.schedulerName}' -f - <<P
{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default},
 spec: {containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}
P
  )" = quartermaster ]
}
workloads() {
  kubectl apply -f $objects/workloads.yaml || return
  wait_for 60 all_run
}
all_run() { kubectl get deployments -A -o json | jq -e '[.items[] | select(.metadata.namespace != "'$namespace'") | .status.readyReplicas == .spec.replicas] | all'; }
waiting() {
  kubectl apply -f $objects/waiting.yaml || return
  wait_for 60 five_wait
}
five_wait() { kubectl get pods -A -o json | jq -e '[.items[] | select(.status.conditions[]? | .reason == "Unschedulable")] | length == 5'; }
change_and_sick_card() {
  kubectl label node v100-0 nvidia-device-enable=share --overwrite || return
  kubectl apply --server-side --subresource=status --field-manager=quartermaster-agent -f $objects/cards.yaml || return
  wait_for 30 drains
}
drains() { [ "$(kubectl get anode v100-0 -o jsonpath='{.status.phase}')" = Draining ]; }
refusal() {
  wait_for 30 refuses || return
  kubectl create --dry-run=server -f $objects/refused.yaml >"$work/refused" 2>&1 || true
}
refuses() { ! kubectl create --dry-run=server -f $objects/refused.yaml; }
console() { wait_for 30 grep -q 'http://' "$work/console.log"; }
counted() { [ "$("$quartermaster" report chargeback | cut -d' ' -f1 | sort -u | grep -cE '^(training|inference)$')" = 2 ]; }

# The commands, and what each shows. The test of this script types them as they stand here.
commands=(
  "quartermaster inspect nodes"
  "the fleet: the mode of each node, how far it is, how many cards are free, and why a node has no mode (t4-8: a typing mistake)"
  "quartermaster explain pod training/eight-cards"
  "why a pod waits, and the smallest change that helps; the four others: kubectl get pods -A --field-selector=status.phase=Pending"
  "quartermaster verify v100-0"
  "a change of mode that waits for a pod; it goes on once you type: kubectl scale deployment finetune -n research --replicas=0"
  "quartermaster top cards l40s-1"
  "who has how much of each card of a node; the first card is sick, and GPU-Manager's plugin would take it: no share goes to this node"
  "quartermaster report chargeback"
  "who has held which cards, up to ten seconds ago, and what it costs; the limits of each team: kubectl get acceleratorquotas -A"
  "kubectl label node t4-9 nvidia-device-enable=share && kubectl wait node/t4-9 --for=jsonpath='{.status.allocatable.nvidia\.com/gpu\.shared}'=40 --timeout=60s"
  "the main job: a label becomes a device plugin, and the node offers shares of its cards"
)
answer() { # answer COMMAND: as a person would see it. Some end with an exit code of their own.
  printf '%s\n' "$(bold "\$ $1")"
  (eval "$1") 2>&1 9>&- || true
  echo
}

printf '%s\n' "$(bold 'Quartermaster to try, on a real Kubernetes') $k8s" >&2
step "control plane: etcd, API server, controllers, scheduler, KWOK" cluster_up
eval "$(test/cluster/cluster.sh env --name "$name" 9>&-)"
export PATH=${quartermaster%/*}:$PATH
step "40 nodes of six card models, with labels; helm install" nodes_and_chart
[ -n "$port" ] || { port=8888; ! is_taken $port || port=$(free_port); }
step "operator leads; policy, four teams with quotas, declarations" operator
step "each node has the plugin of its mode" enrolled
step "kube-scheduler asks the operator" scheduler
step "twelve workloads run" workloads
step "five pods wait, each for another reason" waiting
step "a node waits for a pod to change its mode; a card is sick" change_and_sick_card
step "a pod that breaks a declared rule is refused" refusal
step "console" console
link=$(grep -o 'http://[^ ]*' "$work/console.log")

if [ -n "$once" ]; then
  step "the time of cards is counted, ten seconds behind" wait_for 60 counted
  echo
  for ((i = 0; i < ${#commands[@]}; i += 2)); do answer "${commands[i]}"; done
  for pod in $(sed -n 's/^metadata: {name: \(.*\), namespace: \(.*\)}/\2\/\1/p' $objects/waiting.yaml); do
    [ "$pod" = training/eight-cards ] || answer "quartermaster explain pod $pod"
  done
  answer "kubectl create -f $objects/refused.yaml"
  answer "quartermaster inspect resources"
  times
  exit 0
fi
{ test/cluster/cluster.sh env --name "$name" 9>&-; printf 'export PATH=%q:$PATH\n' "${quartermaster%/*}"; } >"$work/env"
mv "$work/env" "$clusters/try/env"
echo "$$ $link" >"$running"
cat <<T

$(bold "The console:") $link
  The link signs you in, as the cluster's administrator. What others would see: docs/console.md, "Who sees what?"

$(bold "Six commands.") In another shell, in this folder, first: eval "\$(./dev try --env)"
T
for ((i = 0; i < ${#commands[@]}; i += 2)); do printf '\n  %s\n      %s\n' "${commands[i]}" "${commands[i + 1]}"; done
cat <<T

Ready after $(since "$begin") s. Logs: $work
Everything stays until $(bold Ctrl-C).
T
keep
