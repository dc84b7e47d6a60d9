# What README.md assumes: a cluster without Quartermaster, with a GPU node; then the three nodes of its second example.
# shellcheck shell=bash
clean
node gpu-1 t4
before 'quartermaster verify gpu-1*' 'ready gpu-1 pgpu'
before 'quartermaster inspect nodes*' '
  kubectl delete node gpu-1
  node a100-0 a100 pgpu; node a100-1 a100 vgpu; node t4-0 t4 vgpus
  ready a100-0 pgpu; ready a100-1 vgpu; soon 20 is t4-0 phase Refused'
exits 3 'quartermaster verify'
