#pragma once
// The cluster of the benches that look at a whole one: 5,000 nodes of 8 cards, and 20,000 pods with a share each in 200
// namespaces. A pod of a higher number is like them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"

namespace bench {

inline constexpr std::int64_t node_count = 5'000, pod_count = 20'000, card_count = 8;

inline kube::packed_map packed(const std::vector<std::pair<std::string, std::string>>& texts) {
  std::vector<kube::packed_map::entry> entries(texts.begin(), texts.end());
  return kube::packed_map::of(entries);
}

/// @param product the model of its cards
inline kube::node fleet_node(std::int64_t number, const std::string& product) {
  kube::node out;
  out.key.name = "gpu-" + std::to_string(number);
  out.id = kube::uid::parse(out.key.name);
  out.resource_version = 1;
  out.ready = kube::condition_status::yes;
  out.labels = packed({{"nvidia.com/gpu.product", product}, {"quartermaster.io/module", "vgpu"}});
  out.allocatable =
      out.capacity = {{"tencent.com/vcuda-core", card_count * 100}, {"tencent.com/vcuda-memory", card_count * 320}};
  return out;
}

/// It runs, and holds a fifth of a card's cores.
inline kube::pod fleet_pod(std::int64_t number) {
  kube::pod out;
  out.key = {"team-" + std::to_string(number % 200), "train-" + std::to_string(number)};
  out.id = kube::uid::parse("pod-" + std::to_string(number));
  out.resource_version = 1;
  out.node_name = "gpu-" + std::to_string(number % node_count);
  out.phase = kube::pod_phase::running;
  kube::container main;
  main.name = "main";
  main.limits = {{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 16}};
  out.containers = {main};
  return out;
}

}  // namespace bench
