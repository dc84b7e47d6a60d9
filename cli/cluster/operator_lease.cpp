#include "cli/cluster/operator_lease.hpp"

#include <functional>
#include <utility>

#include "cli/cluster/cluster.hpp"
#include "controller/sleep.hpp"

namespace cli {

kube::task<std::optional<kube::lease>> find_lease(kube::transport& transport, std::string ns) {
  kube::list_options options;
  options.ns = std::move(ns);
  options.field_selector = operator_lease_selector;
  std::optional<kube::lease> out;
  const std::function<void(kube::lease)> newest = [&](kube::lease lease) {
    if (!out || out->renewed_us < lease.renewed_us) out = std::move(lease);
  };
  const auto listed = co_await list_each<kube::lease>(transport, options, newest);
  if (!listed) co_return std::unexpected(listed.error());
  co_return out;
}

bool looks_fresh(const kube::lease& lease) {
  const auto renewed = std::chrono::system_clock::time_point(std::chrono::microseconds(lease.renewed_us));
  return std::chrono::system_clock::now() - renewed <= std::chrono::seconds(lease.duration_seconds + 1);
}

kube::task<bool> is_renewed(kube::transport& transport, kube::lease lease) {
  /// A leader renews every two seconds by default; one look after this shows whether it does.
  constexpr auto second_look = std::chrono::seconds(4);
  co_await controller::sleep_for(second_look);
  const auto later = co_await find_lease(transport, lease.key.ns);
  if (!later) co_return std::unexpected(later.error());
  co_return *later && (*later)->renewed_us != lease.renewed_us;
}

void pulse::see(std::optional<kube::lease> now) {
  const bool same = last && now && last->renewed_us == now->renewed_us && last->holder == now->holder;
  if (!same) changed = clock::now();
  last = std::move(now);
}

bool pulse::silent_for(clock::duration how_long) const {
  return !last || last->holder.empty() || clock::now() - changed > how_long;
}

}  // namespace cli
