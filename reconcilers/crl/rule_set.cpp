#include "reconcilers/crl/rule_set.hpp"

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

std::vector<std::string> rule_set::companions(std::string_view key) const {
  const auto* of = find(key);
  if (!of) return {};
  auto out = of->related;
  if (const auto* tied = group(of->group); tied && tied->tied) {
    std::ranges::copy_if(tied->members, std::back_inserter(out),
                         [&](const std::string& member) { return member != key; });
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace reconcilers::crl
