#include "reconcilers/extender/hami_lock.hpp"

#include <chrono>

#include "controller/clock.hpp"
#include "kube/rfc3339.hpp"

namespace reconcilers::extender {
namespace {

constexpr std::int64_t lock_patience =
    300;  // HAMi's own patience with a lock (nodelock.go NodeLockTimeout), in seconds
/// Seconds in which a kubelet asks for the cards of a pod that was deleted by force meanwhile.
constexpr std::int64_t gone_patience = 3;
constexpr std::string_view bind_phase = "hami.io/bind-phase", assigned_node = "hami.io/vgpu-node";

}  // namespace

std::string to_string(const hami_lock& lock) {
  const controller::wall_time since{std::chrono::seconds(lock.since)};
  return controller::rfc3339_seconds(since) + "," + lock.pod.ns + "," + lock.pod.name;
}

std::optional<hami_lock> read_hami_lock(std::string_view text) {
  const auto comma = text.find(',');
  const auto since = kube::parse_rfc3339(text.substr(0, comma));
  if (!since) return {};
  hami_lock out{*since, {}};
  if (comma == std::string_view::npos) return out;
  const auto rest = text.substr(comma + 1);
  const auto next = rest.find(',');
  if (next == std::string_view::npos || rest.find(',', next + 1) != std::string_view::npos) return {};
  out.pod = {std::string(rest.substr(0, next)), std::string(rest.substr(next + 1))};
  return out;
}

bool holds(const hami_lock& lock, const std::string& node, const kube::pod* holder, bool binding, std::int64_t now) {
  if (binding) return true;
  const bool young = now - lock.since < lock_patience;
  if (lock.pod.name.empty()) return young;
  if (!holder) return lock.since <= now && now - lock.since < gone_patience;
  // HAMi's scheduler names the node at filter, before it locks it (v2.10.0, pkg/scheduler/scheduler.go Filter). Without
  // that name one of our leaders wrote the lock. No Binding of this one is on its way, and a Binding of an earlier one
  // is refused because the pod is sealed.
  if (holder->node_name.empty()) return young && holder->annotations.value_or(assigned_node, "") == node;
  if (holder->node_name != node || holder->phase != kube::pod_phase::pending) return false;
  const auto phase = holder->annotations.value_or(bind_phase, "");
  return phase != "success" && phase != "failed";
}

}  // namespace reconcilers::extender
