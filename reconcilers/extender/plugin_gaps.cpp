#include "reconcilers/extender/plugin_gaps.hpp"

#include <algorithm>

#include "api/names.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/modules/node_sets.hpp"

namespace reconcilers::extender {

bool plugin_gaps::served::is_open() const {
  return std::ranges::any_of(pods, [](const auto& pod) { return pod.second.ready; });
}

std::optional<bool> plugin_gaps::served::follows_placement() const {
  std::optional<bool> out;
  for (const auto& [id, plugin] : pods)
    if (plugin.follows_placement && (!out || plugin.ready)) out = plugin.follows_placement;
  return out;
}

bool plugin_gaps::is_plugin(const kube::pod& pod) const {
  return !ns_.empty() && pod.key.ns == ns_ && !pod.node_name.empty() && !pod.finished() &&
         pod.labels.contains(api::names::module_label);
}

std::string plugin_gaps::take(const kube::pod* before, const kube::pod* after, controller::milliseconds now) {
  const bool was = before && is_plugin(*before), is = after && is_plugin(*after);
  if (!was && !is) return {};
  const auto& node = is ? after->node_name : before->node_name;
  const bool ready = is && after->ready && !after->deleting;
  if (!ready && !nodes_.contains(node)) return {};
  auto& here = nodes_[node];
  const bool was_open = here.is_open();
  const auto followed = here.follows_placement();
  if (was && (!is || before->id != after->id)) here.pods.erase(before->id);
  if (is) {
    auto& plugin = here.pods[after->id];
    plugin.ready = ready;
    const auto mark = after->annotations.value_or(api::names::template_annotation, "");
    if (!mark.empty()) plugin.follows_placement = mark.ends_with(modules::placement_mark);
  }
  if (here.pods.empty()) here.gone_since = now;
  return was_open == here.is_open() && followed == here.follows_placement() ? std::string() : node;
}

std::vector<std::string> plugin_gaps::expire(controller::milliseconds now) {
  std::vector<std::string> out;
  std::erase_if(nodes_, [&](const auto& entry) {
    const auto& [node, here] = entry;
    const bool has_ended = here.pods.empty() && now - here.gone_since >= most;
    if (has_ended) out.push_back(node);
    return has_ended;
  });
  return out;
}

bool plugin_gaps::has(std::string_view node) const {
  const auto match = nodes_.find(node);
  return match != nodes_.end() && !match->second.is_open();
}

std::optional<bool> plugin_gaps::follows_placement(std::string_view node) const {
  const auto match = nodes_.find(node);
  return match == nodes_.end() ? std::nullopt : match->second.follows_placement();
}

std::optional<accelerator_policy> policy_in_place(const accelerator_policy& policy, const kube::node& node,
                                                  std::optional<bool> follows_placement) {
  const auto module = node.labels.value_or(api::names::module_label, "");
  const auto* type = modules::find(module);
  const auto match = policy.modules.find(module);
  if (!follows_placement || !type || !type->follows_placement || match == policy.modules.end()) return std::nullopt;
  auto spec = with_set(match->second, serving_set(node));
  if (type->follows_placement(spec) == *follows_placement) return std::nullopt;
  if (*follows_placement)
    spec.settings["plugin"] = "quartermaster";
  else
    spec.settings.erase("plugin");  // the product's is the default
  spec.node_sets.clear();           // the settings of the node's set are taken in
  auto out = policy;
  out.modules.find(module)->second = std::move(spec);
  return out;
}

}  // namespace reconcilers::extender
