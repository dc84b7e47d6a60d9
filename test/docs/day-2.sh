# What docs/day-2.md assumes: an installation that works, a node with a mode and a new one. The pod of `helm test` runs no program here.
# shellcheck shell=bash
clean
node gpu-1 t4 pgpu; node gpu-2 t4
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set pgpu_enable=true
ready gpu-1 pgpu
before 'quartermaster verify gpu-2*' 'ready gpu-2 pgpu'
before 'helm test*' 'background test bash -c "kubectl wait --for=create -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl wait --for=condition=Ready -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl patch -n quartermaster pod/quartermaster-test --subresource=status -p \"{\\\"status\\\": {\\\"phase\\\": \\\"Succeeded\\\"}}\""'
before 'quartermaster verify --scheduler*' '
  kubectl patch apol default --type merge -p "{\"spec\": {\"scheduler\": {\"mode\": \"Dedicated\"}}}"
  scheduler quartermaster; soon 20 sends_to_scheduler'
exits 3 'quartermaster verify gpu-1 -o wide*'  # the node is cordoned
