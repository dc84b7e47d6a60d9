# What docs/agent.md assumes: an installation that works, and a node in a mode.
# shellcheck shell=bash
clean
node gpu-1 t4 pgpu
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set pgpu_enable=true
ready gpu-1 pgpu
