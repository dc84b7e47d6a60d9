# What docs/shares.md assumes: a node that shares its cards, and a pod that the operator's scheduler has placed.
# shellcheck shell=bash
clean
installed '{}'
node gpu-1 t4
before 'quartermaster verify*' 'ready gpu-1 hami; scheduler quartermaster; soon 30 sends_to_scheduler'
before 'kubectl get pod trainer*' '
  kubectl apply -f - <<<"{apiVersion: v1, kind: Pod, metadata: {name: trainer}, spec: {containers: [
    {name: main, image: x, resources: {limits: {nvidia.com/gpualloc: 1, nvidia.com/gpumem: 4000, nvidia.com/gpucores: 30}}}]}}"
  kubectl wait --for=condition=Ready pod/trainer --timeout=20s'
