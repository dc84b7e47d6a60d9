#!/usr/bin/env bash
# The main job, shown step by step: a real control plane, 8 simulated nodes, the operator under its own ServiceAccount. The demo labels
# nodes, declares resources, and prints what people want to see. `./dev demo` calls it after building everything it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
usage() { cat <<'H'
usage: ./dev demo [--once] [--k8s 1.37|1.36|1.30]
       QM_PLUGINS=FOLDER ./dev demo --real [--once] [--k8s 1.37|1.36|1.30]
Shows the main job on a real control plane with 8 simulated nodes: label a node, declare a resource, see what happens.
  --once   print it and clean up; without it the cluster stays until Ctrl-C, with commands to try
  --real   on two real nodes (kubelet, containerd, kube-proxy) with the operator as pods of its image: label a node, NVIDIA's device plugin
           starts there, and a container prints the card that it was given. FOLDER has NVIDIA's programs (test/plugins/README.md). Needs root.
H
}
once='' k8s=1.37 arguments=("$@")
while [ $# -gt 0 ]; do case $1 in
  --once) once=1; shift ;;
  --real) exec test/demo/real.sh "${arguments[@]}" ;;
  --k8s) [ $# -gt 1 ] || { echo "demo: --k8s needs a value, such as 1.37" >&2; exit 2; }; k8s=$2; shift 2 ;;
  --help|-h) usage; exit 0 ;;
  *) echo "demo: unknown argument '$1'" >&2; usage >&2; exit 2 ;; esac; done

name=demo-$$ namespace=quartermaster objects=test/demo/objects
. test/demo/steps.sh
cluster_up() { test/cluster/cluster.sh up --name "$name" --k8s "$k8s"; }
eight_nodes() {
  "$SIM" nodes --kubeconfig "$KUBECONFIG" --profile t4=2,v100=1,a100=1,h100=1,l40s=1,mi300x=1,ascend910b=1
  wait_for 30 bash -c '[ "$(kubectl get nodes --no-headers | grep -cw Ready)" -eq 8 ]'
}
install_chart() { helm install quartermaster charts/quartermaster -n $namespace --create-namespace --set replicaCount=0; }
start_operator() {
  test/cluster/cluster.sh sa-kubeconfig --name "$name" --namespace $namespace --serviceaccount quartermaster --duration 24h >"$work/sa"
  local address; address=127.0.0.1:$(free_port)
  POD_NAMESPACE=$namespace build/release/quartermaster controller --kubeconfig "$(tail -1 "$work/sa")" --metrics-address "$address" \
    >"$work/operator.log" 2>&1 &
  started+=($!); echo "$address" >"$work/address"
  wait_for 20 curl -fs "http://$address/readyz"
}
start_plugins() { "$SIM" plugins --kubeconfig "$KUBECONFIG" >"$work/sim.log" 2>&1 & started+=($!); }
apply_policy() {
  kubectl apply -f $objects/policy.yaml
  wait_for 15 bash -c '[ "$(kubectl get ds -A -l app.kubernetes.io/managed-by=quartermaster --no-headers | wc -l)" -ge 3 ]'
}
apply_declarations() {
  kubectl apply -f $objects/declarations.yaml
  wait_for 15 bash -c '[ "$(kubectl get cm -n kube-public -o json | jq "[.items[]|select(.metadata.annotations[\"quartermaster.io/verdict\"])]|length")" -eq 9 ]'
}
label_nodes() {
  kubectl label node "${nodes[0]}" nvidia-device-enable=pgpu
  kubectl label node "${nodes[1]}" nvidia-device-enable=vGPU
  kubectl label node "${nodes[2]}" nvidia-device-enable=mps
  kubectl label node "${nodes[3]}" nvidia-device-enable=vgpus
  wait_for 60 bash -c '[ "$(kubectl get anode -o json | jq "[.items[]|select(.status.phase==\"Ready\")]|length")" -ge 3 ]'
}

# pod JSON-OF-LIMITS: the API server's answer to such a pod. The pod is not created.
pod() {
  kubectl create --dry-run=server -o json -f - <<P 2>&1
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"try"},"spec":{"containers":[{"name":"main","image":"x","resources":{"limits":$1}}]}}
P
}
try_pods() {
  kubectl patch acceleratorpolicy default --type merge -p '{"spec":{"customResources":{"enforcement":"Deny"}}}'
  wait_for 15 bash -c '[ "$(kubectl get resourcerules default -o json | jq ".spec.keys|length")" -ge 2 ]'
  refused() { ! pod '{"tencent.com/vcuda-core":"150"}' | grep -q '"kind": "Pod"'; }
  wait_for 15 refused
  local limits answer
  for limits in '{"tencent.com/vcuda-core":"30","tencent.com/vcuda-memory":"4"}' '{"tencent.com/vcuda-core":"200"}' \
    '{"tencent.com/vcuda-core":"30"}' '{"tencent.com/vcuda-core":"150","tencent.com/vcuda-memory":"4"}'; do
    answer=$(pod "$limits" | sed '/^Warning:/d' || true)
    if jq -e . >/dev/null 2>&1 <<<"$answer"; then answer="accepted"; else answer="refused: ${answer##*denied request: }"; fi
    printf '  %s\n      %s\n' "$limits" "$answer" >>"$work/pods"
  done
}

printf '%s\n' "$(bold 'Quartermaster: the main job on a real Kubernetes') $k8s" >&2
step "control plane up (etcd, API server, controllers, scheduler, KWOK)" cluster_up
eval "$(test/cluster/cluster.sh env --name "$name")"
SIM=$(command -v sim) || { echo "demo: the simulator is not on the PATH of ./dev cluster env" >&2; exit 1; }
step "8 nodes: 2 T4, V100, A100, H100, L40S, MI300X, Ascend 910B" eight_nodes
mapfile -t nodes < <(kubectl get nodes -o name | sed 's|node/||' | grep -vE 'mi300|ascend' | sort)
start_plugins
step "chart installed: CRDs, ServiceAccount, RBAC" install_chart
step "operator ready, under its own ServiceAccount" start_operator
step "policy: pgpu, vgpu and mps on; three DaemonSets made" apply_policy
step "three declarations applied and judged" apply_declarations
step "four nodes labelled (one wrongly); three enrolled" label_nodes
step "enforcement: Deny; four pods tried against the rules" try_pods

echo; bold "Nodes"; echo
kubectl get acceleratornodes -o wide
echo; bold "What they offer now"; echo
kubectl get nodes -o json | jq -r '.items[] | [.metadata.name, (.metadata.labels["nvidia-device-enable"] // "-"),
  ([.status.allocatable | to_entries[] | select(.key | test("/")) | select(.value != "0") | "\(.key)=\(.value)"] | join(" "))] | @tsv' |
  column -t -s $'\t' -N NODE,LABEL,ALLOCATABLE
echo; bold "DaemonSets"; echo
kubectl get ds -A -l app.kubernetes.io/managed-by=quartermaster
echo; bold "Declarations and what we say of them"; echo
kubectl get cm -n kube-public -o json | jq -r '.items[] | select(.metadata.annotations["quartermaster.io/verdict"]) |
  . as $cm | (.metadata.annotations["quartermaster.io/verdict"] | fromjson) as $v |
  "\($cm.metadata.name): \($v.verdict)", ($v.findings[]? | "    \(.severity): \(.message)")'
echo; bold "Pods held to them, by the API server itself (container limits, and what it says)"; echo
cat "$work/pods"
echo; bold "Events"; echo
kubectl get events -A --sort-by=.metadata.creationTimestamp -o json | jq -r '.items[] |
  select((.reportingComponent // "") | startswith("quartermaster")) |
  [.type, "\(.involvedObject.kind)/\(.involvedObject.name)", .reason, .message[0:150]] | @tsv' | column -t -s $'\t' -N TYPE,OBJECT,REASON,NOTE
times
operator=${started[1]}
printf '\n  operator: %s KiB resident, %s s of CPU so far\n' "$(awk '/VmRSS/ {print $2}' "/proc/$operator/status")" \
  "$(awk '{printf "%.2f", ($14 + $15) / 100}' "/proc/$operator/stat")"
[ -n "$once" ] && exit 0
cat <<T

$(bold "The cluster is yours until Ctrl-C.") In another shell:
  export KUBECONFIG=$KUBECONFIG PATH=$(dirname "$(command -v kubectl)"):$(dirname "$(command -v helm)"):\$PATH
  kubectl label node ${nodes[3]} nvidia-device-enable=mps --overwrite && sleep 3 && kubectl get anode -o wide
  kubectl run try --image=x --overrides='{"spec":{"containers":[{"name":"main","image":"x","resources":{"limits":{"tencent.com/vcuda-core":"150"}}}]}}'
  kubectl patch apol default --type merge -p '{"spec":{"modules":{"vgpu":{"enabled":false}}}}' && kubectl get ds -A
The operator's log is $work/operator.log, its metrics are at http://$(cat "$work/address")/metrics
T
while :; do sleep 3600 & started+=($!); wait $!; done
