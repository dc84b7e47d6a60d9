# What docs/install.md assumes: a cluster without Quartermaster, with a GPU node. The pod of `helm test` runs no program here.
# shellcheck shell=bash
clean
node gpu-1 t4
before 'helm test*' 'ready gpu-1 pgpu
  background test bash -c "kubectl wait --for=create -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl wait --for=condition=Ready -n quartermaster pod/quartermaster-test --timeout=20s
    kubectl patch -n quartermaster pod/quartermaster-test --subresource=status -p \"{\\\"status\\\": {\\\"phase\\\": \\\"Succeeded\\\"}}\""'
