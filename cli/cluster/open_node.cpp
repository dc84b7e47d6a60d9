#include "cli/cluster/open_node.hpp"

#include <algorithm>

#include "api/names.hpp"

namespace cli {

bool takes_new_pods(const kube::node& node) {
  const auto keeps_away = [](const kube::taint& taint) {
    return taint.key == api::names::switching_taint || taint.key == "node.kubernetes.io/unschedulable" ||
           taint.key == "node.kubernetes.io/not-ready" || taint.key == "node.kubernetes.io/unreachable";
  };
  return !node.unschedulable && node.ready != kube::condition_status::no &&
         std::ranges::none_of(node.taints, keeps_away);
}

}  // namespace cli
