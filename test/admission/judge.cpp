// What the C++ form of the rules says, for the tests that compare it with what the API server says. One line of JSON
// in, one out:
//
//   {"configMaps": [ConfigMap], "fillOptional": bool, "runtimeClasses": [name], "offered": [key]}
//     -> {"spec": of a ResourceRules object, "refused": [names of declarations in error], "faults": [their fields that
//     are], "bytes": of the spec, "leftOut": rules}
//   {"rules": spec of a ResourceRules object, "pod": Pod, "enforcement": "Deny" | "Warn"}
//     -> {"allowed", "refusals", "advice", "fills": [{"path", "value"}], "runtimeClassName"}
//
// `runtimeClasses` and `offered` absent: not known, so they are not reported.

#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/evaluate.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/registry.hpp"

namespace {

using nlohmann::json;
namespace declarations = reconcilers::declarations;
using names = std::set<std::string, std::less<>>;

declarations::config_map_view::entries entries_of(const json& config_map, const json::json_pointer& json_pointer) {
  declarations::config_map_view::entries out;
  if (!config_map.contains(json_pointer)) return out;
  for (const auto& [key, value] : config_map.at(json_pointer).items())
    out.emplace_back(key, value.get_ref<const std::string&>());
  return out;
}

std::optional<names> names_of(const json& object, const char* field) {
  if (!object.contains(field)) return std::nullopt;
  return object.at(field).get<names>();
}

json compile(const json& object) {
  declarations::registry all;
  all.set_runtime_classes(names_of(object, "runtimeClasses"));
  for (const auto& entry : object.at("configMaps")) {
    declarations::config_map_view view;
    const auto& metadata = entry.at("metadata");
    view.key = {metadata.value("namespace", "kube-public"), metadata.at("name").get<std::string>()};
    view.labels = entries_of(entry, json::json_pointer("/metadata/labels"));
    view.data = entries_of(entry, json::json_pointer("/data"));
    all.put(view);
  }
  const auto offered = names_of(object, "offered");
  declarations::compile_options options;
  options.fill_optional = object.value("fillOptional", false);
  options.offered = offered ? &*offered : nullptr;
  auto fits = declarations::fitting(all.compile(options));
  auto spec = declarations::spec_of(fits.rules);
  auto refused = json::array(), faults = json::array();
  for (const auto& entry : all.judge_all()) {
    if (declarations::has_error(entry.findings)) refused.push_back(entry.config_map.name);
    for (const auto& f : entry.findings) {
      if (declarations::severity_of(f) == text::severity::error) faults.push_back(f.field);
    }
  }
  const auto bytes = spec.dump().size();
  return {{"spec", std::move(spec)},
          {"refused", std::move(refused)},
          {"faults", std::move(faults)},
          {"bytes", bytes},
          {"leftOut", fits.left_out}};
}

/// A key as a member of a path (RFC 6901).
std::string escaped(const std::string& key) {
  std::string out;
  for (const char c : key) out += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return out;
}

json judge(const json& object) {
  const auto rules = declarations::rules_of(object.at("rules"));
  auto pod = declarations::parse_pod_spec(object.at("pod").at("spec").dump());
  if (!pod) return {{"error", pod.error().message}};
  pod->amounts = declarations::pod_amounts_in(entries_of(object.at("pod"), json::json_pointer("/metadata/annotations")),
                                              entries_of(object.at("pod"), json::json_pointer("/metadata/labels")));
  declarations::evaluation evaluation;
  evaluation.fill = object.at("enforcement") == "Deny";
  const auto ruling = declarations::evaluate(rules, *pod, evaluation);
  auto fills = json::array();
  for (const auto& fill : ruling.fills)
    fills.push_back({{"path", pod->path(fill.container) + "/resources/limits/" + escaped(fill.key)},
                     {"value", std::to_string(fill.amount)}});
  return {{"allowed", ruling.allowed()},
          {"refusals", declarations::texts_of(ruling.refused)},
          {"advice", declarations::texts_of(ruling.warnings)},
          {"fills", std::move(fills)},
          {"runtimeClassName", ruling.runtime_class}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    json out;
    try {
      const auto input = json::parse(line);
      out = input.contains("configMaps") ? compile(input) : judge(input);
    } catch (const std::exception& problem) {
      out = {{"error", problem.what()}};
    }
    std::cout << out.dump() << std::endl;
  }
}
