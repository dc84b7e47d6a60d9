#include "reconcilers/declarations/rule_set.hpp"

#include <algorithm>

namespace reconcilers::declarations {

const rule* rule_set::find(std::string_view key) const {
  const auto match = std::ranges::lower_bound(rules, key, {}, [](const rule& r) { return std::string_view(r.key); });
  return match != rules.end() && match->key == key ? &*match : nullptr;
}

const group_rule* rule_set::group(std::string_view name) const {
  const auto match =
      std::ranges::lower_bound(groups, name, {}, [](const group_rule& g) { return std::string_view(g.name); });
  return match != groups.end() && match->name == name ? &*match : nullptr;
}

std::set<std::string, std::less<>> exclusive_keys(const rule_set& rules) {
  std::set<std::string, std::less<>> out;
  for (const auto& rule : rules.rules) {
    if (rule.excluded.empty()) continue;
    out.insert(rule.key);
    out.insert(rule.excluded.begin(), rule.excluded.end());
  }
  return out;
}

}  // namespace reconcilers::declarations
