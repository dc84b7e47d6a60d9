#include "agent/exporter/pod.hpp"

#include "api/placement.hpp"

namespace agent::exporter {

kube::result<pod> pod::decode(std::string_view bytes) {
  auto known = kube::running_pod::decode(bytes);
  if (!known) return std::unexpected(std::move(known.error()));
  constexpr std::uint64_t mib = 1024 * 1024;
  pod out{std::move(*known), {}};
  const auto placement = api::placement_in(out.annotations.value_or(api::placement_annotation, ""));
  if (!placement) return out;
  // A container that is made up would be a series of its own.
  for (const auto& container : out.containers) {
    const auto match = placement->containers.find(container.name);
    if (container.kind == kube::container::role::init || match == placement->containers.end()) continue;
    for (const auto& share : match->second)
      out.planned.push_back(
          {container.name, share.card, share.cores, static_cast<std::uint64_t>(share.memory_mib) * mib});
  }
  return out;
}

}  // namespace agent::exporter
