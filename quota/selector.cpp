#include "quota/selector.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace quota {
namespace {

enum class says : std::uint8_t { use_type, no_type, use_uuid, no_uuid, placement, model, pool, memory, count };

struct row {
  std::string_view key;
  says what;
};
constexpr row table[] = {
    {"nvidia.com/use-gputype", says::use_type},
    {"nvidia.com/nouse-gputype", says::no_type},
    {"nvidia.com/use-gpuuuid", says::use_uuid},
    {"nvidia.com/nouse-gpuuuid", says::no_uuid},
    {"hami.io/gpu-scheduler-policy", says::placement},
    {"aliyun.accelerator/nvidia_name", says::model},
    {"aliyun.accelerator/nvidia_mem", says::memory},
    {"aliyun.accelerator/nvidia_count", says::count},
    {"gaia.tencent.com/gpu-model", says::model},
    {"gaia.tencent.com/gpu-pool", says::pool},
    {"tkestack.io/gpu-model", says::model},
    {"tkestack.io/gpu-pool", says::pool},
};

const row* find(std::string_view key) {
  const auto at = std::ranges::find(table, key, &row::key);
  return at == std::end(table) ? nullptr : &*at;
}

std::string_view trimmed(std::string_view of) {
  constexpr std::string_view blank = " \t\r\n";
  const auto from = of.find_first_not_of(blank);
  return from == std::string_view::npos ? std::string_view{} : of.substr(from, of.find_last_not_of(blank) - from + 1);
}

template <class Fn>
void each(std::string_view list, const Fn& fn) {
  for (std::size_t from = 0; from <= list.size();) {
    const auto comma = std::min(list.find(',', from), list.size());
    if (const auto item = trimmed(list.substr(from, comma - from)); !item.empty()) fn(item);
    from = comma + 1;
  }
}

char plain(char of) {
  if (of >= 'a' && of <= 'z') return static_cast<char>(of - 'a' + 'A');
  return of == ' ' || of == '_' ? '-' : of;
}

bool part_of(std::string_view model, std::string_view name) {
  return !std::ranges::search(model, name, {}, plain, plain).empty();
}

bool any_part_of(const std::vector<std::string>& names, std::string_view model) {
  return std::ranges::any_of(names, [&](const std::string& one) { return part_of(model, one); });
}

bool has(const std::vector<std::string>& list, std::string_view what) {
  return std::ranges::find(list, what) != list.end();
}

/// "16384", "16384MiB" (ACK's label).
std::optional<std::int64_t> number(std::string_view of, std::string_view unit) {
  std::int64_t out = 0;
  const auto [end, wrong] = std::from_chars(of.data(), of.data() + of.size(), out);
  const std::string_view rest = of.substr(static_cast<std::size_t>(end - of.data()));
  if (wrong != std::errc{} || out < 0 || (!rest.empty() && rest != unit)) return {};
  return out;
}

}  // namespace

bool selector::known(std::string_view key) { return find(key) != nullptr; }

bool selector::read(std::string_view key, std::string_view value) {
  const row* const row = find(key);
  if (row == nullptr) return false;
  bool understood = true;
  const auto wrong = [&](std::string_view item, std::string_view allowed) {
    understood = false;
    if (!problem_.empty()) return;
    problem_ = std::string{key} + " is " + std::string{item.substr(0, 64)} + "; allowed: " + std::string{allowed};
  };
  each(value, [&](std::string_view item) {
    switch (row->what) {
      case says::use_type:
        use_types_.emplace_back(item);
        return;
      case says::no_type:
        no_types_.emplace_back(item);
        return;
      case says::use_uuid:
        use_uuids_.emplace_back(item);
        return;
      case says::no_uuid:
        no_uuids_.emplace_back(item);
        return;
      case says::model:
        models_.emplace_back(item);
        return;
      case says::pool:
        pools_.emplace_back(item);
        return;
      case says::placement:
        if (item == "binpack")
          placement_ = policy::binpack;
        else if (item == "spread")
          placement_ = policy::spread;
        else if (item != "topology-aware")  // whole cards always are
          wrong(item, "binpack, spread or topology-aware");
        return;
      case says::memory:
        if (const auto mib = number(item, "MiB"))
          memories_mib_.push_back(*mib);
        else
          wrong(item, "a number of MiB, such as 16384MiB");
        return;
      case says::count:
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

bool selector::allows(const card& of) const {
  if (!use_types_.empty() && !any_part_of(use_types_, of.model)) return false;
  if (any_part_of(no_types_, of.model)) return false;
  if (!use_uuids_.empty() && !has(use_uuids_, of.uuid)) return false;
  if (has(no_uuids_, of.uuid)) return false;
  if (!models_.empty() && !any_part_of(models_, of.model)) return false;
  return memories_mib_.empty() || std::ranges::any_of(memories_mib_, [&](std::int64_t mib) {
           return std::abs(mib - of.memory_mib) <= mib / 64;
         });
}

bool selector::allows(const node& on, const card& of) const {
  if (!pools_.empty() && !has(pools_, on.pool)) return false;
  const auto cards = static_cast<std::int64_t>(on.cards.size());
  if (!counts_.empty() && std::ranges::find(counts_, cards) == counts_.end()) return false;
  return allows(of);
}

}  // namespace quota
