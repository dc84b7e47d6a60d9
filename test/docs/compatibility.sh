# What docs/compatibility.md assumes: a node in a mode.
# shellcheck shell=bash
installed '{modules: {pgpu: {enabled: true}}}'
kubectl delete nodes -l nvidia.com/gpu.present=true
node gpu-1 a100 pgpu
ready gpu-1 pgpu
