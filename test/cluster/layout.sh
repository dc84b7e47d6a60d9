# layout.sh: which versions exist and where their programs are. Sourced by build.sh and cluster.sh; changes nothing.
# A version is written once, in a go.mod: a new patch release is an edit of that file (and of its go.sum).

cluster_src=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
test_src=${cluster_src%/*}                     # the module of the newest version, of most tools and of the tests
cache_root=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
k8s_minors=(1.37 1.36 1.30)                    # the newest server supported, one in between, and the oldest; the first is the default
k8s_programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl)
tool_names=(etcd kwok helm chainsaw sim scheduler-1.36 prometheus) # scheduler-1.36: one minor older than the newest server
real_node_units=(containerd coredns node)      # and kubelet and kube-proxy of the Kubernetes version: built only where a real node is asked for
assets_programs=(kube-apiserver etcd kubectl)  # what a KUBEBUILDER_ASSETS folder brings

# unit_folder UNIT: the Go module a unit is built from. A unit is a Kubernetes minor version, kubelet- and such, or a tool's name.
unit_folder() {
  case $1 in
    "${k8s_minors[0]}"|"kubelet-${k8s_minors[0]}"|etcd|kwok|helm|sim|node) echo "$test_src" ;;
    1.*|kubelet-*|scheduler-*) echo "$cluster_src/k8s-${1#*-}" ;;
    chainsaw) echo "$cluster_src/tools/chainsaw" ;;
    *)   echo "$cluster_src/tools" ;;
  esac
}

# unit_packages UNIT: lines "program package".
unit_packages() {
  local p
  case $1 in
    1.*)      for p in "${k8s_programs[@]}"; do echo "$p k8s.io/kubernetes/cmd/$p"; done ;;
    etcd)     echo "etcd go.etcd.io/etcd/server/v3"; echo "etcdctl go.etcd.io/etcd/etcdctl/v3" ;;
    kwok)     echo "kwok sigs.k8s.io/kwok/cmd/kwok" ;;
    helm)     echo "helm helm.sh/helm/v3/cmd/helm" ;;
    chainsaw) echo "chainsaw github.com/kyverno/chainsaw" ;;
    prometheus) for p in promtool prometheus; do echo "$p github.com/prometheus/prometheus/cmd/$p"; done ;;
    sim)      echo "sim quartermaster.io/test/sim" ;;
    kubelet-*) for p in kubelet kube-proxy; do echo "$p k8s.io/kubernetes/cmd/$p"; done ;;
    scheduler-*) echo "kube-$1 k8s.io/kubernetes/cmd/kube-scheduler" ;;
    containerd) for p in containerd containerd-shim-runc-v2 ctr; do echo "$p github.com/containerd/containerd/v2/cmd/$p"; done ;;
    coredns)  echo "coredns quartermaster.io/test/cluster/tools/coredns" ;;
    node)     echo "real-node quartermaster.io/test/cluster/node" ;;
  esac
}

# module_version FOLDER MODULE: the version FOLDER/go.mod requires.
module_version() { awk -v m="$2" '{ for (i = 1; i < NF; i++) if ($i == m && $(i+1) ~ /^v[0-9]/) { print $(i+1); exit } }' "$1/go.mod"; }

unit_version() {
  local dir; dir=$(unit_folder "$1")
  case $1 in
    1.*|kubelet-*|scheduler-*) module_version "$dir" k8s.io/kubernetes ;;
    etcd)     module_version "$dir" go.etcd.io/etcd/server/v3 ;;
    kwok)     module_version "$dir" sigs.k8s.io/kwok ;;
    helm)     module_version "$dir" helm.sh/helm/v3 ;;
    chainsaw) module_version "$dir" github.com/kyverno/chainsaw ;;
    prometheus) module_version "$dir" github.com/prometheus/prometheus ;;
    containerd) module_version "$dir" github.com/containerd/containerd/v2 ;;
    coredns)  module_version "$dir" github.com/coredns/coredns ;;
    sim|node) echo dev ;;
  esac
}

# unit_home UNIT: the folder it is built into, with programs in bin/ and stamps in stamps/. Those of one module of Kubernetes share one.
unit_home() {
  case $(unit_folder "$1") in
    */tools|*/tools/*) echo "$cache_root/$1-$(unit_version "$1")" ;;
    *) echo "$cache_root/kubernetes-$(module_version "$(unit_folder "$1")" k8s.io/kubernetes)" ;;
  esac
}

# program_path UNIT PROGRAM: the file to run. KUBEBUILDER_ASSETS wins for the programs it has.
program_path() {
  if from_assets "$2"; then echo "$KUBEBUILDER_ASSETS/$2"; else echo "$(unit_home "$1")/bin/$2"; fi
}

from_assets() { [[ -n ${KUBEBUILDER_ASSETS:-} && " ${assets_programs[*]} " == *" $1 "* && -x $KUBEBUILDER_ASSETS/$1 ]]; }
