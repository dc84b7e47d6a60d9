// What the C++ form of the rules says, for the tests that compare it with what the API server says. One line of JSON
// in, one out:
//
//   {"configMaps": [ConfigMap], "fillOptional": bool, "runtimeClasses": [name], "offered": [key]}
//     -> {"spec": of a ResourceRules object, "refused": [names of declarations in error], "faults": [their fields that
//     are], "bytes": of the spec, "leftOut": rules}
//   {"rules": spec of a ResourceRules object, "pod": Pod, "enforcement": "Deny" | "Warn"}
//     -> {"allowed", "refusals", "advice", "fills": [{"path", "value"}], "runtimeClassName"}
//
// `runtimeClasses` and `offered` absent: not known, so nothing is said of them.

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
namespace crl = reconcilers::crl;
using names = std::set<std::string, std::less<>>;

crl::config_map_view::entries entries_of(const json& config_map, const json::json_pointer& at) {
  crl::config_map_view::entries out;
  if (!config_map.contains(at)) return out;
  for (const auto& [key, value] : config_map.at(at).items()) out.emplace_back(key, value.get_ref<const std::string&>());
  return out;
}

std::optional<names> names_of(const json& in, const char* field) {
  if (!in.contains(field)) return std::nullopt;
  return in.at(field).get<names>();
}

json compile(const json& in) {
  crl::registry all;
  all.set_runtime_classes(names_of(in, "runtimeClasses"));
  for (const auto& one : in.at("configMaps")) {
    crl::config_map_view view;
    const auto& metadata = one.at("metadata");
    view.key = {metadata.value("namespace", "kube-public"), metadata.at("name").get<std::string>()};
    view.labels = entries_of(one, json::json_pointer("/metadata/labels"));
    view.data = entries_of(one, json::json_pointer("/data"));
    all.put(view);
  }
  const auto offered = names_of(in, "offered");
  crl::compile_options how;
  how.fill_optional = in.value("fillOptional", false);
  how.offered = offered ? &*offered : nullptr;
  auto fits = crl::fitting(all.compile(how));
  auto spec = crl::spec_of(fits.rules);
  auto refused = json::array(), faults = json::array();
  for (const auto& one : all.judge_all()) {
    if (crl::has_error(one.findings)) refused.push_back(one.config_map.name);
    for (const auto& f : one.findings) {
      if (crl::severity_of(f) == crl::severity::error) faults.push_back(f.field);
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

json judge(const json& in) {
  const auto rules = crl::rules_of(in.at("rules"));
  auto pod = crl::parse_pod_spec(in.at("pod").at("spec").dump());
  if (!pod) return {{"error", pod.error().what}};
  pod->amounts = crl::pod_amounts_in(entries_of(in.at("pod"), json::json_pointer("/metadata/annotations")),
                                     entries_of(in.at("pod"), json::json_pointer("/metadata/labels")));
  crl::evaluation how;
  how.fill = in.at("enforcement") == "Deny";
  const auto ruling = crl::evaluate(rules, *pod, how);
  auto fills = json::array();
  for (const auto& one : ruling.fills)
    fills.push_back({{"path", pod->path(one.container) + "/resources/limits/" + escaped(one.key)},
                     {"value", std::to_string(one.amount)}});
  return {{"allowed", ruling.allowed()},
          {"refusals", crl::texts_of(ruling.refused)},
          {"advice", crl::texts_of(ruling.said)},
          {"fills", std::move(fills)},
          {"runtimeClassName", ruling.runtime_class}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    json out;
    try {
      const auto in = json::parse(line);
      out = in.contains("configMaps") ? compile(in) : judge(in);
    } catch (const std::exception& problem) {
      out = {{"error", problem.what()}};
    }
    std::cout << out.dump() << std::endl;
  }
}
