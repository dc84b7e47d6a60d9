#include "cli/cluster/operator_lease.hpp"

#include <functional>
#include <utility>

#include "cli/cluster/cluster.hpp"

namespace cli {

kube::task<std::optional<kube::lease>> find_lease(kube::transport& over, std::string ns) {
  kube::list_options what;
  what.ns = std::move(ns);
  what.field_selector = "metadata.name=quartermaster";
  std::optional<kube::lease> out;
  const std::function<void(kube::lease)> newest = [&](kube::lease one) {
    if (!out || out->renewed_us < one.renewed_us) out = std::move(one);
  };
  const auto listed = co_await list_each<kube::lease>(over, what, newest);
  if (!listed) co_return std::unexpected(listed.error());
  co_return out;
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
