#include "cli/cluster/resource_slices.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;

/// A driver of NVIDIA's cards, as its name has it. That of ComputeDomains links nodes and gives out no card.
bool offers_cards(std::string_view driver) {
  return driver.contains("gpu") || (driver.contains("nvidia") && !driver.starts_with("compute-domain"));
}

}  // namespace

slices_by_node cards_in(const std::vector<json>& list_of_slices) {
  std::map<std::pair<std::string, std::string>, std::size_t> devices;
  for (const auto& slice : list_of_slices) {
    const auto spec = slice.is_object() ? slice.value("spec", json()) : json();
    if (!spec.is_object()) continue;
    const auto node = kube::text_in(spec, "nodeName"), driver = kube::text_in(spec, "driver");
    const auto list = spec.value("devices", json::array());
    if (!node.empty() && offers_cards(driver) && list.is_array()) devices[{node, driver}] += list.size();
  }
  slices_by_node out;
  for (const auto& [place, count] : devices)
    if (count > 0)
      out[place.first].push_back({count == 1 ? "verify.dra_devices.one" : "verify.dra_devices.many",
                                  {{"number", std::to_string(count)}, {"driver", text::shown(place.second)}}});
  return out;
}

kube::task<slices_by_node> read_resource_slices(kube::transport& transport) {
  kube::client api(transport);
  for (const auto* type : {&resource_slices, &older_resource_slices}) {
    auto listed = co_await api.list(*type, {});
    if (listed) co_return cards_in(*listed);
    if (listed.error().code != kube::errc::not_found) co_return std::unexpected(std::move(listed.error()));
  }
  co_return slices_by_node();
}

}  // namespace cli
