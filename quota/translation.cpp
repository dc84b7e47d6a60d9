#include "quota/translation.hpp"

#include <algorithm>

#include "quota/card_use.hpp"
#include "quota/mode_keys.hpp"
#include "quota/resource_keys.hpp"

namespace quota {
namespace {

/// So many MiB in the unit of the key, rounded up.
std::int64_t units_of_memory(std::int64_t memory_mib, std::string_view key, mode mode, const service& service) {
  const auto* known = resource_key_of(key);
  const std::int64_t unit = spreads_memory(mode) ? service.memory_unit_mib : known ? known->unit_mib : 1;
  return (memory_mib + unit - 1) / std::max<std::int64_t>(unit, 1);
}

/// The next number of cores from there that is a share of a card; nothing: there is none.
std::optional<std::int64_t> legal_cores(std::int64_t cores, std::string_view key) {
  const auto* known = resource_key_of(key);
  for (; known && cores < whole_card; ++cores)
    if (known->legal.allow(cores)) return cores;
  return {};
}

using translated_limits = std::optional<translation>;

translated_limits all_of_cards(std::int64_t cards, mode mode, const mode_keys& keys) {
  if (!keys.whole.empty()) return translation{.limits = {{keys.whole, cards}}};
  if (!keys.slot.empty())
    return translation{.limits = {{keys.slot, cards}, {keys.percent, whole_card}, {keys.cores, whole_card}}};
  if (spreads_memory(mode) || keys.cores.empty()) return {};
  return translation{.limits = {{keys.cores, cards * whole_card}}};
}

translated_limits in_slots(const need& need, std::int64_t units, const mode_keys& keys) {
  translation out{.limits = {{keys.slot, need.cards}}};
  out.limits.push_back(need.memory_percent > 0 ? amount{keys.percent, need.memory_percent}
                                               : amount{keys.memory, units});
  if (need.cores > 0) out.limits.push_back({keys.cores, need.cores});
  return out;
}

translated_limits in_memory(const need& need, std::int64_t units, const mode_keys& keys) {
  translation out{.limits = {{keys.memory, units * need.cards}}, .spread_over = need.cards};
  if (need.cores == 0) return out;
  const auto cores = legal_cores(need.cores, keys.cores);
  if (!cores || need.cards > 1) return {};
  out.limits.push_back({keys.cores, *cores});
  return out;
}

translated_limits in_cores(const need& need, std::int64_t units, const mode_keys& keys) {
  const auto cores = need.cores > 0 ? legal_cores(need.cores, keys.cores) : std::nullopt;
  if (!cores || need.cards != 1) return {};
  return translation{.limits = {{keys.cores, *cores}, {keys.memory, units}}};
}

}  // namespace

std::optional<translation> translated(const need& need, mode target, const service& service) {
  const auto keys = keys_of(target, service);
  if (need.cards == 0 || !need.distinct) return {};
  const bool is_whole = need.whole || (need.memory_percent == 100 && need.cores == whole_card);
  if (is_whole) return all_of_cards(need.cards, target, keys);
  if (need.burst_cores > 0 || keys.memory.empty() || (need.memory_mib == 0 && need.memory_percent == 0)) return {};
  const auto units = units_of_memory(need.memory_mib, keys.memory, target, service);
  if (!keys.slot.empty()) return in_slots(need, units, keys);
  if (need.memory_percent > 0) return {};  // the cards decide how much that is
  return spreads_memory(target) ? in_memory(need, units, keys) : in_cores(need, units, keys);
}

}  // namespace quota
