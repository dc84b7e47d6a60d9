#include "reconcilers/modules/custom.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "quota/limits.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"

namespace reconcilers::modules::custom {
namespace {

using kube::text_in;
using nlohmann::json;

/// An empty object where it is none.
json device_in(const module_spec& spec) {
  auto out = json::parse(spec.device, nullptr, false);
  return out.is_object() ? out : json::object();
}

json list_in(const json& object, const char* name) {
  const auto match = object.find(name);
  return match != object.end() && match->is_array() ? *match : json::array();
}

std::vector<std::string> texts_in(const json& object, const char* name) {
  std::vector<std::string> out;
  for (const auto& entry : list_in(object, name)) {
    if (entry.is_string()) out.push_back(entry.get<std::string>());
  }
  return out;
}

std::vector<std::string> resources(const module_spec& spec) {
  std::vector<std::string> out;
  for (const auto& entry : list_in(device_in(spec), "resources")) {
    if (auto name = entry.is_object() ? text_in(entry, "name") : std::string(); !name.empty())
      out.push_back(std::move(name));
  }
  return out;
}

isolation isolates(const module_spec& spec) {
  const auto value = text_in(device_in(spec), "isolation");
  for (const auto entry : {isolation::none, isolation::soft, isolation::mps, isolation::mig}) {
    if (value == quota::text_of(entry)) return entry;
  }
  return isolation::exclusive;
}

json security_of(const json& device) {
  if (device.value("privileged", false)) return {{"privileged", true}};
  auto out = confined();
  if (const auto added = texts_in(device, "capabilities"); !added.empty()) {
    out["capabilities"]["add"] = added;
    out["allowPrivilegeEscalation"] = true;  // which the API server asks for next to CAP_SYS_ADMIN
  }
  return out;
}

/// The plugin folder, and what the policy names.
void add_mounts(const json& device, json& container, json& volumes) {
  int number = 0;
  for (const auto& entry : list_in(device, "hostPaths")) {
    const auto volume = "host-" + std::to_string(number++);
    const auto path = entry.at("path").get<std::string>();
    volumes.push_back(host_path(volume, path, entry.value("type", "")));
    auto made = mount(volume, entry.value("mountPath", path), entry.value("readOnly", false));
    if (const auto propagation = entry.value("mountPropagation", std::string()); !propagation.empty())
      made["mountPropagation"] = propagation;
    container["volumeMounts"].push_back(std::move(made));
  }
  number = 0;
  for (const auto& entry : list_in(device, "configMaps")) {
    const auto volume = "files-" + std::to_string(number++);
    volumes.push_back({{"name", volume}, {"configMap", {{"name", entry.at("name")}}}});
    container["volumeMounts"].push_back(mount(volume, entry.at("mountPath").get<std::string>(), true));
  }
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  const auto device = json::parse(spec.device);
  const auto module_path = "spec.modules." + known.module;
  if (spec.image.empty()) throw invalid_policy({"status.settings.no_image", {{"field", module_path + ".image"}}});
  if (resources(spec).empty())
    throw invalid_policy({"status.settings.no_resource", {{"field", module_path + ".device.resources"}}});
  json plugin = {
      {"name", "device-plugin"},
      {"image", spec.image},
      {"env", {node_name_variable()}},
      {"securityContext", security_of(device)},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false)}},
  };
  if (const auto command = texts_in(device, "command"); !command.empty()) plugin["command"] = command;
  if (!spec.args.empty()) plugin["args"] = json::parse(spec.args);
  auto volumes = json::array({host_path("device-plugins", plugin_folder, "Directory")});
  add_mounts(device, plugin, volumes);
  auto set = daemon_set(known.module, daemon_set_of(known.module, spec), spec, json::array({std::move(plugin)}),
                        std::move(volumes), {});
  auto& pod = set["spec"]["template"]["spec"];
  for (const auto& name : resources(spec))
    pod["tolerations"].push_back({{"key", name}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  for (const auto* flag : {"hostPID", "hostNetwork"}) {
    if (device.value(flag, false)) pod[flag] = true;
  }
  if (const auto account = text_in(device, "serviceAccountName"); !account.empty()) {
    pod["serviceAccountName"] = account;
    pod["automountServiceAccountToken"] = true;
  }
  return {std::move(set)};
}

std::vector<json> declarations(const module_spec& spec, const facts& known) {
  const auto device = device_in(spec);
  published group{known.module, title_of(known.module, spec), title_of(known.module, spec)};
  std::vector<json> out;
  for (const auto& entry : list_in(device, "resources")) {
    if (!entry.is_object() || text_in(entry, "name").empty()) continue;
    resource_declaration declared;
    declared.key = text_in(entry, "name");
    declared.label_en = text_in(entry, "label").empty() ? declared.key : text_in(entry, "label");
    declared.label_zh = declared.label_en;
    declared.default_value = text_in(entry, "default");
    declared.unit = text_in(entry, "unit").empty() ? "count" : text_in(entry, "unit");
    out.push_back(declaration(group, declared));
  }
  const auto alias = alias_of(known.module, spec);
  out.push_back(alias ? device_config(group, alias->key, alias->value) : device_config(group));
  return out;
}

}  // namespace

module_type row_of(const module_spec& spec) {
  module_type out;
  out.objects = objects;
  out.resources_with = resources;
  out.isolates = isolates(spec);
  out.isolates_with = isolates;
  out.declarations = declarations;
  out.rolls_out = custom::rollout_of(out, spec);
  return out;
}

std::string title_of(const std::string& name, const module_spec& spec) {
  const auto value = text_in(device_in(spec), "title");
  return value.empty() ? name : value;
}

std::string daemon_set_of(const std::string& name, const module_spec& spec) {
  const auto value = text_in(device_in(spec), "daemonSet");
  return value.empty() ? name + "-device-plugin" : value;
}

std::vector<std::string> architectures_of(const module_spec& spec) {
  auto out = texts_in(device_in(spec), "architectures");
  if (out.empty()) out = {"amd64", "arm64"};
  return out;
}

std::optional<label_alias> alias_of(const std::string& name, const module_spec& spec) {
  const auto device = device_in(spec);
  const auto position = device.find("nodeLabel");
  if (position == device.end() || !position->is_object()) return std::nullopt;
  label_alias out{text_in(*position, "key"), text_in(*position, "value"), name};
  return out.key.empty() ? std::nullopt : std::optional(std::move(out));
}

rollout rollout_of(const module_type& type, const module_spec& spec) {
  if (type.objects != objects) return type.rolls_out;
  if (text_in(device_in(spec), "updateStrategy") == "OnDelete")
    return {rollout::strategy::by_hand, 5, "the policy says that a restart of this plugin disturbs its pods",
            "spec.modules.<name>.device.updateStrategy"};
  return {rollout::strategy::always, 5,
          "running containers keep their devices while a plugin restarts; the policy may say otherwise",
          "spec.modules.<name>.device.updateStrategy"};
}

}  // namespace reconcilers::modules::custom
