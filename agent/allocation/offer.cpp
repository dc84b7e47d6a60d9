#include "agent/allocation/offer.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace agent::allocation {
namespace {

std::string slot(std::size_t number) {
  char out[16];
  std::snprintf(out, sizeof out, "slot-%05zu", number);
  return out;
}

/// How many devices of this container stand for cards that are not to be used.
std::size_t sick_devices(const offered_resource& resource, const kube::running_pod& pod, std::string_view container,
                         const node_records& known) {
  const auto placement = api::placement_in(pod.annotations.value_or(api::placement_annotation, ""));
  if (!placement) return 0;
  const auto shares = placement->containers.find(container);
  if (shares == placement->containers.end()) return 0;
  std::size_t out = 0;
  for (const auto& share : shares->second) {
    const auto card = std::ranges::find(known.cards, share.card, &quota::card::uuid);
    if (card == known.cards.end() || card->usable()) continue;
    out += static_cast<std::size_t>(resource.worth(share));
  }
  return out;
}

}  // namespace

std::vector<device_plugin::device> offered_devices(const offered_resource& resource, const node_records& known) {
  std::size_t all = 0, sick = 0;
  for (const auto& card : known.cards) {
    const auto worth = static_cast<std::size_t>(resource.worth(card));
    all += worth;
    if (!card.usable()) sick += worth;
  }
  if (all > most_devices) return {};
  std::set<std::string_view> taken, withdrawn;
  for (const auto& entry : known.recorded) {
    if (entry.resource != resource.name) continue;
    const auto* pod = pod_of(known, entry.pod_uid);
    if (!pod || pod->finished()) continue;
    taken.insert(entry.ids.begin(), entry.ids.end());
    auto own = std::min({sick_devices(resource, *pod, entry.container, known), entry.ids.size(), sick});
    for (auto id = entry.ids.begin(); own > 0 && id != entry.ids.end(); ++id)
      if (withdrawn.insert(*id).second) --own, --sick;
  }
  std::vector<device_plugin::device> out;
  for (std::size_t i = 0; i < all; ++i) out.push_back({slot(i), true});
  for (auto& device : out) device.is_healthy = !withdrawn.contains(device.id);
  for (auto device = out.rbegin(); sick > 0 && device != out.rend(); ++device) {
    if (!device->is_healthy || taken.contains(device->id)) continue;
    device->is_healthy = false;
    --sick;
  }
  // More is taken than the node has in order: nothing is free.
  for (auto device = out.rbegin(); sick > 0 && device != out.rend(); ++device)
    if (device->is_healthy) device->is_healthy = false, --sick;
  return out;
}

}  // namespace agent::allocation
