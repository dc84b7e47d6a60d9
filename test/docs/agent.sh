# What docs/agent.md assumes: an installation that works, and a node in a mode.
# shellcheck shell=bash
clean
node gpu-1 t4 pgpu
helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set pgpu_enable=true
ready gpu-1 pgpu
# A node with cards of another vendor, as its agent reports them.
node npu-1 cpu
kubectl create -f - <<'Y'
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorNode
metadata: {name: npu-1}
Y
kubectl patch acceleratornode npu-1 --subresource=status --type=merge -p "$(jq -n '{status: {driver: {boot: "b"}, otherCards:
  [range(8) | {busID: "0000:\(. + 10):00.0", vendor: "Huawei", pciID: "19e5:d802", driver: "drvfs", numa: (. / 4 | floor)}]}}')"
