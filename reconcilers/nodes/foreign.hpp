#pragma once
// Device plugins of someone else: which pods they are known by, whether one is on a node or about to come, and how it
// is taken off by its own means. Pure. Two plugins of one vendor on a node give a card out twice. We never change
// objects and labels of others, so the owner of the plugin takes it off; what we can do is say exactly how, and set a
// label that its DaemonSet may be told to keep away from.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/phrase.hpp"

namespace reconcilers {

/// A pod of a device plugin that is not ours.
struct foreign_pod {
  std::string pod;            ///< "namespace/name"
  std::string daemon_set;     ///< "namespace/name"; empty: a static pod of the kubelet
  std::string_view product;   ///< the product
  bool ours_by_name = false;  ///< lies in our namespace: an object that bears one of our names
};

/// What is known of other products' plugins around one node.
struct foreign_pods {
  std::vector<foreign_pod> here;  ///< not those that have ended
  bool gpu_operator = false;      ///< the plugin of NVIDIA's GPU Operator runs somewhere in the cluster
};

/// Whether such a resource is made of NVIDIA's cards, as its name has it: "nvidia.com/gpu-10gb",
/// "volcano.sh/vgpu-number".
bool counts_cards(std::string_view resource);

/// The product whose device plugin for NVIDIA cards this is, by the name of the DaemonSet that controls it; empty: it
/// is none. A pod that cannot register with the kubelet is none, whatever its name: users may create DaemonSets, and
/// those of a namespace with Pod Security `baseline` have no folder of the node.
std::string_view foreign_product(const kube::pod& pod);
/// As NVIDIA's GPU Operator names it. Clusters that have the operator for driver and toolkit only have none.
bool of_gpu_operator(const kube::pod& pod);
foreign_pod foreign_pod_of(const kube::pod& pod, std::string_view own_namespace);

/// Why two plugins would be on the node.
struct foreign_plugin {
  text::phrase finding;  ///< "DaemonSet kube-system/x runs a device plugin on this node"
  text::phrase remedy;   ///< an order, without full stop
};

/// A label that `policy` gives another meaning is no sign of another product.
std::vector<foreign_plugin> foreign_plugins(const kube::node& node, const foreign_pods& known,
                                            const accelerator_policy* policy);

/// Does the node wear the label by which GPU Operator puts its plugin on nodes?
bool wanted_by_gpu_operator(const kube::node& node);

}  // namespace reconcilers
