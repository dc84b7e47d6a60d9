# What docs/console.md assumes: an installation.
# shellcheck shell=bash
clean
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace
