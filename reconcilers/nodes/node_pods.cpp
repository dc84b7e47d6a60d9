#include "reconcilers/nodes/node_pods.hpp"

#include <algorithm>

#include "api/names.hpp"

namespace reconcilers {

namespace {

/// Calls `found(name)` for each extended resource that a pod asks for, until it says true.
bool any_resource(const kube::pod& pod, auto&& found) {
  for (const auto& container : pod.containers) {
    for (const auto& [name, amount] : container.limits) {
      if (amount > 0 && std::string_view(name).find('/') != std::string_view::npos && found(name)) return true;
    }
  }
  return false;
}

}  // namespace

const modules::module_type* module_of(std::string_view resource, const kube::node& node, const modules::offer& offered,
                                      const modules::module_type* mode) {
  if (mode && std::ranges::find(mode->resources, resource) != mode->resources.end()) return mode;
  const auto is_it = [&](const auto& entry) { return entry.first == resource; };
  const bool listed = std::ranges::any_of(node.capacity, is_it) || std::ranges::any_of(node.allocatable, is_it);
  if (mode && listed && modules::has_prefix(*mode, resource)) return mode;
  if (const auto* named = offered.advertiser(resource)) return named;
  return listed ? offered.of_vendor(resource, mode) : nullptr;
}

const modules::module_type* held_mode(const kube::pod& pod, const kube::node& node, const modules::offer& offered,
                                      const modules::module_type* mode) {
  const modules::module_type* out = nullptr;
  any_resource(pod, [&](std::string_view name) {
    const auto* module = module_of(name, node, offered, mode);
    // What a module names says more than what is only of the vendor's.
    if (module && (!out || modules::advertises(*module, name))) out = module;
    return module && modules::advertises(*module, name);
  });
  return out;
}

namespace {

kube::uid controller_id(const kube::pod& pod) {
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  return match == pod.owners.end() ? kube::uid() : match->id;
}

}  // namespace

text::phrase why_it_stays(const kube::pod& pod) {
  if (pod.mirror) return {"status.node.stays.static_pod"};
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  if (match == pod.owners.end()) return {"status.node.stays.no_controller"};
  if (match->kind == "DaemonSet") return {"status.node.stays.daemon_set"};
  return {};
}

std::string controller_name(const kube::pod& pod) {
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  return match == pod.owners.end() ? std::string() : match->kind + " " + match->name;
}

node_pods::node_pods(controller::store<kube::pod>& pods, std::string ns) : pods_(pods), ns_(std::move(ns)) {
  for (const auto& pod : pods.all()) take_in(nullptr, &pod);
  pods.observe([this](const auto* before, const auto* after) { take_in(before, after); });
}

bool node_pods::is_plugin(const kube::pod& pod) const {
  return pod.key.ns == ns_ && pod.labels.contains(api::names::module_label);
}

bool node_pods::is_foreign(const kube::pod& pod) const { return !is_plugin(pod) && !foreign_product(pod).empty(); }

bool node_pods::matters(const kube::pod& pod) const {
  return !pod.node_name.empty() && !pod.finished() &&
         (is_plugin(pod) || any_resource(pod, [](auto) { return true; }) || is_foreign(pod));
}

void node_pods::take_in(const kube::pod* before, const kube::pod* after) {
  const bool was = before && matters(*before), is = after && matters(*after);
  if (was && of_gpu_operator(*before) && is_foreign(*before)) --gpu_operator_;
  if (is && of_gpu_operator(*after) && is_foreign(*after)) ++gpu_operator_;
  if (was && is && before->node_name == after->node_name) return;
  if (was) {
    const auto match = by_node_.find(before->node_name);
    size_ -= match->second.erase(before->key);
    if (match->second.empty()) by_node_.erase(match);
  }
  if (is) size_ += by_node_[after->node_name].insert(after->key).second ? 1 : 0;
}

std::vector<plugin_pod> node_pods::plugins(const std::string& node) const {
  std::vector<plugin_pod> out;
  const auto match = by_node_.find(node);
  if (match == by_node_.end()) return out;
  for (const auto& key : match->second) {
    const auto* pod = pods_.find(key);
    if (!pod || !is_plugin(*pod)) continue;
    out.push_back({std::string(pod->labels.value_or(api::names::module_label, "")), key.to_string(), pod->reason,
                   pod->ready, pod->deleting, key, pod->id});
  }
  return out;
}

foreign_pods node_pods::foreign(const std::string& node) const {
  foreign_pods out{{}, gpu_operator_ > 0};
  const auto match = by_node_.find(node);
  if (match == by_node_.end()) return out;
  for (const auto& key : match->second) {
    const auto* pod = pods_.find(key);
    if (pod && is_foreign(*pod)) out.here.push_back(foreign_pod_of(*pod, ns_));
  }
  return out;
}

bool node_pods::gpu_operator_came_or_went(const kube::pod* before, const kube::pod* after) const {
  const auto counts = [&](const kube::pod* pod) {
    return pod && of_gpu_operator(*pod) && matters(*pod) && is_foreign(*pod);
  };
  return counts(before) != counts(after) && gpu_operator_ == (counts(after) ? 1u : 0u);
}

std::vector<holder> node_pods::holders(const kube::node& node, const modules::offer& offered,
                                       const modules::module_type* mode) const {
  std::vector<holder> out;
  const auto match = by_node_.find(node.key.name);
  if (match == by_node_.end()) return out;
  for (const auto& key : match->second) {
    const auto* pod = pods_.find(key);
    if (!pod || is_plugin(*pod) || is_foreign(*pod)) continue;
    if (const auto* held = held_mode(*pod, node, offered, mode))
      out.push_back({key, held, pod->id, pod->deleting, why_it_stays(*pod), {}, controller_id(*pod), {}});
  }
  return out;
}

std::vector<kube::object_key> node_pods::affected_by(const kube::pod* before, const kube::pod* after) const {
  std::vector<kube::object_key> out;
  if (before && matters(*before)) out.push_back({{}, before->node_name});
  if (after && matters(*after) && (out.empty() || out.front().name != after->node_name))
    out.push_back({{}, after->node_name});
  return out;
}

}  // namespace reconcilers
