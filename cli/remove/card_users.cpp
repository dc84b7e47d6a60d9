#include <algorithm>
#include <map>
#include <optional>

#include "api/names.hpp"
#include "cli/remove/uninstall.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/foreign.hpp"
#include "reconcilers/nodes/node_pods.hpp"

namespace cli {

kube::task<std::vector<card_user>> read_card_users(kube::transport& transport, std::string ns) {
  std::map<std::string, kube::node, std::less<>> nodes;
  const std::function<void(kube::node)> keep_node = [&](kube::node node) {
    auto name = node.key.name;
    if (enrolled(node)) nodes.emplace(std::move(name), std::move(node));
  };
  const auto listed = co_await list_each<kube::node>(transport, kube::list_options(), keep_node);
  if (!listed) co_return std::unexpected(listed.error());
  std::vector<card_user> out;
  if (nodes.empty()) co_return out;

  std::optional<reconcilers::accelerator_policy> policy;
  const std::function<void(reconcilers::accelerator_policy)> keep_policy = [&](reconcilers::accelerator_policy found) {
    if (found.key.name == api::names::policy) policy = std::move(found);
  };
  const auto policies =
      co_await list_each<reconcilers::accelerator_policy>(transport, kube::list_options(), keep_policy);
  if (!policies && policies.error().code != kube::errc::not_found) co_return std::unexpected(policies.error());
  const auto& offered = reconcilers::modules::offered_by(policy ? &*policy : nullptr);

  const std::function<void(kube::pod)> look = [&](kube::pod pod) {
    const auto node = nodes.find(pod.node_name);
    if (node == nodes.end() || pod.finished()) return;
    const bool is_plugin = pod.key.ns == ns && pod.labels.contains(api::names::module_label);
    if (is_plugin || !reconcilers::foreign_product(pod).empty()) return;
    const auto* mode = offered.find(node->second.labels.value_or(api::names::module_label, ""));
    if (reconcilers::held_mode(pod, node->second, offered, mode)) out.push_back({pod.key.to_string(), node->first});
  };
  const auto pods = co_await list_each<kube::pod>(transport, kube::list_options(), look);
  if (!pods) co_return std::unexpected(pods.error());
  std::ranges::sort(out);
  co_return out;
}

}  // namespace cli
