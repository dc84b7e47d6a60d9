#include "reconcilers/compiled_rules.hpp"

#include "kube/json_object.hpp"
#include "reconcilers/names.hpp"

namespace reconcilers {

bool compiled_rules::sends_pods() const { return labels.value_or(names::scheduler_label, "") == "Dedicated"; }

kube::result<compiled_rules> compiled_rules::decode(std::string_view bytes) {
  return kube::json::decode<compiled_rules>(
      bytes, kube::keep_none, [](compiled_rules& into, std::string_view key, kube::json::value field) {
        std::string_view raw;
        if (key == "spec" && simdjson::to_json_string(field).get(raw) == simdjson::SUCCESS) into.spec = raw;
      });
}

}  // namespace reconcilers
