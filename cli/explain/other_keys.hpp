#pragma once
// A pod that asks for cards by keys that no node offers, in the keys of nodes that there are.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "quota/translation.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

/// The limits of one container, by the names that keys have in this cluster.
struct rewritten_container {
  std::string name;
  kube::quantities before, after;  ///< those alone that are not in both
};

struct rewritten_pod {
  kube::pod pod;
  std::vector<rewritten_container> containers;
  std::uint32_t spread_over = 1;  ///< cards; more than one is a label of the pod
};

/// The pod in the keys of each kind of node among these, where they can say the same. Whether it fits there is not
/// judged.
std::vector<rewritten_pod> rewritten_pods(const picture& picture, const kube::pod& pod,
                                          const reconcilers::extender::pod_request& request,
                                          std::span<const quota::node_view> nodes);

/// "tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 13 (256 MiB)": with the unit of each memory.
std::string amounts_text(const kube::quantities& amounts, const picture& picture);

}  // namespace cli
