#include "quota/selector.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace quota {
namespace {

enum class annotation_kind : std::uint8_t {
  use_type,
  no_type,
  use_uuid,
  no_uuid,
  placement,
  model,
  pool,
  memory,
  count
};

struct selector_key {
  std::string_view key;
  annotation_kind meaning;
};
constexpr selector_key selector_keys[] = {
    {"nvidia.com/use-gputype", annotation_kind::use_type},
    {"nvidia.com/nouse-gputype", annotation_kind::no_type},
    {"nvidia.com/use-gpuuuid", annotation_kind::use_uuid},
    {"nvidia.com/nouse-gpuuuid", annotation_kind::no_uuid},
    {"hami.io/gpu-scheduler-policy", annotation_kind::placement},
    {"aliyun.accelerator/nvidia_name", annotation_kind::model},
    {"aliyun.accelerator/nvidia_mem", annotation_kind::memory},
    {"aliyun.accelerator/nvidia_count", annotation_kind::count},
    {"gaia.tencent.com/gpu-model", annotation_kind::model},
    {"gaia.tencent.com/gpu-pool", annotation_kind::pool},
    {"tkestack.io/gpu-model", annotation_kind::model},
    {"tkestack.io/gpu-pool", annotation_kind::pool},
};

const selector_key* find_selector_key(std::string_view key) {
  const auto match = std::ranges::find(selector_keys, key, &selector_key::key);
  return match == std::end(selector_keys) ? nullptr : &*match;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto find_first_not = text.find_first_not_of(blank);
  return find_first_not == std::string_view::npos
             ? std::string_view{}
             : text.substr(find_first_not, text.find_last_not_of(blank) - find_first_not + 1);
}

template <class Fn>
void each(std::string_view list, const Fn& fn) {
  for (std::size_t index = 0; index <= list.size();) {
    const auto comma = std::min(list.find(',', index), list.size());
    if (const auto item = trimmed(list.substr(index, comma - index)); !item.empty()) fn(item);
    index = comma + 1;
  }
}

char plain(char letter) {
  if (letter >= 'a' && letter <= 'z') return static_cast<char>(letter - 'a' + 'A');
  return letter == ' ' || letter == '_' ? '-' : letter;
}

bool part_of(std::string_view model, std::string_view name) {
  return !std::ranges::search(model, name, {}, plain, plain).empty();
}

bool any_part_of(const std::vector<std::string>& names, std::string_view model) {
  return std::ranges::any_of(names, [&](const std::string& name) { return part_of(model, name); });
}

bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

/// "16384", "16384MiB" (ACK's label).
std::optional<std::int64_t> number(std::string_view text, std::string_view unit) {
  std::int64_t out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (wrong != std::errc{} || out < 0 || (!rest.empty() && rest != unit)) return {};
  return out;
}

}  // namespace

bool selector::known(std::string_view key) { return find_selector_key(key) != nullptr; }

bool selector::read(std::string_view key, std::string_view value) {
  const selector_key* const row = find_selector_key(key);
  if (row == nullptr) return false;
  bool understood = true;
  const auto wrong = [&](std::string_view item, std::string_view allowed) {
    understood = false;
    if (!problem_.empty()) return;
    problem_ = std::string{key} + " is " + std::string{item.substr(0, 64)} + "; allowed: " + std::string{allowed};
  };
  each(value, [&](std::string_view item) {
    switch (row->meaning) {
      case annotation_kind::use_type:
        use_types_.emplace_back(item);
        return;
      case annotation_kind::no_type:
        no_types_.emplace_back(item);
        return;
      case annotation_kind::use_uuid:
        use_uuids_.emplace_back(item);
        return;
      case annotation_kind::no_uuid:
        no_uuids_.emplace_back(item);
        return;
      case annotation_kind::model:
        models_.emplace_back(item);
        return;
      case annotation_kind::pool:
        pools_.emplace_back(item);
        return;
      case annotation_kind::placement:
        if (item == "binpack")
          placement_ = policy::binpack;
        else if (item == "spread")
          placement_ = policy::spread;
        else if (item != "topology-aware")  // whole cards always are
          wrong(item, "binpack, spread or topology-aware");
        return;
      case annotation_kind::memory:
        if (const auto mib = number(item, "MiB"))
          memories_mib_.push_back(*mib);
        else
          wrong(item, "a number of MiB, such as 16384MiB");
        return;
      case annotation_kind::count:
        if (const auto cards = number(item, ""))
          counts_.push_back(*cards);
        else
          wrong(item, "a number of cards");
        return;
    }
  });
  return understood;
}

bool selector::nothing() const {
  return use_types_.empty() && no_types_.empty() && use_uuids_.empty() && no_uuids_.empty() && models_.empty() &&
         pools_.empty() && memories_mib_.empty() && counts_.empty();
}

bool selector::allows(const card& card) const {
  const auto& type = card.type.empty() ? card.model : card.type;
  if (!use_types_.empty() && !any_part_of(use_types_, type)) return false;
  if (any_part_of(no_types_, type)) return false;
  if (!use_uuids_.empty() && !has(use_uuids_, card.uuid)) return false;
  if (has(no_uuids_, card.uuid)) return false;
  if (!models_.empty() && !any_part_of(models_, card.model) && !any_part_of(models_, type)) return false;
  return memories_mib_.empty() || std::ranges::any_of(memories_mib_, [&](std::int64_t mib) {
           return std::abs(mib - card.memory_mib) <= mib / 64;
         });
}

bool selector::allows(const node_inventory& node, const card& card) const {
  if (!pools_.empty() && !has(pools_, node.pool)) return false;
  const auto cards = static_cast<std::int64_t>(node.cards.size());
  if (!counts_.empty() && std::ranges::find(counts_, cards) == counts_.end()) return false;
  return allows(card);
}

std::vector<std::string_view> selecting_annotations() {
  std::vector<std::string_view> out;
  for (const auto& row : selector_keys) out.push_back(row.key);
  return out;
}

}  // namespace quota
