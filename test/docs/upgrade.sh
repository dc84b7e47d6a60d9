# What docs/upgrade.md assumes: an installation that works. The pod of `helm test` runs no program here.
# shellcheck shell=bash
clean
node gpu-1 t4 pgpu
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set pgpu_enable=true
ready gpu-1 pgpu
before 'helm test*' 'background test bash -c "kubectl wait --for=create -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl wait --for=condition=Ready -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl patch -n quartermaster pod/quartermaster-test --subresource=status -p \"{\\\"status\\\": {\\\"phase\\\": \\\"Succeeded\\\"}}\""'
