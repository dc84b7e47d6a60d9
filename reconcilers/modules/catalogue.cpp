#include "reconcilers/modules/catalogue.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "reconcilers/modules/custom.hpp"
#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/settings.hpp"
#include "text/text.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr const kube::resource* types[] = {&kube::resources::service_accounts, &kube::resources::services,
                                           &kube::resources::config_maps, &kube::resources::daemon_sets};

const kube::resource& type_of(const json& object) {
  const auto& kind = object.at("kind").get_ref<const std::string&>();
  for (const auto* type : types) {
    if (type->kind == kind) return *type;
  }
  throw std::logic_error("no module may make a " + kind);
}

/// What all our objects have: a namespace, labels to be found by, an owner to go with, and the mark of this intent.
intent stamped(json object, const module_type& type, const module_spec& spec, const facts& known,
               const std::string& ns) {
  intent out;
  out.type = &type_of(object);
  out.module = type.name;
  out.adopt = spec.adopt;
  auto& metadata = object["metadata"];
  metadata["namespace"] = ns;
  metadata["labels"][api::names::managed_by_label] = api::names::managed_by;
  metadata["labels"][api::names::module_label] = type.name;
  if (!known.policy_uid.empty()) {
    const auto& owner = kube::resources::accelerator_policies;
    metadata["ownerReferences"] = json::array({{{"apiVersion", owner.api_version()},
                                                {"kind", owner.kind},
                                                {"name", known.policy_name},
                                                {"uid", known.policy_uid},
                                                {"controller", true}}});
  }
  out.key = {ns, metadata.at("name").get<std::string>()};
  out.hash = api::hex(api::fnv1a(object.dump()));
  metadata["annotations"][api::names::applied_annotation] = out.hash;
  out.body = object.dump();
  return out;
}

bool is_a(const json& object, const kube::resource& type) { return object.at("kind") == type.kind; }

void roll_out(json& set, const rollout& rollout) {
  auto& spec = set["spec"];
  spec["updateStrategy"] = {{"type", "OnDelete"}};
  if (rollout.min_ready_seconds > 0) spec["minReadySeconds"] = rollout.min_ready_seconds;
}

/// After everything else is in the template. Images apart, so that amounts are compared where only they changed.
void mark_template(json& set, bool follows_placement) {
  auto rest = set.at("spec").at("template");
  rest.at("spec").erase("affinity");  // it says on which nodes, not what a pod is made from
  std::string images;
  for (const auto* list : {"containers", "initContainers"}) {
    if (!rest.at("spec").contains(list)) continue;
    for (auto& container : rest["spec"][list]) {
      images += container.at("image").get_ref<const std::string&>() + "\n";
      container["image"] = "";
    }
  }
  const auto mark = api::hex(api::fnv1a(rest.dump())) + "." + api::hex(api::fnv1a(images)) +
                    (follows_placement ? std::string(placement_mark) : "");
  set["spec"]["template"]["metadata"]["annotations"][api::names::template_annotation] = mark;
  set["metadata"]["annotations"][api::names::template_annotation] = mark;
}

/// The nodes of no set. It says so without any set, too: one that is gone from the policy still serves its nodes until
/// they have moved.
void leave_out(json& set) {
  auto& needed = set["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                    ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  needed = json::array({{{"matchExpressions", {{{"key", plugin_set_label}, {"operator", "DoesNotExist"}}}}}});
}

void keep_to(json& set, const std::string& node_set) {
  set["metadata"]["name"] = set.at("metadata").at("name").get<std::string>() + "-" + node_set;
  auto& spec = set["spec"];
  for (auto* labels : {&spec["selector"]["matchLabels"], &spec["template"]["metadata"]["labels"]})
    (*labels)[api::names::node_set_label] = node_set;
  spec["template"]["spec"]["nodeSelector"][plugin_set_label] = node_set;
}

/// Images that neither the policy names nor the operator is come from the registry that the operator was given.
void take_from_registry(json& set, const module_spec& spec, const facts& known) {
  if (known.image_registry.empty()) return;
  auto& pod = set["spec"]["template"]["spec"];
  for (const auto* list : {"initContainers", "containers"}) {
    if (!pod.contains(list)) continue;
    for (auto& container : pod[list]) {
      const auto image = container.at("image").get<std::string>();
      if (image != spec.image && image != known.own_image)
        container["image"] = at_registry(image, known.image_registry);
    }
  }
}

/// The objects for the nodes of one set, or of none. Plugins read their files once, so a pod is replaced when one
/// changes.
std::vector<json> made_for(const module_type& type, const module_spec& spec, const facts& known) {
  auto made = type.objects(spec, known);
  std::string files;
  for (const auto& entry : made) {
    if (is_a(entry, kube::resources::config_maps)) files += entry.at("data").dump();
  }
  const auto rolls_out = rollout_of(type, spec);
  for (auto& entry : made) {
    if (!is_a(entry, kube::resources::daemon_sets)) continue;
    take_from_registry(entry, spec, known);
    roll_out(entry, rolls_out);
    if (!files.empty())
      entry["spec"]["template"]["metadata"]["annotations"][api::names::files_annotation] = api::hex(api::fnv1a(files));
    if (known.node_set.empty())
      leave_out(entry);
    else
      keep_to(entry, known.node_set);
    mark_template(entry, type.follows_placement && type.follows_placement(spec));
  }
  return made;
}

/// DaemonSets next to those that are there, files into the ConfigMap that is there; the rest is the same for all.
void merge(std::vector<json>& objects, std::vector<json> additions) {
  for (auto& entry : additions) {
    const auto same = std::ranges::find_if(objects, [&](const json& other) {
      return other.at("kind") == entry.at("kind") && other.at("metadata").at("name") == entry.at("metadata").at("name");
    });
    if (same == objects.end())
      objects.push_back(std::move(entry));
    else if (is_a(entry, kube::resources::config_maps))
      (*same)["data"].update(entry.at("data"));
  }
}

void check(const module_type& type, const module_spec& spec) {
  const auto module_path = "spec.modules." + std::string(type.name);
  check_settings(type, spec.settings, module_path + ".settings");
  std::vector<std::string_view> seen;
  for (const auto& set : spec.node_sets) {
    constexpr std::string_view chars = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const auto& name = set.name;
    if (name.empty() || name.size() > 20 || name.find_first_not_of(chars) != std::string::npos || name.front() == '-' ||
        name.back() == '-')
      throw invalid_policy(
          {"status.settings.set_name", {{"field", module_path + ".nodeSets"}, {"name", name.substr(0, 80)}}});
    if (std::ranges::find(seen, name) != seen.end())
      throw invalid_policy({"status.settings.set_twice", {{"field", module_path + ".nodeSets"}, {"name", name}}});
    seen.push_back(name);
    const auto path = module_path + ".nodeSets[" + name + "].settings";
    check_settings(type, set.settings, path);
    for (const auto& entry : type.settings) {
      if (entry.type == setting::kind::resource && set.settings.contains(entry.name))
        throw invalid_policy({"status.settings.one_name",
                              {{"field", path + "." + std::string(entry.name)}, {"other", module_path + ".settings"}}});
    }
  }
}

}  // namespace

bool has_prefix(const module_type& module, std::string_view name) {
  return std::ranges::find(module.resources, name) == module.resources.end() &&
         std::ranges::any_of(module.prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

bool advertises(const module_type& module, std::string_view resource) {
  return std::ranges::find(module.resources, resource) != module.resources.end() || has_prefix(module, resource);
}

std::span<const module_type> catalogue() { return offered_by(nullptr).rows(); }
const module_type* find(std::string_view name) { return offered_by(nullptr).find(name); }
const module_type* advertiser(std::string_view resource) { return offered_by(nullptr).advertiser(resource); }

std::string names_for_people() {
  std::string out;
  const auto all = catalogue();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += i + 1 == all.size() ? " and " : ", ";
    out += all[i].name;
  }
  return out;
}

offer::offer(const module_specs& modules) {
  rows_ = {
      pgpu, vgpu, mps, hami, share, gpushare,
  };
  for (auto& row : rows_) {
    const auto match = modules.find(row.name);
    if (match == modules.end()) continue;
    if (row.resources_with) row.resources = keep(row.resources_with(match->second));
    if (row.prefixes_with) row.prefixes = keep(row.prefixes_with(match->second));
  }
  for (const auto& [name, spec] : modules) {
    if (!spec.device.empty() && !find(name)) add(name, modules);
  }
}

void offer::add(const std::string& name, const module_specs& modules) {
  const auto& spec = modules.find(name)->second;
  auto row = custom::row_of(spec);
  row.name = keep(name);
  row.label_values = keep(std::vector{name});
  row.title = keep(custom::title_of(name, spec));
  row.resources = keep(row.resources_with(spec));
  row.needs.architectures = keep(custom::architectures_of(spec));
  row.daemon_set = keep(custom::daemon_set_of(name, spec));
  auto alias = custom::alias_of(name, spec);
  if (auto conflict = spec.enabled ? conflict_of(row, alias, modules) : text::phrase(); !conflict.empty())
    conflicts_.emplace(name, std::move(conflict));
  else if (alias)
    aliases_.push_back(*std::move(alias));
  rows_.push_back(row);
}

text::phrase offer::conflict_of(const module_type& row, const std::optional<label_alias>& alias,
                                const module_specs& modules) const {
  const auto is_off = [&](std::string_view name) {
    const auto match = modules.find(name);
    return match != modules.end() && !match->second.device.empty() && !match->second.enabled;
  };
  const auto path = "spec.modules." + std::string(row.name) + ".device.";
  for (const auto& other : rows_) {
    if (is_off(other.name)) continue;
    for (const auto& resource : row.resources) {
      if (std::ranges::find(other.resources, resource) != other.resources.end())
        return {
            "status.settings.advertised",
            {{"field", path + "resources"}, {"resource", std::string(resource)}, {"module", std::string(other.name)}}};
    }
    if (row.daemon_set == other.daemon_set)
      return {
          "status.settings.daemon_set",
          {{"field", path + "daemonSet"}, {"value", std::string(row.daemon_set)}, {"module", std::string(other.name)}}};
  }
  if (!alias) return {};
  const auto value = text::lower_case(alias->value);
  const auto asks_for = [&](std::string_view module) {
    return text::phrase{
        "status.settings.label",
        {{"field", path + "nodeLabel"}, {"value", alias->key + "=" + alias->value}, {"module", std::string(module)}}};
  };
  for (const auto& other : rows_) {
    if (alias->key == mode_label && std::ranges::find(other.label_values, value) != other.label_values.end())
      return asks_for(other.name);
  }
  for (const auto& other : aliases_) {
    if (!is_off(other.mode) && alias->key == other.key && value == text::lower_case(other.value))
      return asks_for(other.mode);
  }
  return {};
}

text::phrase offer::conflict_of(std::string_view name) const {
  const auto match = conflicts_.find(name);
  return match == conflicts_.end() ? text::phrase() : match->second;
}

std::string_view offer::keep(std::string text) { return texts_.emplace_back(std::move(text)); }

std::span<const std::string_view> offer::keep(const std::vector<std::string>& texts) {
  std::vector<std::string_view> kept;
  for (const auto& text : texts) kept.push_back(keep(text));
  return lists_.emplace_back(std::move(kept));
}

const module_type* offer::find(std::string_view name) const {
  const auto match = std::ranges::find(rows_, name, &module_type::name);
  return match == rows_.end() ? nullptr : &*match;
}

const module_type* offer::advertiser(std::string_view resource) const {
  const auto match = std::ranges::find_if(rows_, [&](const module_type& type) {
    return std::ranges::find(type.resources, resource) != type.resources.end();
  });
  return match == rows_.end() ? nullptr : &*match;
}

const module_type* offer::of_vendor(std::string_view resource, const module_type* serving) const {
  const auto vendor = resource.substr(0, resource.find('/') + 1);
  const auto has = [&](const module_type& module) {
    return std::ranges::any_of(module.resources, [&](auto name) { return name.starts_with(vendor); });
  };
  if (vendor.empty() || (serving && has(*serving))) return vendor.empty() ? nullptr : serving;
  const auto first = std::ranges::find_if(rows_, has);
  return first == rows_.end() ? nullptr : &*first;
}

bool offer::goes_with_its_plugin(std::string_view resource) const {
  const auto* module = advertiser(resource);
  if (!module) return resource.starts_with(mig_prefix);
  return std::ranges::find(module->left_behind, resource) == module->left_behind.end();
}

const offer& offered_by(const accelerator_policy* policy) {
  static const offer table_alone;
  return policy && policy->offered.catalogue ? *policy->offered.catalogue : table_alone;
}

isolation isolation_of(const module_type& type, const module_spec& spec) {
  return type.isolates_with ? type.isolates_with(spec) : type.isolates;
}

rollout rollout_of(const module_type& type, const module_spec& spec) {
  auto out = custom::rollout_of(type, spec);
  // Where our own plugin holds shares by MPS, clients end with its pod, whatever names they have.
  if (isolation_of(type, spec) == isolation::mps && type.follows_placement && type.follows_placement(spec))
    out = mps.rolls_out;
  if (spec.rollout == "Always") out.method = rollout::strategy::always;
  if (spec.rollout == "WhenIdle") out.method = rollout::strategy::when_idle;
  if (spec.rollout == "OnDelete") out.method = rollout::strategy::by_hand;
  return out;
}

std::vector<intent> intents_of(const module_type& module_type, const module_spec& spec, const facts& known) {
  check(module_type, spec);
  auto about = known;
  about.module = module_type.name;
  auto all = made_for(module_type, spec, about);
  for (const auto& set : spec.node_sets) {
    about.node_set = set.name;
    merge(all, made_for(module_type, with_set(spec, set.name), about));
  }
  std::vector<intent> made, out;
  for (auto& object : all) made.push_back(stamped(std::move(object), module_type, spec, known, known.ns));
  for (const auto* type : types) {
    std::ranges::copy_if(made, std::back_inserter(out), [&](const intent& intent) { return intent.type == type; });
  }
  return out;
}

std::vector<intent> declarations_of(const module_type& type, const module_spec& spec, const facts& known,
                                    const std::string& ns) {
  std::vector<intent> out;
  if (!type.declarations) return out;
  check(type, spec);
  auto about = known;
  about.module = type.name;
  for (auto& declaration : type.declarations(spec, about)) {
    // Pods that use the resource need the runtime that the plugin needs.
    if (auto& data = declaration.at("data"); data.contains("runtimeClassName"))
      data["runtimeClassName"] = spec.runtime_class;
    out.push_back(stamped(std::move(declaration), type, spec, known, ns));
    out.back().adopt = false;  // a person's ConfigMap counts, whatever the policy says of workloads
    out.back().yields = true;
  }
  return out;
}

std::vector<std::string> daemon_sets_of(const module_type& type, const module_spec& spec) {
  std::vector<std::string> out{std::string(type.daemon_set)};
  for (const auto& set : spec.node_sets) out.push_back(out.front() + "-" + set.name);
  return out;
}

std::span<const kube::resource* const> object_types() { return types; }

}  // namespace reconcilers::modules
