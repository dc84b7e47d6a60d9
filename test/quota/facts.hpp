#pragma once
// What the engine says, as the codes and numbers of its facts. Its words are compared in test/golden/engine.

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "api/engine_words.hpp"

namespace quota {

/// "nominal a cards 1 + 1 > 1, model=T4": the rule, the namespace, what it asks for and what it uses, against the
/// limit.
inline std::string facts_of(const exceeded_limit& limit) {
  static constexpr std::array rules{"nominal", "borrowing", "cohort", "isolation", "model", "pool"};
  static constexpr std::array units{"cores", "memory", "cards"};
  std::string out = rules[static_cast<std::size_t>(limit.rule)];
  out += " " + limit.name_space;
  if (limit.rule == exceeded_limit::kind::isolation) {
    const auto name = [](std::int64_t level) { return std::string(text_of(static_cast<isolation>(level))); };
    return out + " " + name(limit.requested) + " < " + name(limit.limit);
  }
  out.append(" ").append(units[static_cast<std::size_t>(limit.unit)]);
  out +=
      " " + std::to_string(limit.requested) + " + " + std::to_string(limit.used) + " > " + std::to_string(limit.limit);
  if (!limit.model.empty()) out += ", model=" + limit.model;
  if (!limit.only.pool.empty()) out += ", pool=" + limit.only.pool;
  if (limit.only.priority_from) out += ", from=" + std::to_string(*limit.only.priority_from);
  if (limit.only.priority_to) out += ", to=" + std::to_string(*limit.only.priority_to);
  if (limit.only.isolated) out.append(", isolated=").append(text_of(*limit.only.isolated));
  if (!limit.cohort.empty()) out += ", cohort=" + limit.cohort;
  return out;
}

/// "lower 0 tencent.com/vcuda-core 60 -> 20, b b-0": of the pod with container and key, of a node with the amount; then
/// where the pod fits, with the card where there is one.
inline std::string facts_of(const change& change, std::span<const node_view> nodes) {
  std::string out(api::code_of(change));
  if (change.action == change::kind::amount)
    out.append(" ")
        .append(std::to_string(change.container))
        .append(" ")
        .append(change.key)
        .append(" ")
        .append(std::to_string(change.current) + " -> " + std::to_string(change.amount));
  else {
    if (change.amount != 0) out += " " + std::to_string(change.amount);
    if (!change.key.empty()) out.append(" ").append(change.key);
  }
  const auto& node = *nodes[change.node].inventory;
  out += ", " + node.name;
  return change.card ? out + " " + node.cards[*change.card].uuid : out;
}

/// "memory 8448 > 8192": the reason, the key where there is one, and what is needed against what there is.
inline std::string facts_of(const shortfall& shortfall) {
  std::string out(api::code_of(shortfall.code));
  if (!shortfall.key.empty()) out.append(" ").append(shortfall.key);
  if (shortfall.needed == 0 && shortfall.available == 0) return out;
  return out + " " + std::to_string(shortfall.needed) + " > " + std::to_string(shortfall.available);
}

/// "not_legal tencent.com/vcuda-core 150, 100 or 200": what is wrong, key, amount, partner, the nearest legal amounts.
inline std::string facts_of(const refusal& refusal) {
  static constexpr std::array codes{"not_legal", "needs_partner", "mixed", "not_served", "too_many"};
  static constexpr std::array legal{"", ", multiples of the count", ", one share", ", one card"};
  std::string out = codes[static_cast<std::size_t>(refusal.kind)];
  out.append(" ").append(refusal.key).append(" ");
  out += refusal.value == not_a_number ? "no number" : std::to_string(refusal.value);
  if (!refusal.other.empty()) out.append(" ").append(refusal.other);
  for (const auto nearest : {refusal.below, refusal.above})
    if (nearest >= 0) out += (nearest == refusal.above && refusal.below >= 0 ? " or " : ", ") + std::to_string(nearest);
  return out + legal[static_cast<std::size_t>(refusal.legal)];
}

}  // namespace quota
