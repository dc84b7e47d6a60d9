#include "reconcilers/declarations/rule_set.hpp"

#include <algorithm>

namespace reconcilers::crl {

const rule* rule_set::find(std::string_view key) const {
  const auto at = std::ranges::lower_bound(rules, key, {}, [](const rule& r) { return std::string_view(r.key); });
  return at != rules.end() && at->key == key ? &*at : nullptr;
}

const group_rule* rule_set::group(std::string_view name) const {
  const auto at =
      std::ranges::lower_bound(groups, name, {}, [](const group_rule& g) { return std::string_view(g.name); });
  return at != groups.end() && at->name == name ? &*at : nullptr;
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

}  // namespace reconcilers::crl
