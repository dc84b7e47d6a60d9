#include "cli/cluster/placed_cards.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/dialects/dialect.hpp"

namespace cli {
namespace {

using nlohmann::json;

/// {"v":1,"node":"gpu-1","containers":{"main":[{"card":"GPU-<uuid>",...}]}}
std::vector<std::string> in_placement(std::string_view text) {
  std::vector<std::string> out;
  const auto all = json::parse(text, nullptr, false);
  const auto containers = all.is_object() ? all.value("containers", json::object()) : json::object();
  if (!containers.is_object()) return out;
  for (const auto& cards : containers) {
    if (!cards.is_array()) continue;
    for (const auto& card : cards) {
      if (card.is_object() && card.contains("card") && card["card"].is_string())
        out.push_back(card["card"].get<std::string>());
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> placed_cards(const kube::pod& pod) {
  std::vector<std::string> out;
  if (const auto placement = pod.annotations.find("quartermaster.io/placement"))
    out = in_placement(*placement);
  else
    for (const auto* product : reconcilers::dialects::all())
      if (out.empty()) out = product->named_cards(pod);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace cli
