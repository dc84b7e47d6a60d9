#include "reconcilers/nodes/shown_mode.hpp"

#include <algorithm>
#include <array>

#include "api/names.hpp"
#include "reconcilers/nodes/mode_change.hpp"

namespace reconcilers {
namespace {

constexpr std::string_view absent_mode = "none";

std::string name_or_none(std::string_view mode) { return std::string(mode.empty() ? absent_mode : mode); }

bool is_under_way(std::string_view phase) {
  constexpr std::array all{phases::waiting,   phases::draining,  phases::removing,
                           phases::enrolling, phases::verifying, phases::stuck};
  return std::ranges::find(all, phase) != all.end();
}

}  // namespace

std::string_view current_mode(const kube::node& node, const api::mode_status* status) {
  if (status && !status->actual_mode.empty() && status->actual_mode != absent_mode) return status->actual_mode;
  return node.labels.value_or(api::names::module_label, "");
}

std::string shown_mode(const kube::node& node, const api::mode_status* status) {
  const auto current = name_or_none(current_mode(node, status));
  std::string source = current, target = current;
  const auto taint = std::ranges::find(node.taints, api::names::switching_taint, &kube::taint::key);
  if (taint != node.taints.end()) {
    const auto change = switching::parse(taint->value);
    source = name_or_none(change.source);
    target = name_or_none(change.target);
  } else if (status && is_under_way(status->phase) && !status->requested_mode.empty()) {
    target = status->requested_mode;
  }
  return source == target ? current : source + " -> " + target;
}

}  // namespace reconcilers
