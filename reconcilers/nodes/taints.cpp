#include "reconcilers/nodes/taints.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;

/// As ToleratesTaint of k8s.io/api/core/v1.
bool tolerates(const json& toleration, const kube::taint& taint) {
  const auto effect = toleration.value("effect", ""), key = toleration.value("key", "");
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (toleration.value("operator", "") == "Exists") return true;
  return !key.empty() && toleration.value("value", "") == taint.value;
}

/// Of the DaemonSet that runs the module's plugin.
json tolerations_of(const modules::module_type& module, const module_spec& spec) {
  modules::facts known;
  known.module = module.name;
  for (const auto& object : module.objects(spec, known)) {
    const auto pod = object.value("/spec/template/spec"_json_pointer, json::object());
    if (object.at("metadata").at("name") == module.daemon_set) return pod.value("tolerations", json::array());
  }
  return json::array();
}

bool ours(const kube::taint& taint) {
  return taint.key == api::names::switching_taint || taint.key == api::names::accelerator_taint ||
         taint.key.starts_with("node.kubernetes.io/") || taint.effect == "PreferNoSchedule";
}

}  // namespace

std::string untolerated_taints(const kube::node& node, const accelerator_policy& policy, std::string_view module) {
  if (std::ranges::all_of(node.taints, ours)) return {};
  const auto* type = modules::offered_by(&policy).find(module);
  const auto spec = policy.modules.find(module);
  if (!type || spec == policy.modules.end()) return {};
  json tolerations;
  try {
    tolerations = tolerations_of(*type, spec->second);
  } catch (const modules::invalid_policy&) {
    return {};
  } catch (const json::exception&) {
    return {};
  }
  std::string out;
  for (const auto& taint : node.taints) {
    if (ours(taint) || std::ranges::any_of(tolerations, [&](const json& object) { return tolerates(object, taint); }))
      continue;
    out += out.empty() ? "" : ", ";
    out += taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
  }
  return out;
}

}  // namespace reconcilers
