#include "cli/cluster/device_classes.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"

namespace cli {

void add_class(const nlohmann::json& device_class, classes_by_resource& classes) {
  if (!device_class.is_object()) return;
  const auto resource = kube::text_at(device_class, "/spec/extendedResourceName");
  const auto name = kube::text_at(device_class, "/metadata/name");
  if (!resource.empty() && !name.empty()) classes.insert_or_assign(resource, name);
}

kube::task<classes_by_resource> read_device_classes(kube::transport& transport) {
  kube::client api(transport);
  classes_by_resource out;
  for (const auto* type : {&device_classes, &older_device_classes}) {
    const auto listed = co_await api.list(*type, {});
    if (!listed && listed.error().code == kube::errc::not_found) continue;
    if (!listed) co_return std::unexpected(listed.error());
    for (const auto& device_class : *listed) add_class(device_class, out);
    break;
  }
  co_return out;
}

std::string_view class_in_name(std::string_view resource) {
  constexpr std::string_view domain = "deviceclass.resource.kubernetes.io/";
  return resource.starts_with(domain) ? resource.substr(domain.size()) : std::string_view();
}

}  // namespace cli
