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

std::vector<std::string> named_cards(const kube::pod& pod, const api::accelerator_node* report) {
  auto out = placed_cards(pod);
  for (auto& card : out) {
    const bool is_number = !card.empty() && card.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || pod.node_name.empty()) continue;
    auto name = pod.node_name + "/" + card;
    if (report)
      for (const auto& reported : report->cards)
        if (std::to_string(reported.index) == card) name = reported.uuid;
    card = std::move(name);
  }
  return out;
}

}  // namespace cli
