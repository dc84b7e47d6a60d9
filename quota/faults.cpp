#include "quota/faults.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "quota/units.hpp"

namespace quota {
namespace {

constexpr std::uint16_t every_mode = 0xFFFF;

/// The modes in which a node can be asked by all keys of a container; every_mode: it asks for no card.
std::uint16_t modes_in_common(const limits& container) {
  std::uint16_t out = every_mode;
  for (const auto& amount : container)
    if (const auto modes = modes_of(amount.key); amount.value != 0 && modes != 0) out &= modes;
  return out;
}

/// The key by which a node of slots counts, where the pod does not say which of two it means.
std::string_view counting_key(std::string_view key) {
  for (const auto& row : resource_keys)
    if (row.managed && row.offered && modes_of(row.key) == modes_of(key)) return row.key;
  return {};
}

std::optional<refusal> refusal_by_all(const limits& container, stage stage) {
  const auto modes = modes_in_common(container);
  std::optional<refusal> out;
  for (std::uint16_t mode = 1; mode != 0 && modes != every_mode; mode = static_cast<std::uint16_t>(mode << 1)) {
    if ((modes & mode) == 0) continue;
    const bool is_slots = mode == static_cast<std::uint16_t>(mode::slots);
    demand needs;
    auto no =
        read({&container, 1}, {.modes = mode, .default_cards = is_slots && stage == stage::admitted ? 0 : 1}, needs);
    if (!no) return {};
    if (no->kind == wrong::needs_partner && is_slots)
      if (const auto key = counting_key(no->key); !key.empty()) no->other = key;
    if (!out) out = std::move(no);
  }
  return out;
}

void add_bytes(std::span<const limits> pod, std::vector<pod_fault>& out) {
  for (std::size_t i = 0; i < pod.size(); ++i)
    for (const auto& [key, value] : pod[i])
      if (value <= most && units_meant(key, value) > 0)
        out.push_back(
            {{.kind = wrong::not_legal, .container = static_cast<std::uint16_t>(i), .key = key, .value = value}});
}

}  // namespace

std::vector<refusal> refused_amounts(std::span<const limits> pod, stage stage) {
  std::vector<refusal> out;
  for (std::size_t i = 0; i < pod.size(); ++i) {
    auto no = refusal_by_all(pod[i], stage);
    if (!no) continue;
    no->container = static_cast<std::uint16_t>(i);
    out.push_back(std::move(*no));
  }
  return out;
}

std::optional<pod_fault> two_modes(std::span<const limits> pod) {
  std::uint16_t common = every_mode;
  std::string_view first, count;
  for (std::size_t i = 0; i < pod.size(); ++i) {
    for (const auto& [key, value] : pod[i]) {
      const auto modes = modes_of(key);
      if (value == 0 || modes == 0) continue;
      const bool counts = std::ranges::find(alternatives, key) != alternatives.end();
      const bool is_other_count = counts && !count.empty() && count != key;
      common &= modes;
      if (common == 0 || is_other_count)
        return pod_fault{{.kind = wrong::mixed,
                          .container = static_cast<std::uint16_t>(i),
                          .key = key,
                          .value = value,
                          .other = is_other_count ? count : first},
                         true};
      if (counts) count = key;
      if (first.empty()) first = key;
    }
  }
  return {};
}

std::vector<pod_fault> faults_of(std::span<const limits> pod) { return faults_among(pod, {}); }

std::vector<pod_fault> faults_among(std::span<const limits> pod, std::span<const node_view> nodes) {
  std::set<std::uint16_t> refused_there;
  bool is_read = false;
  demand needs;
  for (const auto& node : nodes) {
    if (node.inventory == nullptr || node.inventory->changes_mode) continue;
    const auto no = read(pod, node.inventory->serves, needs);
    is_read = is_read || !no;
    if (no && no->kind != wrong::not_served) refused_there.insert(no->container);
  }
  std::vector<pod_fault> out;
  if (!is_read) {
    for (auto& no : refused_amounts(pod, stage::admitted))
      if (!refused_there.contains(no.container)) out.push_back({std::move(no)});
    if (auto both = two_modes(pod)) out.push_back(std::move(*both));
  }
  add_bytes(pod, out);
  return out;
}

}  // namespace quota
