# What docs/dashboards.md assumes: an installation that works.
# shellcheck shell=bash
clean
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set pgpu_enable=true
soon 20 kubectl get apol default
