#include "reconcilers/nodes/eviction_pace.hpp"

#include <algorithm>
#include <set>

namespace reconcilers {

eviction_pace::turn eviction_pace::take(const std::string& node, std::span<const holder> pods,
                                        controller::milliseconds now) {
  auto& owners = nodes_[node];
  std::map<kube::uid, std::set<kube::uid>> present;
  for (const auto& pod : pods) present[pod.owner].insert(pod.id);
  for (const auto& [owner, ids] : present) {
    auto& wave = owners[owner];
    const auto is_new = [&wave](const kube::uid& id) { return !wave.pods.contains(id); };
    if (now < wave.next || std::ranges::none_of(ids, is_new)) continue;
    wave.pause = wave.pods.empty() ? first_pause : std::min(wave.pause * 2, longest_pause);
    wave.next = now + wave.pause;
    std::erase_if(wave.pods, [&ids](const auto& entry) { return !ids.contains(entry.first); });
    for (const auto& id : ids) wave.pods.try_emplace(id, pod_seen{wave.has_evicted, {}});
  }
  turn out;
  const auto wait = [&out](controller::milliseconds left) { out.next = std::min(out.next.value_or(left), left); };
  for (const auto& pod : pods) {
    const auto& wave = owners[pod.owner];
    const auto match = wave.pods.find(pod.id);
    if (match == wave.pods.end())
      wait(wave.next - now);
    else if (match->second.evicted && now < *match->second.evicted + eviction_counts)
      wait(*match->second.evicted + eviction_counts - now);
    else
      out.due.push_back(pod);
  }
  return out;
}

void eviction_pace::evicted(const std::string& node, const holder& pod, controller::milliseconds now) {
  auto& wave = nodes_[node][pod.owner];
  wave.has_evicted = true;
  wave.pods[pod.id].evicted = now;
}

bool eviction_pace::came_back(const std::string& node, const holder& pod) const {
  const auto owners = nodes_.find(node);
  if (owners == nodes_.end()) return false;
  const auto match = owners->second.find(pod.owner);
  if (match == owners->second.end()) return false;
  const auto& wave = match->second;
  const auto seen = wave.pods.find(pod.id);
  return seen == wave.pods.end() ? wave.has_evicted : seen->second.came_back;
}

}  // namespace reconcilers
