#include "api/compiled_rules.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "kube/json_object.hpp"

namespace api {

bool compiled_rules::sends_pods() const { return labels.value_or(names::scheduler_label, "") == "Dedicated"; }

std::vector<std::string> compiled_rules::keys() const {
  std::vector<std::string> out;
  const auto parsed = nlohmann::json::parse(spec, nullptr, false);
  if (!parsed.is_object()) return out;
  for (const auto& entry : parsed.value("keys", nlohmann::json::array())) {
    if (entry.is_string()) out.push_back(entry.get<std::string>());
  }
  std::ranges::sort(out);
  return out;
}

kube::result<compiled_rules> compiled_rules::decode(std::string_view bytes) {
  return kube::on_demand::decode<compiled_rules>(
      bytes, kube::keep_none, [](compiled_rules& compiled_rules, std::string_view key, kube::on_demand::value field) {
        std::string_view raw;
        if (key == "spec" && simdjson::to_json_string(field).get(raw) == simdjson::SUCCESS) compiled_rules.spec = raw;
      });
}

}  // namespace api
