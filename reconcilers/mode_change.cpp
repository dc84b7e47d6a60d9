#include "reconcilers/mode_change.hpp"

#include <algorithm>
#include <span>

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::event_type;
using kind = node_intent::kind;
using modules::module_type;

constexpr std::string_view none = "none";
constexpr std::size_t most_blockers = 16;
/// A plugin that starts normally is not worth a status write for each of its stages.
constexpr auto patience = 10s;

/// Phase, reason and message of the status to be.
struct finding {
  std::string_view phase;
  std::string reason, message;
};

std::string join(std::span<const std::string_view> words) {
  std::string out;
  for (const auto word : words) (out += out.empty() ? "" : ", ") += word;
  return out;
}

bool advertised(const node_state& is, const module_type& mode) {
  return std::ranges::all_of(mode.resources, [&](auto name) { return kube::amount(is.allocatable, name) > 0; });
}

const plugin_pod* other_plugin(const node_state& is, std::string_view than) {
  const auto at = std::ranges::find_if(is.plugins, [&](const plugin_pod& one) { return one.module != than; });
  return at == is.plugins.end() ? nullptr : &*at;
}

/// The first resource that a module other than `than` advertises and that is not 0 yet.
std::string_view other_resource(const node_state& is, std::string_view than) {
  for (const auto& one : modules::catalogue()) {
    if (one.name == than) continue;
    for (const auto name : one.resources) {
      if (kube::amount(is.allocatable, name) > 0) return name;
    }
  }
  return {};
}

std::vector<std::string> holders_of_others(const node_state& is, const module_type* than) {
  std::vector<std::string> out;
  for (const auto& one : is.holders) {
    if (one.of != than) out.push_back(one.pod);
  }
  return out;
}

finding draining(std::size_t pods) {
  return {phases::draining, "PodsHoldCards",
          std::to_string(pods) + (pods == 1 ? " pod holds" : " pods hold") +
              " resources of the old mode; the change waits until they end (see blockers)"};
}

std::string leaving(const plugin_pod& pod) {
  return "waits until plugin pod " + pod.name + " of mode " + pod.module + " is gone";
}

/// Is the plugin of the placed mode there and working? Empty: yes.
std::optional<finding> unverified(const node_state& is, const module_type& mode) {
  const std::string set(mode.daemon_set);
  if (const auto* old = other_plugin(is, mode.name)) return finding{phases::verifying, "PluginLeaving", leaving(*old)};
  const plugin_pod* best = nullptr;
  for (const auto& one : is.plugins) {
    if (!best || (one.ready && !one.deleting)) best = &one;
  }
  const bool works = best && best->ready && !best->deleting;
  if (works && advertised(is, mode)) return std::nullopt;
  const bool late = is.before && (is.before->phase == phases::stuck ||
                                  (is.before->phase == phases::verifying && is.in_phase >= patience));
  if (!late)
    return finding{phases::verifying, "PluginStarting",
                   "waits for a ready pod of " + set + " and for " + join(mode.resources) + " to be allocatable"};
  if (!best)
    return finding{phases::verifying, "NoPlugin", "no pod of DaemonSet " + set + " on this node; see its events"};
  if (!works)
    return finding{phases::verifying, "PluginNotReady",
                   "plugin pod " + best->name + " is not ready" + (best->reason.empty() ? "" : ": " + best->reason)};
  return finding{phases::verifying, "NothingAdvertised",
                 "plugin pod " + best->name + " is ready, but " + join(mode.resources) +
                     " is not allocatable; look at its log and at nvidia-smi on the node"};
}

/// The node has our label for the mode it shall have.
finding settled(const node_state& is, const module_type& mode, mode_step& out) {
  auto found = unverified(is, mode);
  if (!found) {
    return {phases::ready, "Enrolled", join(mode.resources) + " allocatable"};
  }
  const bool same = is.before && (is.before->phase == phases::verifying || is.before->phase == phases::stuck);
  const auto waited = same ? is.in_phase : 0ms;
  if ((is.before && is.before->phase == phases::stuck) || waited >= is.verify_timeout) {
    found->phase = phases::stuck;
    return *found;
  }
  const std::chrono::milliseconds end = is.verify_timeout;
  out.again_in = (waited < patience ? std::min<std::chrono::milliseconds>(patience, end) : end) - waited;
  return *found;
}

/// The node has not our label yet, and shall have it.
finding arriving(const node_state& is, const module_type& mode, mode_step& out) {
  if (const auto* old = other_plugin(is, mode.name)) return {phases::removing, "PluginLeaving", leaving(*old)};
  if (const auto held = holders_of_others(is, &mode).size(); held > 0) return draining(held);
  if (const auto name = other_resource(is, mode.name); !name.empty())
    return {phases::enrolling, "StillAdvertised",
            "waits until " + std::string(name) + " is 0; if it stays, another device plugin runs on this node"};
  out.relabel = true;
  out.label = mode.name;
  return *unverified(node_state(), mode);
}

/// The node has our label for another mode than it shall have.
std::optional<finding> departing(const node_state& is, const module_type* to, mode_step& out) {
  const auto* from = modules::find(is.placed);
  if (from && is.placed_enabled) {
    if (const auto held = holders_of_others(is, to).size(); held > 0) return draining(held);
  }
  out.relabel = true;
  if (const auto* pod = other_plugin(is, to ? to->name : std::string_view()))
    return finding{phases::removing, "PluginLeaving", leaving(*pod)};
  return std::nullopt;
}

/// Nothing to do and nothing to wait for any more.
std::optional<finding> at_rest(const node_state& is) {
  if (is.wanted.of == kind::refused) {
    const bool off = is.wanted.reason == module_disabled && (is.placed.empty() || !is.placed_enabled);
    return finding{off ? phases::disabled : phases::refused, is.wanted.reason, is.wanted.message};
  }
  if (is.wanted.of == kind::left_alone) return finding{phases::left_alone, is.wanted.reason, is.wanted.message};
  return std::nullopt;
}

std::optional<finding> decide(const node_state& is, const module_type* to, mode_step& out) {
  const std::string_view target = to ? to->name : std::string_view();
  if (!is.placed.empty() && is.placed != target) {
    if (auto waits = departing(is, to, out)) return waits;
    if (to) return arriving(is, *to, out);
    return at_rest(is);
  }
  if (!to) {
    if (const auto* pod = other_plugin(is, {})) return finding{phases::removing, "PluginLeaving", leaving(*pod)};
    return at_rest(is);
  }
  if (is.wanted.of == kind::refused) return at_rest(is);  // keeps what it has
  return is.placed == target ? settled(is, *to, out) : arriving(is, *to, out);
}

/// What the node shall be now: a refused request leaves it what it is, as long as that module is on.
const module_type* target_of(const node_state& is) {
  if (is.wanted.of == kind::mode) return is.wanted.mode;
  if (is.wanted.of == kind::refused && is.placed_enabled) return modules::find(is.placed);
  return nullptr;
}

std::string actual_mode(const node_state& is, const mode_step& out, std::string_view phase) {
  const bool stays = !is.placed.empty() && !out.relabel;
  if (!stays) return std::string(none);
  if (phase == phases::ready || phase == phases::draining || phase == phases::refused) return is.placed;
  return is.before && is.before->actual_mode == is.placed ? is.placed : std::string(none);
}

std::optional<mode_step::event> worth_telling(const node_state& is, const mode_status& now) {
  const auto before = is.before.value_or(mode_status());
  const bool entered = before.phase != now.phase;
  const bool refused = now.phase == phases::refused || now.phase == phases::disabled;
  if (refused && (entered || before.message != now.message))
    return {{event_type::warning, now.reason, "Enrol", now.message}};
  if (now.phase == phases::ready &&
      (entered && (before.actual_mode != now.actual_mode || before.phase == phases::stuck)))
    return {{event_type::normal, "Enrolled", "Enrol", "mode " + now.actual_mode + ": " + now.message}};
  if (!entered) return std::nullopt;
  if (now.phase == phases::stuck)
    return {
        {event_type::warning, "VerifyTimeout", "Verify", "mode " + is.placed + " does not come up: " + now.message}};
  if (now.phase == phases::draining || now.phase == phases::left_alone)
    return {{event_type::normal, now.reason, "Enrol", now.message}};
  return std::nullopt;
}

}  // namespace

mode_step next_step(const node_state& is) {
  mode_step out;
  const auto found = decide(is, target_of(is), out);
  if (!found) {
    if (is.before && is.before->phase != phases::refused && is.before->phase != phases::disabled)
      out.tell = {event_type::normal, "Released", "Enrol", "the node has no accelerator mode any more"};
    return out;
  }
  mode_status now;
  now.requested_mode = is.wanted.requested.empty() ? std::string(none) : is.wanted.requested;
  now.phase = found->phase;
  now.reason = found->reason;
  now.message = found->message;
  now.actual_mode = actual_mode(is, out, found->phase);
  if (found->phase == phases::draining) {
    now.blockers = holders_of_others(is, target_of(is));
    std::ranges::sort(now.blockers);
    if (now.blockers.size() > most_blockers) now.blockers.resize(most_blockers);
  }
  const bool goes_on = is.before && is.before->phase == now.phase && is.before->requested_mode == now.requested_mode;
  now.since = goes_on && !is.before->since.empty() ? is.before->since : is.now;
  out.tell = worth_telling(is, now);
  out.status = std::move(now);
  return out;
}

}  // namespace reconcilers
