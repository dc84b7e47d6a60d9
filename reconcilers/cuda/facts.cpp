#include "reconcilers/cuda/facts.hpp"

#include <algorithm>
#include <map>

#include "api/names.hpp"
#include "text/messages.hpp"
#include "text/phrase.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

constexpr std::size_t most_groups = 8, most_names = 3;

std::optional<int> number(const kube::node& node, std::string_view key) {
  const auto text = node.labels.find(key);
  if (!text || text->find('.') != std::string_view::npos || text->starts_with('v')) return std::nullopt;
  const auto numbers = parse_numbers(*text);
  return numbers ? std::optional((*numbers)[0]) : std::nullopt;
}

std::optional<version> pair(const kube::node& node, std::string_view major, std::string_view minor) {
  const auto first = number(node, major), second = number(node, minor);
  if (!first || !second) return std::nullopt;
  return version{*first, *second};
}

std::optional<driver_version> driver(const kube::node& node) {
  const auto first = number(node, keys::driver_major), second = number(node, keys::driver_minor);
  if (!first || !second) return std::nullopt;
  return driver_version{*first, *second, number(node, keys::driver_patch).value_or(0)};
}

}  // namespace

node_facts facts_of(const kube::node& node) {
  node_facts out;
  out.name = node.key.name;
  out.found = pair(node, keys::found_major, keys::found_minor);
  out.labelled = node.labels.contains(keys::cuda_major);
  out.cuda = out.labelled ? pair(node, keys::cuda_major, keys::cuda_minor) : out.found;
  out.driver = driver(node);
  out.capability = pair(node, keys::capability_major, keys::capability_minor);
  out.product = node.labels.value_or(keys::product, "");
  out.card = class_of(out.product);
  const auto mig = node.labels.value_or(keys::mig_strategy, "none");
  // GPU Feature Discovery writes its strategy on every node; a card that cannot be cut is not.
  out.mig = mig != "none" && !mig.empty() && node.labels.value_or("nvidia.com/mig.capable", "") != "false";
  out.architecture = node.architecture;
  out.mode = node.labels.value_or(api::names::module_label, "");
  return out;
}

std::string describe(const node_facts& node_facts, text::language locale) {
  const auto unknown = text::message("cuda.unknown", locale), comma = text::message("cuda.facts.comma", locale);
  std::string out = "CUDA " + (node_facts.cuda ? to_string(*node_facts.cuda) : unknown);
  if (node_facts.driver)
    out += comma + text::message("cuda.facts.driver", locale, {{"driver", to_string(*node_facts.driver)}});
  out += comma + text::message("cuda.facts.capability", locale,
                               {{"capability", node_facts.capability ? to_string(*node_facts.capability) : unknown}});
  if (!node_facts.product.empty()) out += comma + text::shown(node_facts.product, 63);
  if (node_facts.mig) out += comma + text::message("cuda.facts.mig", locale);
  return out;
}

std::string describe(const std::vector<const node_facts*>& nodes, text::language locale) {
  std::map<std::string, std::vector<std::string_view>> groups;
  for (const auto* node : nodes) groups[describe(*node, locale)].push_back(node->name);
  std::vector<std::pair<std::string, std::vector<std::string_view>>> order(groups.begin(), groups.end());
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size() : a.first < b.first;
  });
  std::vector<text::phrase> groups_named;
  std::size_t left = nodes.size();
  for (const auto& [description, names] : order) {
    if (groups_named.size() == most_groups) {
      groups_named.push_back({"cuda.facts.other_kinds", {{"number", std::to_string(left)}}});
      break;
    }
    std::vector<std::string> sorted(names.begin(), names.end());
    std::ranges::sort(sorted);
    groups_named.push_back(
        {"cuda.facts.group", {{"facts", description}, {"names", text::some_of(sorted, most_names, locale)}}});
    left -= names.size();
  }
  return words_of(text::joined_by_semicolons(std::move(groups_named)), locale);
}

}  // namespace reconcilers::cuda
