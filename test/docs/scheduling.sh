# What docs/scheduling.md assumes: a node that shares its cards, and a pod that the operator's scheduler has placed.
# shellcheck shell=bash
clean
installed '{modules: {vgpu: {enabled: true}}}'
node gpu-1 t4 vgpu
ready gpu-1 vgpu
before 'kubectl get pod trainer*' '
  scheduler quartermaster; soon 30 sends_to_scheduler
  kubectl apply -f - <<<"{apiVersion: v1, kind: Pod, metadata: {name: trainer}, spec: {containers: [
    {name: main, image: x, resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 8}}}]}}"
  kubectl wait --for=condition=Ready pod/trainer --timeout=20s'
