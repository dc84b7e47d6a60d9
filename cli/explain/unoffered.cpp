#include "cli/explain/unoffered.hpp"

#include <vector>

#include "quota/vocabulary.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {

void add_offered(const kube::node& node, key_set& key_set) {
  for (const auto& [key, amount] : node.allocatable)
    if (amount > 0) key_set.insert(key);
}

bool known_resources::lacks(std::string_view key) const {
  return !offered.contains(key) && !declared.contains(key) && !quota::known(key);
}

std::string known_resources::nearest(std::string_view key) const {
  std::vector<std::string_view> candidates(offered.begin(), offered.end());
  candidates.insert(candidates.end(), declared.begin(), declared.end());
  return std::string(text::nearest(key, candidates));
}

std::string known_resources::text_of(std::string_view key) const {
  const auto meant = nearest(key);
  return text::shown(key, 320) + ": no node offers it and no one declares it" +
         (meant.empty() ? "" : ". Did you mean " + meant + "?");
}

}  // namespace cli
