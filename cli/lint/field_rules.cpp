#include "cli/lint/field_rules.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace cli::field_rules {
namespace {

using text::yaml::node;

struct unique_field {
  std::string_view type, list, field;
};
constexpr std::array<unique_field, 12> unique_fields{{
    {"PodSpec", "volumes", "name"},
    {"PodSpec", "resourceClaims", "name"},
    {"PodSpec", "schedulingGates", "name"},
    {"PodSecurityContext", "sysctls", "name"},
    {"Container", "ports", "name"},
    {"Container", "resizePolicy", "resourceName"},
    {"Container", "volumeMounts", "mountPath"},
    {"Container", "volumeDevices", "name"},
    {"Container", "volumeDevices", "devicePath"},
    {"EphemeralContainer", "volumeMounts", "mountPath"},
    {"EphemeralContainer", "volumeDevices", "name"},
    {"EphemeralContainer", "volumeDevices", "devicePath"},
}};

bool is_chosen(const node& value) {
  if (value.scalar()) return type_of(value) != text::yaml::type::null && !value.text.empty();
  return value.mapping() || (value.sequence() && !value.items.empty());
}

}  // namespace

const alternatives* alternatives_of(const kubernetes_fields::object_type& type) {
  static const std::array<alternatives, 11> rules{{
      {"Probe", {"exec", "grpc", "httpGet", "tcpSocket"}},
      {"LifecycleHandler", {"exec", "httpGet", "sleep", "tcpSocket"}},
      {"EnvVar", {"value", "valueFrom"}, true},
      {"EnvVarSource", {"configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"}},
      {"EnvFromSource", {"configMapRef", "secretRef"}},
      {"DownwardAPIVolumeFile", {"fieldRef", "resourceFieldRef"}},
      {"FCVolumeSource", {"targetWWNs", "wwids"}},
      {"PodResourceClaim", {"resourceClaimName", "resourceClaimTemplateName"}},
      {"Volume", {}, true},
      {"VolumeMount", {"subPath", "subPathExpr"}, true},
      {"VolumeProjection", {}, true},
  }};
  const auto match = std::ranges::find(rules, type.name, &alternatives::type);
  return match == rules.end() ? nullptr : match;
}

std::vector<std::string_view> names_of(const alternatives& rule, const kubernetes_fields::object_type& type) {
  std::vector<std::string_view> out;
  for (const auto& field : type.fields)
    if (rule.fields.empty() ? field.name != "name" : std::ranges::find(rule.fields, field.name) != rule.fields.end())
      out.push_back(field.name);
  return out;
}

std::vector<const node::entry*> chosen(const node& mapping, std::span<const std::string_view> names) {
  std::vector<const node::entry*> out;
  for (const auto& entry : mapping.entries) {
    const std::string_view name = entry.key->text;
    const bool is_named = std::ranges::find(names, name) != names.end();
    if (is_named && is_chosen(*entry.value) && text::yaml::find_entry(&mapping, name) == &entry) out.push_back(&entry);
  }
  return out;
}

std::vector<repeated_item> repeated_items(const node& mapping, const std::string& path,
                                          const kubernetes_fields::object_type& type) {
  std::vector<repeated_item> out;
  for (const auto& rule : unique_fields) {
    const auto* list = rule.type == type.name ? text::yaml::find(&mapping, rule.list) : nullptr;
    if (!list || !list->sequence()) continue;
    std::set<std::string_view> before;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const auto* entry = text::yaml::find_entry(list->items[i], rule.field);
      const bool is_filled = entry && entry->value->scalar() && is_chosen(*entry->value);
      if (!is_filled || entry->value->text.contains("{{") || before.insert(entry->value->text).second) continue;
      out.push_back({entry, path + (path.empty() ? "" : ".") + std::string(rule.list) + "[" + std::to_string(i) + "]." +
                                std::string(rule.field)});
    }
  }
  return out;
}

bool are_values_legal(const node& mapping, const kubernetes_fields::object_type& type) {
  if (type.name != "NodeSelectorRequirement" && type.name != "LabelSelectorRequirement") return true;
  const auto op = text::yaml::text_at(&mapping, "operator");
  const auto* values = text::yaml::find(&mapping, "values");
  const auto count = values && values->sequence() ? values->items.size() : 0;
  if (op == "In" || op == "NotIn") return count > 0;
  if (op == "Exists" || op == "DoesNotExist") return count == 0;
  return (op != "Gt" && op != "Lt") || count == 1;
}

}  // namespace cli::field_rules
