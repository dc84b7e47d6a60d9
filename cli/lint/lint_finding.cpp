#include "cli/lint/lint_finding.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "reconcilers/declarations/vocabulary.hpp"
#include "text/fact.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::language, text::shown;
using enum text::severity;

struct lint_row {
  lint_code code;
  std::string_view name;
  text::severity level;
};

constexpr std::array<lint_row, lint_code_count> table{{
    {lint_code::not_an_object, "not_an_object", warning},
    {lint_code::not_a_string, "not_a_string", error},
    {lint_code::not_a_mapping, "not_a_mapping", error},
    {lint_code::written_twice, "written_twice", warning},
    {lint_code::object_twice, "object_twice", warning},
    {lint_code::name_malformed, "name_malformed", error},
    {lint_code::name_long, "name_long", error},
    {lint_code::not_selected, "not_selected", warning},
    {lint_code::declaration_of_other_kind, "declaration_of_other_kind", warning},
    {lint_code::spec_unreadable, "spec_unreadable", error},
    {lint_code::wrong_form, "wrong_form", error},
    {lint_code::unknown_field, "unknown_field", error},
    {lint_code::field_missing, "field_missing", error},
    {lint_code::choice_missing, "choice_missing", error},
    {lint_code::choices_many, "choices_many", error},
    {lint_code::not_judged, "not_judged", warning},
    {lint_code::kind_unknown, "kind_unknown", error},
    {lint_code::api_version, "api_version", error},
    {lint_code::api_version_missing, "api_version_missing", error},
    {lint_code::values_file, "values_file", warning},
    {lint_code::config_not_judged, "config_not_judged", warning},
    {lint_code::resource_name, "resource_name", error},
    {lint_code::resource_of_kubernetes, "resource_of_kubernetes", error},
    {lint_code::amount_malformed, "amount_malformed", error},
    {lint_code::amount_fraction, "amount_fraction", error},
    {lint_code::amount_fraction_of_share, "amount_fraction_of_share", error},
    {lint_code::amount_missing, "amount_missing", warning},
    {lint_code::amount_of_larger_unit, "amount_of_larger_unit", warning},
    {lint_code::restart_policy, "restart_policy", error},
    {lint_code::restart_policy_missing, "restart_policy_missing", error},
    {lint_code::amount_negative, "amount_negative", error},
    {lint_code::amount_too_large, "amount_too_large", error},
    {lint_code::amount_in_bytes, "amount_in_bytes", error},
    {lint_code::amount_beyond_cards, "amount_beyond_cards", warning},
    {lint_code::amount_not_judged, "amount_not_judged", warning},
    {lint_code::resources_of_pod, "resources_of_pod", error},
    {lint_code::resources_of_ephemeral, "resources_of_ephemeral", error},
    {lint_code::containers_missing, "containers_missing", error},
    {lint_code::container_twice, "container_twice", error},
    {lint_code::part_name_malformed, "part_name_malformed", error},
    {lint_code::label_key_malformed, "label_key_malformed", error},
    {lint_code::label_value_malformed, "label_value_malformed", error},
    {lint_code::selector_mismatch, "selector_mismatch", error},
    {lint_code::selector_generated, "selector_generated", error},
    {lint_code::refused_together, "refused_together", error},
    {lint_code::volume_missing, "volume_missing", error},
    {lint_code::item_twice, "item_twice", error},
    {lint_code::medium_unknown, "medium_unknown", warning},
    {lint_code::operator_unknown, "operator_unknown", error},
    {lint_code::value_unknown, "value_unknown", error},
    {lint_code::claim_missing, "claim_missing", error},
    {lint_code::claims_not_judged, "claims_not_judged", warning},
    {lint_code::devices_not_judged, "devices_not_judged", warning},
    {lint_code::class_not_judged, "class_not_judged", warning},
    {lint_code::template_text, "template_text", error},
    {lint_code::quota_counts_nothing, "quota_counts_nothing", warning},
    {lint_code::quota_key, "quota_key", error},
    {lint_code::request_without_limit, "request_without_limit", error},
    {lint_code::request_differs, "request_differs", error},
    {lint_code::request_above_limit, "request_above_limit", error},
    {lint_code::resource_forbidden, "resource_forbidden", error},
    {lint_code::amount_not_legal, "amount_not_legal", error},
    {lint_code::partner_missing, "partner_missing", error},
    {lint_code::pod_amount_not_legal, "pod_amount_not_legal", error},
    {lint_code::required_missing, "required_missing", error},
    {lint_code::excluded_together, "excluded_together", error},
    {lint_code::request_unequal, "request_unequal", error},
    {lint_code::too_large, "too_large", error},
    {lint_code::related_missing, "related_missing", warning},
    {lint_code::not_offered, "not_offered", warning},
    {lint_code::unfamiliar_resource, "unfamiliar_resource", warning},
    {lint_code::count_missing, "count_missing", warning},
    {lint_code::modes_mixed, "modes_mixed", warning},
    {lint_code::amounts_refused, "amounts_refused", error},
    {lint_code::amount_beyond_nodes, "amount_beyond_nodes", warning},
    {lint_code::annotation_unfamiliar, "annotation_unfamiliar", warning},
    {lint_code::annotation_not_read, "annotation_not_read", warning},
    {lint_code::unit_differs, "unit_differs", warning},
    {lint_code::default_beyond_card, "default_beyond_card", warning},
    {lint_code::annotation_value, "annotation_value", warning},
    {lint_code::visible_devices, "visible_devices", warning},
    {lint_code::cuda_devices, "cuda_devices", warning},
    {lint_code::privileged_container, "privileged_container", warning},
    {lint_code::limits_disabled, "limits_disabled", warning},
    {lint_code::node_named, "node_named", warning},
    {lint_code::unknown_resource, "unknown_resource", warning},
    {lint_code::declaration_refused, "declaration_refused", warning},
    {lint_code::unserved_resource, "unserved_resource", warning},
    {lint_code::compatibility, "compatibility", warning},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].code != static_cast<lint_code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const lint_row& row_of(lint_code c) { return table[static_cast<std::size_t>(c)]; }

text::fact fact_of(lint_code code, text::yaml::place place, const lint_details& details) {
  const auto& row = row_of(code);
  return {.table = "lint",
          .code = row.name,
          .level = row.level,
          .location = place,
          .parameters = {{"field", std::string(details.field)},
                         {"value", shown(details.value)},
                         {"key", shown(details.key)},
                         {"other", shown(details.other, 240)},
                         {"hint", shown(details.hint)}}};
}

lint_finding about(const manifest& object, text::yaml::place place) {
  lint_finding out;
  out.file = object.file->name;
  out.location = place;
  out.kind = object.kind;
  out.object = object.key;
  return out;
}

std::string_view kind_of(const text::yaml::node& node, language locale) {
  if (node.sequence()) return text::pattern_of("yaml.list", locale);
  if (node.mapping()) return text::pattern_of("yaml.mapping", locale);
  const bool is_boolean = text::yaml::type_of(node) == text::yaml::type::boolean;
  return text::pattern_of(is_boolean ? "yaml.boolean" : "yaml.number", locale);
}

std::string text_of(text::severity level, language locale) {
  return text::message(level == error ? "finding.error" : "finding.warning", locale);
}

}  // namespace

std::string_view to_string(lint_code c) noexcept { return row_of(c).name; }

lint_finding finding_of(const text::fact& fact, const manifest& object, language locale) {
  auto out = about(object, fact.location);
  out.level = fact.level;
  out.code = fact.code;
  out.field = value_of(fact, "field");
  out.value = value_of(fact, "value");
  out.allowed = allowed_of(fact, locale);
  out.remedy = remedy_of(fact, locale);
  out.message = message_of(fact, locale);
  return out;
}

lint_finding finding_of(lint_code code, const manifest& object, text::yaml::place place, const lint_details& details,
                        language locale) {
  return finding_of(fact_of(code, place, details), object, locale);
}

lint_finding finding_of(const config_map_file::not_text& not_text, const manifest& object, language locale,
                        const declarations::finding* judged) {
  const auto& value = *not_text.value;
  const auto text = value.scalar() ? value.text : text::yaml::canonical(value);
  const auto hint = value.scalar() ? "\"" + text + "\"" : "'" + text + "'";
  const lint_details details{.field = not_text.field, .value = text, .other = kind_of(value, locale), .hint = hint};
  const auto fact = fact_of(lint_code::not_a_string, not_text.key->location, details);
  auto out = finding_of(fact, object, locale);
  if (!judged) return out;
  out.allowed = allowed_of(*judged, locale);
  out.remedy = remedy_of(*judged, locale);
  out.message = text::message_of(wrong_of(fact, locale), out.allowed, out.remedy, locale);
  return out;
}

lint_finding finding_of(const declarations::finding& finding, const manifest& object, text::yaml::place place,
                        language language) {
  auto fact = fact_of(finding, language);
  fact.location = place;
  return finding_of(fact, object, language);
}

lint_finding finding_of(const declarations::objection& objection, const manifest& object, text::yaml::place place,
                        std::string_view field, language locale) {
  const auto code = static_cast<lint_code>(static_cast<std::size_t>(lint_code::resource_forbidden) +
                                           static_cast<std::size_t>(objection.kind));
  const auto amount =
      objection.kind == declarations::objection_kind::missing ? std::string() : std::to_string(objection.amount);
  const auto nearest = std::to_string(objection.nearest);
  auto out = finding_of(code, object, place, {field, amount, objection.key, objection.other, nearest}, locale);
  if (const auto* words = declarations::vocabulary_of(objection.key);
      words && objection.kind == declarations::objection_kind::not_legal) {
    out.allowed = text::message(words->legal.words, locale);
  } else if (words && objection.kind == declarations::objection_kind::pod_amount) {
    out.allowed = text::message(words->on_pod.words, locale);
    out.value = objection.nearest > 0 ? nearest : std::string();
  }
  out.message = text::message_of(declarations::text_of(objection, locale), {}, out.remedy, locale);
  return out;
}

lint_finding finding_of_compatibility(std::string_view text, const manifest& object, text::yaml::place place,
                                      std::string_view field) {
  auto out = about(object, place);
  out.level = row_of(lint_code::compatibility).level;
  out.code = to_string(lint_code::compatibility);
  out.field = field;
  out.message = shown(text, 1024);
  return out;
}

void print_text(std::span<const lint_finding> findings, language language, std::ostream& out) {
  for (const auto& f : findings) {
    out << shown(f.file, 4096) << ":" << f.location.line << ":" << f.location.column << ": "
        << text_of(f.level, language) << ": ";
    if (!f.kind.empty() && !f.object.name.empty())
      out << shown(f.kind) << " " << shown(f.object.to_string(), 400) << ": ";
    out << f.message << " [" << f.code << "]\n";
  }
}

nlohmann::ordered_json to_json(std::span<const lint_finding> findings) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& f : findings) {
    out.push_back({{"file", f.file},
                   {"line", f.location.line},
                   {"column", f.location.column},
                   {"severity", declarations::to_string(f.level)},
                   {"kind", f.kind},
                   {"namespace", f.object.ns},
                   {"name", f.object.name},
                   {"code", f.code},
                   {"field", f.field},
                   {"value", f.value},
                   {"allowed", f.allowed},
                   {"remedy", f.remedy},
                   {"message", f.message}});
    if (f.start_fails) out.back()["startFails"] = *f.start_fails;
  }
  return out;
}

}  // namespace cli
