# What docs/cli.md assumes: two nodes with modes, files to judge, pods that wait, and people's quotas when everything is removed.
# shellcheck shell=bash
clean
cli_policy='{modules: {pgpu: {enabled: true}, vgpu: {enabled: true}}, enrolment: {maxUnavailable: 50}}'
cat >"$work/place/trainer.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: lab}
spec:
  schedulerName: quartermaster
  containers:
    - name: main
      image: nvidia/cuda:12.4.1-base-ubuntu22.04
      resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 60}}
Y
cp "$work/place/trainer.yaml" "$work/place/pods.yaml"
cat >"$work/place/deployment.yaml" <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: infer, namespace: lab}
spec:
  replicas: 1
  selector: {matchLabels: {app: infer}}
  template:
    metadata: {labels: {app: infer}}
    spec:
      containers: [{name: main, image: infer, resources: {limits: {nvidia.com/gpu: 1}}}]
Y
scheduler_files() {  # as they lie on a control-plane node
  cp test/golden/scheduler_config/corpus/01-kubeadm-minimal.yaml scheduler-config.yaml
  cp test/golden/scheduler_config/manifests/kubeadm.yaml kube-scheduler.yaml
  client_files
}
before 'quartermaster lint declarations.yaml*' "
  node gpu-1 t4 pgpu; node gpu-2 t4 vgpu
  installed '$cli_policy'; ready gpu-1 pgpu; ready gpu-2 vgpu
  quartermaster render declaration --key example.com/npu --group lab --default 1 >declarations.yaml"
before 'quartermaster lint scheduler-config*' scheduler_files
exits 3 'quartermaster lint scheduler-config*'  # kubeadm's own names no configuration
before 'quartermaster verify --snapshot*' 'quartermaster inspect --save now.json'
exits 3 'quartermaster explain compat --cuda 13.0*'  # that card is too old for it
before 'quartermaster verify --scheduler*' '
  kubectl patch apol default --type merge -p "{\"spec\": {\"scheduler\": {\"mode\": \"Dedicated\"}}}"
  scheduler quartermaster; soon 20 sends_to_scheduler'
exits 3 'quartermaster verify --scheduler default-scheduler*'
before 'quartermaster uninstall*' '
  kubectl patch apol default --type merge -p "{\"spec\": {\"scheduler\": {\"mode\": \"None\"}}}"; end scheduler
  kubectl get ns research || kubectl create ns research
  for quota in lab/batch lab/team research/team; do
    kubectl apply -f - <<<"{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorQuota,
      metadata: {name: ${quota#*/}, namespace: ${quota%/*}}, spec: {hard: [{units: cards, max: 4}]}}"; done
  kubectl apply -f - <<<"{apiVersion: v1, kind: Pod, metadata: {name: holds, namespace: lab}, spec: {nodeName: gpu-1, containers: [
    {name: main, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
  background release bash -c "until kubectl get anode gpu-1 -o jsonpath={.status.phase} | grep -q Draining; do sleep 0.2; done; sleep 4; kubectl delete pod -n lab holds --now"'
# team-a held a Tesla-T4 for twelve and a half hours, of the two that the cluster had for 15 days. Of the current month the operator may not
# have written anything yet.
usage_of_months() {
  local month now; month=$(date -u +%Y-%m) now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  kubectl get acceleratorusage "$month" || kubectl apply -f - <<<"{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorUsage,
    metadata: {name: '$month', labels: {quartermaster.io/usage-month: '$month'}}, usage: {month: '$month', since: '$now', through: '$now'}}"
  kubectl apply -f - <<'Y'
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorUsage
metadata: {name: 2025-11.team-a, labels: {quartermaster.io/usage-month: "2025-11"}}
usage: {month: "2025-11", namespace: team-a, since: "2025-11-01T00:00:00Z", through: "2025-11-16T00:00:00Z", rows: [
  {model: Tesla-T4, mode: vGPU, organization: research, coreSeconds: 4500000, memoryMiBSeconds: 691200000}]}
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorUsage
metadata: {name: "2025-11", labels: {quartermaster.io/usage-month: "2025-11"}}
usage: {month: "2025-11", since: "2025-11-01T00:00:00Z", through: "2025-11-16T00:00:00Z", models: [{model: Tesla-T4,
  capacity: {coreSeconds: 259200000, memoryMiBSeconds: 39813120000}, parts: {coreSeconds: 4500000, memoryMiBSeconds: 691200000},
  idle: {coreSeconds: 254700000, memoryMiBSeconds: 39121920000}}]}
Y
  kubectl patch apol default --type merge -p '{"spec": {"chargeback": {"currency": "EUR", "prices": [{"model": "*", "cardHour": "2.50"}]}}}'
}
before 'quartermaster report chargeback*' usage_of_months
before 'quartermaster inspect nodes  *' "
  kubectl delete pods,deployments -n lab --all --now
  installed '$cli_policy'; ready gpu-1 pgpu; ready gpu-2 vgpu"
before 'quartermaster explain pod trainer -n lab  *' '
  for card in 0 1 2 3; do sed "s/schedulerName: quartermaster/priority: 0/; s/trainer/fills-$card/; s/vcuda-memory: 60/vcuda-memory: 12/; s/vcuda-core: 20/vcuda-core: 70/" trainer.yaml | kubectl apply -f -; done
  kubectl wait --for=condition=Ready pod -n lab --all --timeout=20s
  kubectl apply -f trainer.yaml'
exits 3 'quartermaster explain pod trainer*'
exits 3 '*quartermaster simulate -f*'
