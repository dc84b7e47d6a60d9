#!/usr/bin/env bash
# The main job on real nodes: the operator as pods of its image, NVIDIA's device plugin as the operator starts it, and containers that print
# the cards they were given. Card, driver and NVIDIA's container runtime are stand-ins (test/nvml, test/plugins/runtime).
# `./dev try --real` calls it after building everything it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
once='' k8s=1.37 check=''
while [ $# -gt 0 ]; do case $1 in
  --real) shift ;;
  --once) once=1; shift ;;
  --check) check=1; shift ;;
  --k8s) k8s=${2:-}; shift 2 ;;
  *) echo "try: unknown argument '$1' (see ./dev try --help)" >&2; exit 2 ;; esac; done
fail() { echo "try: $1" >&2; exit 1; }
[ -n "${QM_PLUGINS:-}" ] || fail "QM_PLUGINS names no folder with NVIDIA's programs, which --real needs (test/plugins/README.md)"
QM_PLUGINS=$(readlink -f "$QM_PLUGINS")
for program in nvidia-device-plugin gpu-feature-discovery config-manager; do
  [ -x "$QM_PLUGINS/$program" ] || fail "QM_PLUGINS has no program $QM_PLUGINS/$program that can be started (test/plugins/README.md)"
done
[ -z "$check" ] || exit 0

name=try-real-$$ namespace=quartermaster registry=quartermaster.test worker=real-2 nvml=$PWD/build/dev/nvml
. test/try/steps.sh
tell() {
  kubectl get acceleratornodes,pods -A -o wide
  kubectl get events -A -o json | jq -r '.items[] | select(.type == "Warning") | "\(.involvedObject.name): \(.message)"' | sort -u
}
cluster() { local verb=$1; shift; test/cluster/cluster.sh "$verb" --name "$name" "$@"; }
# What the driver's library and nvidia-smi take from an image.
libraries=(/lib64/ld-linux-x86-64.so.2:/lib64/ld-linux-x86-64.so.2)
for library in libm.so.6 libdl.so.2 libpthread.so.0 libc.so.6; do libraries+=("/lib/x86_64-linux-gnu/$library:/lib/x86_64-linux-gnu/$library"); done

cluster_up() { cluster up --until $$ --k8s "$k8s" --real-nodes 2 --no-kwok; }
cards() {
  mkdir "$work/node"
  cp test/nvml/fixtures/models.json "$work/node/"
  cp test/nvml/fixtures/t4_pair.json "$work/node/node.json"
  cluster node-exec --node $worker "$PWD/test/nvml/node.sh" "$work/node" "$nvml/libnvidia-ml.so.1" "$nvml/nvidia-smi"
}
# As an administrator sets up NVIDIA's container toolkit: containerd knows the runtime, and the cluster its RuntimeClass.
runtime() {
  local folder handler
  folder=$(dirname "$KUBECONFIG")
  . test/cluster/go.sh
  (cd test/plugins && go build -o "$folder/node-2/runtime" ./runtime) || return
  for handler in runc nvidia; do
    printf "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s]\n  runtime_type = 'io.containerd.runc.v2'\n" $handler
    printf "  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s.options]\n" $handler
    [ $handler = runc ] || printf '    BinaryName = "%s"\n' "$folder/node-2/runtime"
  done >>"$folder/node-2/containerd.toml"
  cluster restart containerd-2 || return
  kubectl apply -f - <<<'{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: nvidia}'
  wait_for 30 ready_nodes 2
}
ready_nodes() { [ "$(kubectl get nodes --no-headers | grep -cw Ready)" -eq "$1" ]; }
images() {
  local file tag
  file=$(image/build.sh | cut -d' ' -f1)
  tag=$(<VERSION)
  cluster node-image "$registry/quartermaster:$tag" --archive "$file" || return
  # A shell and nvidia-smi: what people ask for in their first pod.
  cluster node-image --node $worker "$registry/cards:1" /bin/sh:/bin/sh /usr/bin/env:/usr/bin/env /usr/bin/grep:/usr/bin/grep /usr/bin/ls:/usr/bin/ls \
    /usr/bin/sleep:/usr/bin/sleep "${libraries[@]}"
}
install_chart() {
  helm install quartermaster charts/quartermaster -n $namespace --create-namespace --wait --timeout 120s -f - <<V
image: {registry: $registry, pullPolicy: Never}
agent: {enabled: true, runtimeClassName: nvidia}
pgpu_enable: true
policy:
  modules:
    pgpu: {runtimeClassName: nvidia}
    share: {enabled: true, runtimeClassName: nvidia}
V
}
# The node gets the image that the DaemonSets name, as a registry would give it.
plugin_image() {
  local image program programs=()
  wait_for 30 kubectl get ds -n $namespace nvidia-device-plugin-ds
  image=$(kubectl get ds -n $namespace nvidia-device-plugin-ds -o jsonpath='{.spec.template.spec.containers[0].image}')
  for program in nvidia-device-plugin gpu-feature-discovery config-manager; do programs+=("$QM_PLUGINS/$program:/usr/bin/$program"); done
  cluster node-image --node $worker "$image" NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility "${programs[@]}" "${libraries[@]}"
}
phase() { [ "$(kubectl get anode $worker -o jsonpath='{.status.actualMode}/{.status.phase}')" = "$1" ]; }
ask() { # ask MODE PHASE
  kubectl label node $worker nvidia-device-enable="$1" --overwrite
  wait_for 120 phase "$2"
}
reported() { kubectl get anode $worker -o json | jq -e '.status.conditions[] | select(.type == "CardsHealthy" and .status == "True")'; }
agent_reports() { wait_for 60 reported; }
# pod NAME RESOURCE COUNT
pod() {
  kubectl apply -f - <<P
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  runtimeClassName: nvidia
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: $registry/cards:1
      imagePullPolicy: Never
      resources: {limits: {$2: "$3"}}
      command: [/bin/sh, -c]
      args:
        - |
          echo "NVIDIA_VISIBLE_DEVICES=\$NVIDIA_VISIBLE_DEVICES"
          echo "device nodes: \$(ls /dev/nvidia[0-9]*)"
          nvidia-smi -L | grep -F "\$NVIDIA_VISIBLE_DEVICES"
          exec sleep infinity
P
}
said() { [ "$(kubectl logs "$1" | wc -l)" -ge 3 ]; }
runs() { pod "$@" && wait_for 60 said "$1" && kubectl logs "$1" >"$work/$1"; }
waits() { pod "$@" && wait_for 30 unschedulable "$1"; }
unschedulable() { kubectl get pod "$1" -o json | jq -e '.status.conditions[]? | select(.reason == "Unschedulable")'; }
waits_for_pod() { kubectl label node $worker nvidia-device-enable=share --overwrite; wait_for 30 draining; kubectl get anode -o wide >"$work/draining"; }
draining() { [ "$(kubectl get anode $worker -o jsonpath='{.status.phase}')" = Draining ]; }
end_and_change() { kubectl delete pod whole-card too-many --wait=false; wait_for 120 phase share/Ready; }

printf '%s\n' "$(bold 'Quartermaster: the main job on real nodes, Kubernetes') $k8s" >&2
step "control plane and two nodes (kubelet, containerd, kube-proxy)" cluster_up
eval "$(cluster env)"
step "$worker has two T4 (a stand-in for the driver)" cards
step "NVIDIA's runtime on $worker (a stand-in), RuntimeClass nvidia" runtime
step "image built and given to the nodes, as from a registry" images
step "helm install: two pods of the operator, agent, plugins" install_chart
step "image of NVIDIA's device plugin given to $worker" plugin_image
step "kubectl label node $worker nvidia-device-enable=pgpu: Ready" ask pgpu pgpu/Ready
step "the agent reports the cards of $worker" agent_reports
step "a pod asks for one card and runs" runs whole-card nvidia.com/gpu 1
step "a pod asks for three cards and waits" waits too-many nvidia.com/gpu 3
build/release/quartermaster explain pod too-many >"$work/explained" 2>&1 || true
step "label changed to share: $worker waits for the pod with a card" waits_for_pod
step "the pod ended: $worker is enrolled as share" end_and_change
step "a pod asks for a tenth of a card and runs" runs tenth nvidia.com/gpu.shared 1

echo; bold "Pods of the product, and the plugin it started"; echo
kubectl get pods -n $namespace -o wide
echo; bold "What the container with a whole card printed"; echo
sed 's/^/  /' "$work/whole-card"
echo; bold "Why the pod with three cards waited"; echo
sed 's/^/  /' "$work/explained"
echo; bold "While the pod had its card, the node waited"; echo
cat "$work/draining"
echo; bold "Afterwards"; echo
kubectl get anode -o wide
echo; bold "Cards, as the agent reports them"; echo
kubectl get anode $worker -o json | jq -r '.status.cards[] | [.uuid, .model, "\(.memoryMiB) MiB", .health] | @tsv' | column -t -s $'\t' -N UUID,MODEL,MEMORY,HEALTH
echo; bold "What the container with a tenth of a card printed"; echo
sed 's/^/  /' "$work/tenth"
times
[ -n "$once" ] && exit 0
cat <<T

$(bold "The cluster is yours until Ctrl-C.") In another shell:
  export KUBECONFIG=$KUBECONFIG PATH=$(dirname "$(command -v kubectl)"):$(dirname "$(command -v helm)"):\$PATH
  kubectl label node $worker nvidia-device-enable- && kubectl get anode -o wide -w
T
start pause sleep infinity
keep
