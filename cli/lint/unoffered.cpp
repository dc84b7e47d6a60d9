#include "cli/lint/unoffered.hpp"

#include <vector>

#include "quota/vocabulary.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {

void add_offered(const kube::node& node, key_set& key_set) {
  for (const auto& [key, amount] : node.allocatable)
    if (amount > 0) key_set.insert(key);
}

std::string_view card_of_native_domain(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {};
  const auto domain = key.substr(0, slash);
  if (domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io")) return {};
  const auto name = text::lower_case(key.substr(slash + 1));
  return name.contains("gpu") ? "nvidia.com/gpu" : std::string_view();
}

std::string nearest_key(std::string_view key, std::span<const std::string_view> known) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {};
  const auto domain = key.substr(0, slash), name = key.substr(slash + 1);
  std::vector<std::string_view> names, domains;
  for (const auto other : known) {
    const auto end = other.find('/');
    if (other.substr(0, end) == domain) names.push_back(other.substr(end + 1));
    if (other.substr(end + 1) == name) domains.push_back(other.substr(0, end));
  }
  if (const auto near = text::nearest(name, names); !near.empty()) return std::string(domain) + "/" + std::string(near);
  if (const auto near = text::nearest(domain, domains); !near.empty())
    return std::string(near) + "/" + std::string(name);
  return {};
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
