#include "reconcilers/quotas/quota_metrics.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/quotas/limit_scope.hpp"

namespace reconcilers {
namespace {

struct group {
  quota::resource unit{};
  std::string name_space, model, scope;
  friend auto operator<=>(const group&, const group&) = default;
};
struct limit_amounts {
  std::int64_t max = 0, used = 0, borrowed = 0, lent = 0;
};
using amounts_by_group = std::map<group, limit_amounts>;

/// By namespace. Each cohort is reckoned once, and can bring namespaces that have no AcceleratorQuota.
std::map<std::string, std::vector<quota::standing>, std::less<>> standings_of(
    const quota::allowances& limits, const controller::store<api::accelerator_quota>& quotas) {
  std::map<std::string, std::vector<quota::standing>, std::less<>> out;
  for (const auto& quota : quotas.all())
    if (!out.contains(quota.key.ns)) out.merge(limits.standings_together(quota.key.ns));
  return out;
}

amounts_by_group grouped(const quota::allowances& limits, const controller::store<api::accelerator_quota>& quotas) {
  amounts_by_group out;
  for (const auto& [name_space, standings] : standings_of(limits, quotas)) {
    for (const auto& standing : standings) {
      const auto scope = scope_of(standing.only);
      group key{standing.unit, name_space, standing.model, scope.empty() ? scope : scope.substr(1)};
      if (out.size() >= max_limit_groups && !out.contains(key)) key = {standing.unit, "other", "other", "other"};
      auto& sum = out[std::move(key)];
      sum.max += standing.nominal;
      sum.used += standing.used;
      sum.borrowed += standing.borrowed;
      sum.lent += standing.lent;
    }
  }
  return out;
}

}  // namespace

void write_quota_metrics(const quota::allowances* limits, const controller::store<api::accelerator_quota>& quotas,
                         controller::metric_text& text) {
  const auto groups = limits ? grouped(*limits, quotas) : amounts_by_group();
  static constexpr std::array<std::pair<std::string_view, std::int64_t limit_amounts::*>, 4> states{
      {{"max", &limit_amounts::max},
       {"used", &limit_amounts::used},
       {"borrowed", &limit_amounts::borrowed},
       {"lent", &limit_amounts::lent}}};
  const auto write = [&](std::string_view name, std::string_view help, quota::resource unit, std::int64_t factor) {
    text.family(name, help, "gauge");
    for (const auto& [key, sum] : groups)
      for (const auto& [state, member] : states)
        if (key.unit == unit)
          text.sample(name,
                      {{"namespace", key.name_space}, {"model", key.model}, {"scope", key.scope}, {"state", state}},
                      static_cast<double>(sum.*member) * static_cast<double>(factor));
  };
  write("quartermaster_quota_cores", "Limits of namespaces on cores, and what counts against them. A card has 100.",
        quota::resource::cores, 1);
  write("quartermaster_quota_memory_bytes", "Limits of namespaces on memory of cards, and what counts against them.",
        quota::resource::memory, 1 << 20);
  write("quartermaster_quota_cards", "Limits of namespaces on parts of cards, and what counts against them.",
        quota::resource::cards, 1);
}

}  // namespace reconcilers
