#include "cli/lint/repeated_names.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::array<std::string_view, 5> maps_of_names{"labels", "annotations", "nodeSelector", "limits", "requests"};

/// Names that people choose stand in brackets.
std::string below(const std::string& path, std::string_view parent, std::string_view key) {
  const auto name = text::shown(key, 64);
  if (std::ranges::find(maps_of_names, parent) != maps_of_names.end()) return path + "[" + name + "]";
  return path.empty() ? name : path + "." + name;
}

}  // namespace

std::vector<repeated_name> repeated_names(const text::yaml::node& root) {
  struct part {
    const text::yaml::node* node;
    std::string path;
    std::string_view name;
  };
  std::vector<repeated_name> out;
  std::set<const text::yaml::node*> seen;
  std::vector<part> open{{&root, {}, {}}};
  while (!open.empty()) {
    const auto now = std::move(open.back());
    open.pop_back();
    if (!seen.insert(now.node).second) continue;
    for (const auto* key : text::yaml::repeated_keys(now.node))
      out.push_back({below(now.path, now.name, key->text), key->location});
    for (const auto& [key, value] : now.node->entries)
      if (value->mapping() || value->sequence())
        open.push_back({value, below(now.path, now.name, key->text), key->text});
    for (std::size_t i = 0; i < now.node->items.size(); ++i)
      if (const auto* item = now.node->items[i]; item->mapping() || item->sequence())
        open.push_back({item, now.path + "[" + std::to_string(i) + "]", {}});
  }
  std::ranges::sort(out, {}, &repeated_name::location);
  return out;
}

}  // namespace cli
