#include "cli/lint/field_rules.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "text/resource_name.hpp"

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

constexpr std::int64_t most_mode = 0777, most_port = 65535, most_lun = 255, most_weight = 100;
constexpr std::array ranges{
    number_limits{"", "backoffLimit"},
    number_limits{"", "backoffLimitPerIndex"},
    number_limits{"", "completions"},
    number_limits{"", "containerPort", 1, most_port},
    number_limits{"", "defaultMode", 0, most_mode},
    number_limits{"", "failedJobsHistoryLimit"},
    number_limits{"", "failureThreshold"},
    number_limits{"", "fsGroup"},
    number_limits{"", "hostPort", 0, most_port},
    number_limits{"", "initialDelaySeconds"},
    number_limits{"", "lun", 0, most_lun},
    number_limits{"", "maxFailedIndexes"},
    number_limits{"", "maxSkew", 1},
    number_limits{"", "minDomains", 1},
    number_limits{"", "minReadySeconds"},
    number_limits{"", "mode", 0, most_mode},
    number_limits{"", "parallelism"},
    number_limits{"", "periodSeconds"},
    number_limits{"", "progressDeadlineSeconds", 1},
    number_limits{"", "replicas"},
    number_limits{"", "runAsGroup"},
    number_limits{"", "runAsUser"},
    number_limits{"", "startingDeadlineSeconds", 0, std::numeric_limits<std::int64_t>::max()},
    number_limits{"", "successThreshold"},
    number_limits{"", "successfulJobsHistoryLimit"},
    number_limits{"", "supplementalGroups"},
    number_limits{"", "timeoutSeconds"},
    number_limits{"", "ttlSecondsAfterFinished"},
    number_limits{"", "weight", 1, most_weight},
    number_limits{"AWSElasticBlockStoreVolumeSource", "partition", 0, most_lun},
    number_limits{"GCEPersistentDiskVolumeSource", "partition", 0, most_lun},
    number_limits{"DaemonSetSpec", "revisionHistoryLimit"},
    number_limits{"DeploymentSpec", "revisionHistoryLimit"},
    number_limits{"GRPCAction", "port", 1, most_port},
    number_limits{"JobSpec", "activeDeadlineSeconds", 0, std::numeric_limits<std::int64_t>::max()},
    number_limits{"PodSpec", "activeDeadlineSeconds", 1},
    number_limits{"Probe", "terminationGracePeriodSeconds", 1, std::numeric_limits<std::int64_t>::max()},
    number_limits{"RollingUpdateStatefulSetStrategy", "partition"},
    number_limits{"ServiceAccountTokenProjection", "expirationSeconds", 600, std::int64_t{1} << 32},
    number_limits{"StatefulSetOrdinals", "start"},
};

struct named_field {
  std::string_view type, field;
  name_kind kind;
  bool may_be_empty = true;
};
constexpr std::array named_fields{
    named_field{"PodSpec", "hostname", name_kind::label},
    named_field{"PodSpec", "nodeName", name_kind::object},
    named_field{"PodSpec", "priorityClassName", name_kind::object},
    named_field{"PodSpec", "runtimeClassName", name_kind::object, false},
    named_field{"PodSpec", "serviceAccountName", name_kind::object},
    named_field{"PodSpec", "subdomain", name_kind::label},
    named_field{"PodAffinityTerm", "topologyKey", name_kind::label_key},
    named_field{"PodReadinessGate", "conditionType", name_kind::label_key},
    named_field{"PodResourceClaim", "name", name_kind::label},
    named_field{"PodResourceClaim", "resourceClaimName", name_kind::object},
    named_field{"PodResourceClaim", "resourceClaimTemplateName", name_kind::object},
    named_field{"PodSchedulingGate", "name", name_kind::label_key},
};

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

const number_limits* limits_of(const kubernetes_fields::object_type& type, std::string_view field) {
  const auto match = std::ranges::find_if(ranges, [&](const number_limits& entry) {
    return entry.field == field && (entry.type.empty() || entry.type == type.name);
  });
  return match == ranges.end() ? nullptr : &*match;
}

name_kind name_kind_of(const kubernetes_fields::object_type& type, std::string_view field, std::string_view text) {
  const auto match = std::ranges::find_if(
      named_fields, [&](const named_field& entry) { return entry.field == field && entry.type == type.name; });
  if (match == named_fields.end() || (text.empty() && match->may_be_empty)) return name_kind::any;
  return match->kind;
}

bool is_name(std::string_view text, name_kind kind) {
  switch (kind) {
    case name_kind::any:
      return true;
    case name_kind::object:
      return text::is_object_name(text);
    case name_kind::label:
      return text::is_dns_label(text);
    case name_kind::label_key:
      return text::is_label_key(text);
  }
  return true;
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
