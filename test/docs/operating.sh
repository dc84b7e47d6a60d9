# What docs/operating.md assumes: a node with a mode, of an installation by hand; another product's plugin.
# shellcheck shell=bash
clean
node gpu-1 t4 pgpu
installed '{modules: {pgpu: {enabled: true}, vgpu: {enabled: true}}}'
ready gpu-1 pgpu
before 'kubectl -n kube-system patch ds*' '
  kubectl label node gpu-1 nvidia-device-enable-
  kubectl apply -f - <<<"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: nvidia-device-plugin-daemonset, namespace: kube-system}, spec: {
    selector: {matchLabels: {name: nvidia-device-plugin-ds}}, template: {metadata: {labels: {name: nvidia-device-plugin-ds}}, spec: {
    nodeSelector: {sim.quartermaster.io/profile: none}, containers: [{name: main, image: nvcr.io/nvidia/k8s-device-plugin:v0.17.0}]}}}}"'
before 'kubectl patch acceleratorpolicy default*chargeback*' '
  kubectl create namespace team-a
  month=$(date -u +%Y-%m) now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  kubectl get acceleratorusage "$month" || kubectl apply -f - <<<"{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorUsage,
    metadata: {name: \"$month\", labels: {quartermaster.io/usage-month: \"$month\"}}, usage: {month: \"$month\", since: \"$now\", through: \"$now\"}}"'
