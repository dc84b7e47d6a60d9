#include "cli/verify/resource_slices.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;

// v1 from Kubernetes 1.34 on.
constexpr std::array<kube::resource, 2> slice_types{
    {{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false},
     {"resource.k8s.io", "v1beta1", "resourceslices", "ResourceSlice", false}}};

/// A driver of NVIDIA's cards, as its name has it. That of ComputeDomains links nodes and gives out no card.
bool offers_cards(std::string_view driver) {
  return driver.contains("gpu") || (driver.contains("nvidia") && !driver.starts_with("compute-domain"));
}

}  // namespace

slices_by_node cards_in(const std::vector<json>& resource_slices) {
  std::map<std::pair<std::string, std::string>, std::size_t> devices;
  for (const auto& slice : resource_slices) {
    const auto spec = slice.is_object() ? slice.value("spec", json()) : json();
    if (!spec.is_object()) continue;
    const auto node = kube::text_in(spec, "nodeName"), driver = kube::text_in(spec, "driver");
    const auto list = spec.value("devices", json::array());
    if (!node.empty() && offers_cards(driver) && list.is_array()) devices[{node, driver}] += list.size();
  }
  slices_by_node out;
  for (const auto& [place, count] : devices)
    if (count > 0)
      out[place.first].push_back(std::to_string(count) + (count == 1 ? " device" : " devices") + " of the DRA driver " +
                                 text::shown(place.second));
  return out;
}

kube::task<slices_by_node> read_resource_slices(kube::transport& transport) {
  kube::client api(transport);
  for (const auto& type : slice_types) {
    auto listed = co_await api.list(type, {});
    if (listed) co_return cards_in(*listed);
    const auto code = listed.error().code;
    if (code == kube::errc::not_found) continue;
    if (code == kube::errc::forbidden) break;
    co_return std::unexpected(std::move(listed.error()));
  }
  co_return slices_by_node();
}

}  // namespace cli
