#include "cli/lint/lint_workload.hpp"

#include <algorithm>
#include <tuple>

#include "api/names.hpp"
#include "cli/lint/pod_amounts.hpp"
#include "cli/lint/pod_devices.hpp"
#include "cli/lint/pod_fields.hpp"
#include "cli/lint/pod_labels.hpp"
#include "cli/lint/pod_values.hpp"
#include "text/messages.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {

namespace declarations = reconcilers::declarations;
using text::language;

void lint_kind(const manifest& manifest, language language, std::vector<lint_finding>& lint_findings) {
  const auto version = text::yaml::text_at(manifest.root, "apiVersion");
  const auto say = [&](lint_code code, const lint_details& details) {
    const auto* entry = text::yaml::find_entry(manifest.root, details.field);
    const auto place = entry ? entry->key->location : manifest.root->location;
    lint_findings.push_back(finding_of(code, manifest, place, details, language));
  };
  const bool names_kind = !text::yaml::text_at(manifest.root, "kind").empty();  // items of a list need not
  if (version.empty() && names_kind) {
    const auto hint = version_meant(manifest);
    say(lint_code::api_version_missing, {.field = "apiVersion", .key = manifest.kind, .hint = hint});
  } else if (is_no_kind(manifest)) {
    const auto hint = nearest_kind(manifest);
    say(lint_code::kind_unknown, {.field = "kind", .value = manifest.kind, .other = version, .hint = hint});
  } else if (const auto meant = version_meant(manifest); !version.empty() && !meant.empty()) {
    say(lint_code::api_version, {.field = "apiVersion", .value = version, .key = manifest.kind, .hint = meant});
  }
}

namespace {

/// As k8s.io/kubernetes pkg/apis/{apps,batch}/validation has it, 1.30 to 1.37: a Job's name is a label of its pods, and
/// a CronJob adds eleven characters for each Job.
std::size_t longest_name(const manifest& manifest) {
  if (manifest.group == "batch" && manifest.kind == "CronJob") return 52;
  if (manifest.group == "batch" && manifest.kind == "Job") return 63;
  return manifest.group == "apps" && manifest.kind == "StatefulSet" ? 63 : 253;
}

}  // namespace

void lint_names(const manifest& manifest, language language, std::vector<lint_finding>& lint_findings) {
  const auto say = [&](lint_code code, const lint_details& details) {
    lint_findings.push_back(finding_of(code, manifest, place_of(manifest, details.field), details, language));
  };
  const auto check = [&](std::string_view field, std::string_view value, bool label) {
    if (label ? text::is_dns_label(value) : text::is_object_name(value)) return;
    auto lower = text::lower_case(value.substr(0, 253));
    std::ranges::replace(lower, '_', '-');
    if (label) std::ranges::replace(lower, '.', '-');
    const bool is_legal = label ? text::is_dns_label(lower) : text::is_object_name(lower);
    say(lint_code::name_malformed, {.field = field, .value = value, .hint = is_legal ? lower : std::string()});
  };
  const bool stateful = manifest.group == "apps" && manifest.kind == "StatefulSet";
  std::string_view name = manifest.key.name;
  const auto most = longest_name(manifest);
  if (name.ends_with('-')) {  // a generateName, which the API server cuts before it adds to it
    while (name.size() > 1 && name.ends_with('-')) name.remove_suffix(1);
    name = name.substr(0, most);
  }
  if (name.size() > most)
    say(lint_code::name_long, {.field = "metadata.name",
                               .value = std::to_string(name.size()),
                               .key = manifest.kind,
                               .other = std::to_string(most)});
  else
    check("metadata.name", name, stateful);
  if (!manifest.key.ns.empty()) check("metadata.namespace", manifest.key.ns, true);
}

std::optional<lint_finding> first_error_of(const manifest& manifest, const pod_forms& forms, language language) {
  std::vector<lint_finding> findings;
  if (!manifest.kind.empty()) {
    lint_kind(manifest, language, findings);
    lint_names(manifest, language, findings);
  }
  lint_workload(manifest, forms, {}, language, findings);
  // Who asks where a pod would run need not have written all of it.
  std::erase_if(findings, [](const lint_finding& finding) {
    return finding.level != text::severity::error || finding.code == to_string(lint_code::field_missing) ||
           finding.code == to_string(lint_code::choice_missing);
  });
  const auto rank = [](const lint_finding& finding) {
    return std::tuple(finding.location, std::string_view(finding.code), std::string_view(finding.message));
  };
  const auto first = std::ranges::min_element(findings, {}, rank);
  if (first == findings.end()) return std::nullopt;
  return std::move(*first);
}

void lint_amounts(const manifest& manifest, std::span<const amounts_at> all, const declarations::rule_set& rules,
                  language language, std::vector<lint_finding>& lint_findings, const known_cluster* known) {
  const pod_form nowhere{};
  judged_pod object{manifest, nowhere, true, language, lint_findings, known};
  judge_object(object);
  for (const auto& entry : all) judge_amounts(object, entry, rules);
}

void lint_workload(const manifest& manifest, const pod_forms& forms, const declarations::rule_set& rules,
                   language language, std::vector<lint_finding>& lint_findings, const known_cluster* known) {
  for (const auto& form : forms.forms) {
    judged_pod pod{manifest, form, !forms.by_form, language, lint_findings, known};
    if (&form == &forms.forms.front()) judge_object(pod);
    if (!form.spec) {
      pod.say(lint_code::spec_unreadable, manifest.root->location,
              {.field = pod.path, .other = text::pattern_of("yaml.none", language)});
    } else if (form.alone) {
      judge_resources_alone(pod, rules);
    } else {
      judge_fields(pod);
      judge_values(pod);
      judge_selectors(pod);
      judge_amounts(pod, rules);
      judge_devices(pod);
    }
  }
}

bool is_exempt(std::string_view ns) { return api::names::is_system(ns); }

}  // namespace cli
