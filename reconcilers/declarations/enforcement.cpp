#include "reconcilers/declarations/enforcement.hpp"

#include "kube/json_object.hpp"

namespace reconcilers {

namespace on_demand = kube::on_demand;

enforcement enforcement_of(std::string_view text) noexcept {
  return text == "Deny" ? enforcement::deny : text == "Warn" ? enforcement::warn : enforcement::disabled;
}

bool fills_pods(std::string_view api_resource_list) {
  on_demand::document document;
  bool out = false;
  try {
    auto root = document.open(api_resource_list);
    for (auto member : root.get_object()) {
      const std::string_view key = member.unescaped_key();
      on_demand::value field = member.value();
      if (key != "resources") continue;
      on_demand::each_item(field, [&](on_demand::value resource) {
        on_demand::each_member(resource, [&](std::string_view name, on_demand::value part) {
          if (name == "name" && on_demand::text_or(part) == "mutatingadmissionpolicies") out = true;
        });
      });
    }
  } catch (const simdjson::simdjson_error&) {
    return false;
  }
  return out;
}

}  // namespace reconcilers
