#include "reconcilers/modules/plugin.hpp"

#include <nlohmann/json.hpp>

#include "api/names.hpp"

namespace reconcilers::modules {

using nlohmann::json;

namespace {

/// On simulated nodes (charts/quartermaster/templates/simulation.yaml), so that no pod of others is played there. Our
/// plugins go only where the operator's label is, so they may tolerate it everywhere.
constexpr std::string_view simulated_taint = "kwok.x-k8s.io/node";

/// Ours, the module's, the policy's; each once.
json tolerations(const module_spec& spec, std::initializer_list<std::string_view> tolerated) {
  auto out = json::array({{{"key", api::names::switching_taint}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
                          {{"key", api::names::accelerator_taint}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
                          {{"key", simulated_taint}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
                          {{"key", "CriticalAddonsOnly"}, {"operator", "Exists"}}});
  for (const auto key : tolerated) out.push_back({{"key", key}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  if (!spec.tolerations.empty()) {
    for (auto& entry : json::parse(spec.tolerations)) {
      if (std::ranges::find(out, entry) == out.end()) out.push_back(std::move(entry));
    }
  }
  return out;
}

/// The policy's wishes about the plugin's own container.
void customise(json& container, const module_spec& spec) {
  if (!spec.image_pull_policy.empty()) container["imagePullPolicy"] = spec.image_pull_policy;
  if (!spec.resources.empty()) container["resources"] = json::parse(spec.resources);
  if (!spec.env.empty()) {
    auto& env = container["env"];
    if (env.is_null()) env = json::array();
    for (auto& entry : json::parse(spec.env)) {
      const auto same = std::ranges::find_if(env, [&](const json& is) { return is.at("name") == entry.at("name"); });
      if (same != env.end())
        *same = std::move(entry);
      else
        env.push_back(std::move(entry));
    }
  }
}

}  // namespace

json daemon_set(std::string_view module, std::string_view name, const module_spec& spec, json containers, json volumes,
                std::initializer_list<std::string_view> tolerated) {
  customise(containers.at(0), spec);
  const json selector = {{api::names::module_label, module}};
  json labels = selector;
  labels["app.kubernetes.io/name"] = name;
  labels[api::names::managed_by_label] = api::names::managed_by;
  labels["name"] = name;  // what the upstream manifests select by
  json pod = {
      {"nodeSelector", selector},
      {"priorityClassName", spec.priority_class.empty() ? "system-node-critical" : spec.priority_class},
      {"tolerations", tolerations(spec, tolerated)},
      // By name also where it is the default one: a DaemonSet whose account is only left out keeps the one before,
      // because the API server has a copy in the old field serviceAccount, which an apply does not take away.
      {"serviceAccountName", "default"},
      {"automountServiceAccountToken", false},
      {"containers", std::move(containers)},
      {"volumes", std::move(volumes)},
  };
  if (!spec.runtime_class.empty()) pod["runtimeClassName"] = spec.runtime_class;
  if (!spec.pull_secrets.empty()) pod["imagePullSecrets"] = json::parse(spec.pull_secrets);
  return {
      {"apiVersion", "apps/v1"},
      {"kind", "DaemonSet"},
      {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/name", name}}}}},
      {"spec",
       {{"selector", {{"matchLabels", selector}}},
        {"template", {{"metadata", {{"labels", std::move(labels)}}}, {"spec", std::move(pod)}}}}},
  };
}

std::string at_registry(std::string_view image, std::string_view registry) {
  if (registry.empty()) return std::string(image);
  while (registry.ends_with('/')) registry.remove_suffix(1);
  const auto first = image.substr(0, image.find('/'));  // a registry, if it reads like a host
  const bool is_host = first.size() < image.size() && (first.find_first_of(".:") != first.npos || first == "localhost");
  if (is_host) image.remove_prefix(first.size() + 1);
  return std::string(registry) + "/" + std::string(image);
}

std::string image_of(const module_spec& spec, std::string_view tested) {
  return spec.image.empty() ? std::string(tested) : spec.image;
}

json variable(std::string_view name, std::string_view value) { return {{"name", name}, {"value", value}}; }

json node_name_variable() {
  return {{"name", "NODE_NAME"}, {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", "spec.nodeName"}}}}}};
}

json host_path(std::string_view volume, std::string_view path, std::string_view type) {
  return {{"name", volume}, {"hostPath", {{"path", path}, {"type", type}}}};
}

json mount(std::string_view volume, std::string_view path, bool read_only) {
  json out = {{"name", volume}, {"mountPath", path}};
  if (read_only) out["readOnly"] = true;
  return out;
}

json service_account(std::string_view name) {
  return {{"apiVersion", "v1"},
          {"kind", "ServiceAccount"},
          {"metadata", {{"name", name}}},
          {"automountServiceAccountToken", false}};
}

namespace {

std::string key_of(const facts& known, std::string_view name) {
  return known.node_set.empty() ? std::string(name) : known.node_set + "." + std::string(name);
}

}  // namespace

json file(const facts& known, std::string_view config_map, std::string_view name, std::string text) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", config_map}}},
          {"data", {{key_of(known, name), std::move(text)}}}};
}

json file_volume(const facts& known, std::string_view volume, std::string_view config_map, std::string_view name) {
  return {{"name", volume},
          {"configMap", {{"name", config_map}, {"items", {{{"key", key_of(known, name)}, {"path", name}}}}}}};
}

json nvidia_variables() {
  return {variable("NVIDIA_VISIBLE_DEVICES", "all"), variable("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")};
}

json confined() {
  return {{"allowPrivilegeEscalation", false},
          {"capabilities", {{"drop", {"ALL"}}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

}  // namespace reconcilers::modules
