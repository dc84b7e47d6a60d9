#include "reconcilers/extender/plugin_gaps.hpp"

#include <algorithm>

#include "api/names.hpp"

namespace reconcilers::extender {

bool plugin_gaps::served::is_open() const {
  return std::ranges::any_of(pods, [](const auto& pod) { return pod.second; });
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
  if (was && (!is || before->id != after->id)) here.pods.erase(before->id);
  if (is) here.pods[after->id] = ready;
  if (here.pods.empty()) here.gone_since = now;
  return was_open == here.is_open() ? std::string() : node;
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

}  // namespace reconcilers::extender
