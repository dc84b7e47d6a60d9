#include "cli/inspect/inspect.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/cluster/part_refused.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/cluster/snapshot.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/subcommands.hpp"
#include "cli/flags/usage.hpp"
#include "cli/lint/lint_workload.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/whole_file.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using kube::text_at;
using nlohmann::ordered_json;
using text::language, text::shown;

constexpr std::size_t most_named = 20;

}  // namespace

std::vector<resource_row> rows_of(const declarations::registry& registry) {
  std::vector<resource_row> out;
  for (auto& judged : registry.judge_all()) {
    const auto* found = registry.find(judged.config_map);
    if (found) out.push_back({found->value, std::move(judged)});
  }
  const auto rank = [](const resource_row& resource_row) {
    return std::tie(resource_row.declaration.key, resource_row.declaration.config_map);
  };
  std::ranges::sort(out, {}, rank);
  return out;
}

held_to_rules judge(const declarations::rule_set& rules, const kube::pod& pod) {
  if (pod.finished() || pod.mirror || is_exempt(pod.key.ns)) return {};
  const auto amounts = declarations::pod_amounts_in(pod.annotations, pod.labels);
  auto ruling = declarations::evaluate(rules, pod.containers, "", {.on_pod = &amounts});
  return {true, std::move(ruling.refused)};
}

namespace {

kube::task<std::vector<kube::object_key>> list_not_selected(kube::transport& transport, std::string ns) {
  namespace names = declarations::names;
  kube::list_options options;
  options.ns = std::move(ns);
  options.label_selector = std::string(names::alauda) + "type!=" + std::string(names::type_value) + "," +
                           std::string(names::cpaas) + "type!=" + std::string(names::type_value) + "," +
                           std::string(names::device_label) + "!=true";
  std::vector<kube::object_key> out;
  const std::function<void(kube::config_map)> keep = [&](kube::config_map config_map) {
    if (config_map.key.name.starts_with("cf-crl-")) out.push_back(std::move(config_map.key));
  };
  const auto listed = co_await list_each<kube::config_map>(transport, options, keep, metadata_only{});
  if (!listed) co_return std::unexpected(listed.error());
  std::ranges::sort(out);
  co_return out;
}

/// One of our own objects named "default": null where there is none, absent where we may not read it.
kube::task<std::optional<nlohmann::json>> read_default(kube::transport& transport, const kube::resource& type) {
  kube::client api(transport);
  const auto path = kube::path_of(type, {}, "default");
  const auto answer = co_await api.raw(path);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status == 404) co_return nlohmann::json();
  auto object = nlohmann::json::parse(answer->body, nullptr, false);
  const bool readable = answer->status == 200 && object.is_object();
  co_return readable ? std::optional(std::move(object)) : std::nullopt;
}

/// What pods are held to now: the rules as the operator compiled them, which outlive an edit into an error; without
/// them what the ConfigMaps say. How strictly, the policy says.
struct rules_in_force {
  declarations::rule_set rules;
  std::string enforcement;
  bool is_compiled = false;  ///< by the operator
};
kube::task<rules_in_force> read_rules(kube::transport& transport, const declarations::registry& registry) {
  const auto compiled = co_await read_default(transport, kube::resources::resource_rules);
  if (!compiled) co_return std::unexpected(compiled.error());
  const auto policy = co_await read_default(transport, kube::resources::accelerator_policies);
  if (!policy) co_return std::unexpected(policy.error());
  rules_in_force out;
  const auto& object = *compiled;
  out.is_compiled = object && object->contains("spec");
  out.rules = out.is_compiled ? declarations::rules_of(object->at("spec")) : registry.compile();
  const auto& spec = *policy;
  out.enforcement = spec ? text_at(*spec, "/spec/customResources/enforcement") : "unknown";
  if (out.enforcement == "Off") out.enforcement.clear();
  co_return out;
}

kube::task<audit> audit_pods(kube::transport& transport, const rules_in_force& in_force, std::string own) {
  audit out;
  out.enforcement = in_force.enforcement;
  const std::function<void(kube::pod)> look_at = [&](kube::pod pod) {
    auto held = judge(in_force.rules, pod);
    if (!held.concerned) return;
    ++out.looked_at;
    if (!held.refused.empty()) out.refused.push_back({std::move(pod.key), std::move(held.refused)});
  };
  auto listed = co_await list_each<kube::pod>(transport, kube::list_options(), look_at);
  if (!listed && listed.error().code == kube::errc::forbidden && !own.empty()) {
    kube::list_options options;
    options.ns = out.ns = std::move(own);
    const auto of_own = co_await list_each<kube::pod>(transport, options, look_at);
    if (of_own) listed = {};
  }
  if (!listed) co_return std::unexpected(listed.error());
  std::ranges::sort(out.refused, {}, &audit::row::pod);
  co_return out;
}

std::string verdict_in(const declarations::judgement& judgement, language locale) {
  return text::message("inspect.verdict." + std::string(declarations::to_string(declarations::verdict_of(judgement))),
                       locale);
}

/// Where the declaration says none, what the program behind the key counts.
std::string unit_of(const declarations::declaration& declaration) {
  const auto* known = quota::resource_key_of(declaration.key);
  if (!declaration.unit.empty() || !known) return declaration.unit;
  const bool is_percentage = known->unit_mib == 0 && (known->legal.max == 99 || known->legal.max == 100);
  return is_percentage ? "%" : std::string(quota::unit_of(*known));
}

std::string default_of(const declarations::declaration& declaration) {
  return declaration.default_value ? std::to_string(*declaration.default_value) : std::string();
}
std::string group_of(const declarations::declaration& declaration, language language) {
  const auto& name = declaration.group_label(language);
  return name.empty() ? declaration.group : name;
}

/// A word that cannot be read is no word: a finding of the same field says so.
bool unreadable(const declarations::judgement& judged, std::string_view field) {
  return std::ranges::any_of(judged.findings, [&](const declarations::finding& f) {
    const bool no_word =
        f.kind == declarations::error_code::not_in_vocabulary || f.kind == declarations::error_code::missing;
    return no_word && (f.field == field || f.field == "data");
  });
}
/// The operator's rules say of limits alone what a ConfigMap asks for.
bool says_requests(const resource_row& row) { return !row.is_compiled; }

std::string word_of(declarations::use use, const declarations::judgement& judged, std::string_view field) {
  return unreadable(judged, field) ? std::string("?") : std::string(to_string(use));
}
/// Neither true nor false where its label cannot be read.
bool known_enabled(const declarations::declaration& declaration) {
  return declaration.enabled || declaration.switched_off;
}

std::string enabled_in(const declarations::declaration& declaration, const bilingual& say) {
  if (!known_enabled(declaration)) return "?";
  return say.message(declaration.enabled ? "inspect.resources.enabled" : "inspect.resources.switched_off");
}

ordered_json as_json(const resource_row& resource_row);

const listing<resource_row>& resources_listing() {
  using row = resource_row;
  static const auto locale = [](const bilingual& say) { return say.zh ? language::zh : language::en; };
  static const listing<row> out{
      "resources",
      {{"resource", [](const row& entry, const bilingual&) { return shown(entry.declaration.key, 320); }},
       {"label", "resource_label",
        [](const row& entry, const bilingual& say) { return shown(entry.declaration.label(locale(say)), 256); }},
       {"group",
        [](const row& entry, const bilingual& say) { return shown(group_of(entry.declaration, locale(say)), 256); }},
       {"unit", [](const row& entry, const bilingual&) { return unit_of(entry.declaration); }},
       {"default", [](const row& entry, const bilingual&) { return default_of(entry.declaration); }},
       {"limits", [](const row& entry,
                     const bilingual&) { return word_of(entry.declaration.limits, entry.judged, "data.limits"); }},
       {"requests",
        [](const row& entry, const bilingual&) {
          return says_requests(entry) ? word_of(entry.declaration.requests, entry.judged, "data.requests")
                                      : std::string("?");
        }},
       {"enabled", [](const row& entry, const bilingual& say) { return enabled_in(entry.declaration, say); }},
       {"verdict", [](const row& entry, const bilingual& say) { return verdict_in(entry.judged, locale(say)); }},
       {"configmap", [](const row& entry, const bilingual&) { return entry.declaration.config_map.name; }},
       {"description",
        [](const row& entry, const bilingual& say) {
          return shown(entry.declaration.description(locale(say)), declarations::max_text_bytes);
        },
        true}},
      [](const row& entry) { return as_json(entry); },
      [](const row& entry) { return "configmap/" + entry.declaration.config_map.name; }};
  return out;
}

std::string audit_line(const audit& audit, language locale) {
  const auto mode = audit.enforcement.empty()
                        ? text::message("inspect.audit_unenforced", locale)
                        : text::message("inspect.audit_enforcement", locale, {{"mode", audit.enforcement}});
  return text::message(
      "inspect.audit", locale,
      {{"mode", mode}, {"refused", std::to_string(audit.refused.size())}, {"pods", std::to_string(audit.looked_at)}});
}

void print_audit(const audit& audit, language locale, std::ostream& out) {
  const auto line = audit_line(audit, locale);
  out << "\n" << (audit.refused.empty() ? line : text::message("inspect.audit_list", locale, {{"line", line}})) << "\n";
  for (std::size_t i = 0; i < std::min(audit.refused.size(), most_named); ++i) {
    const auto& [pod, reasons] = audit.refused[i];
    out << "  " << pod.to_string() << ": " << shown(declarations::text_of(reasons.front(), locale), 1000) << "\n";
  }
  if (audit.refused.size() <= most_named) return;
  const auto rest = std::to_string(audit.refused.size() - most_named);
  out << "  " << text::message("inspect.audit_more", locale, {{"number", rest}}) << "\n";
}

/// Why declarations have the verdict that the table has. What was accepted has none.
void print_verdicts(const std::vector<resource_row>& rows, language locale, std::ostream& out) {
  bool is_first = true;
  for (const auto& row : rows) {
    if (row.judged.findings.empty()) continue;
    if (is_first) out << "\n" << text::message("inspect.resources.reasons", locale) << "\n";
    is_first = false;
    out << "  "
        << text::message("inspect.resources.reason", locale,
                         {{"configmap", row.declaration.config_map.name},
                          {"verdict", verdict_in(row.judged, locale)},
                          {"text", shown(declarations::note_of(row.judged, locale), 2000)}})
        << "\n";
  }
}

ordered_json both(std::string_view en, std::string_view zh) { return {{"en", en}, {"zh", zh}}; }

ordered_json as_json(const declarations::finding& f) {
  return {{"severity", declarations::to_string(declarations::severity_of(f))},
          {"code", to_string(f.kind)},
          {"field", f.field},
          {"value", f.value},
          {"message", both(message_of(f, language::en), message_of(f, language::zh))}};
}

ordered_json as_json(const resource_row& resource_row) {
  const auto& declaration = resource_row.declaration;
  ordered_json out = {{"key", declaration.key},
                      {"label", both(declaration.label_en, declaration.label_zh)},
                      {"description", both(declaration.description_en, declaration.description_zh)},
                      {"group", declaration.group},
                      {"groupName", both(declaration.group_en, declaration.group_zh)},
                      {"unit", unit_of(declaration)}};
  out["default"] = declaration.default_value ? ordered_json(*declaration.default_value) : ordered_json();
  const auto word = [&](declarations::use use, const char* field) {
    return unreadable(resource_row.judged, field) ? ordered_json() : ordered_json(to_string(use));
  };
  out["limits"] = word(declaration.limits, "data.limits");
  out["requests"] = says_requests(resource_row) ? word(declaration.requests, "data.requests") : ordered_json();
  out["relatedResources"] = declaration.related;
  out["excludeResources"] = declaration.excluded;
  out["ignoreNodeCheck"] = declaration.ignore_node_check;
  out["runtimeClassName"] = declaration.runtime_class;
  out["enabled"] = known_enabled(declaration) ? ordered_json(declaration.enabled) : ordered_json();
  out["verdict"] = declarations::to_string(declarations::verdict_of(resource_row.judged));
  out["configMap"] = {{"namespace", declaration.config_map.ns}, {"name", declaration.config_map.name}};
  out["findings"] = ordered_json::array();
  for (const auto& f : resource_row.judged.findings) out["findings"].push_back(as_json(f));
  return out;
}

ordered_json as_json(const audit& audit) {
  auto pods = ordered_json::array();
  for (const auto& [pod, reasons] : audit.refused) {
    ordered_json object = {{"namespace", pod.ns}, {"name", pod.name}, {"reasons", ordered_json::array()}};
    for (const auto& reason : reasons)
      object["reasons"].push_back(both(text_of(reason, language::en), text_of(reason, language::zh)));
    pods.push_back(std::move(object));
  }
  ordered_json out = {{"namespace", audit.ns.empty() ? ordered_json() : ordered_json(audit.ns)},
                      {"enforcement", audit.enforcement.empty() ? "Off" : audit.enforcement},
                      {"podsLookedAt", audit.looked_at},
                      {"podsRefused", audit.refused.size()}};
  out["pods"] = std::move(pods);
  return out;
}

/// What stands next to the list.
ordered_json rest_of(const inspection& inspection) {
  ordered_json out = {{"notSelected", ordered_json::array()}};
  for (const auto& entry : inspection.not_selected)
    out["notSelected"].push_back({{"namespace", entry.ns}, {"name", entry.name}});
  out["audit"] = inspection.audited ? as_json(*inspection.audited) : ordered_json();
  return out;
}

kube::task<void> fetch(kube::transport& transport, std::string ns, std::string own, inspection& inspection) {
  auto found = co_await inspect_resources(transport, std::move(ns), std::move(own));
  if (!found) co_return std::unexpected(std::move(found.error()));
  inspection = std::move(*found);
  co_return kube::result<void>();
}

/// Of an audit that came down to the pods of one namespace.
text::phrase own_pods(const std::string& ns) { return {"inspect.resources.own_pods", {{"namespace", ns}}}; }

constexpr std::string_view resources_example = R"(Example:
  $ quartermaster inspect resources --lang zh
  资源名               名称      组          单位  默认值  LIMITS    REQUESTS  启用  结论  CONFIGMAP
  nvidia.com/mps-core  MPS 算力  英伟达 MPS  %     20      optional  disabled  是    有效  cf-crl-nvidia-mps-core

Reads ConfigMaps, RuntimeClasses, Pods and our own objects, and changes nothing. -o json and -o yaml have both languages.
Who may not read the ConfigMaps sees the keys of the rules that the operator compiled from them, and of pods those of
the own namespace.
Exit codes: 0 done, 1 the cluster, or both the ConfigMaps and the rules, cannot be read, 2 wrong usage, 3 the ConfigMaps
were not looked at)";

resource_row row_of_rule(const declarations::rule& rule) {
  using declarations::use;
  resource_row out;
  out.is_compiled = true;
  auto& declaration = out.declaration;
  declaration.config_map = rule.config_map;
  declaration.key = rule.key;
  declaration.group = rule.group;
  declaration.enabled = declaration.sound = true;
  declaration.limits = rule.forbidden ? use::disabled : rule.must ? use::required : use::optional;
  declaration.default_value = rule.fill;
  declaration.related = rule.related;
  declaration.excluded = rule.excluded;
  declaration.ignore_node_check = !rule.offered;
  declaration.runtime_class = rule.runtime_class;
  return out;
}

/// What can be said where the ConfigMaps may not be read. The refusal where the rules may not either.
kube::task<inspection> inspect_rules(kube::transport& transport, kube::error refusal, std::string own) {
  const declarations::registry none;
  const auto in_force = co_await read_rules(transport, none);
  if (!in_force || !in_force->is_compiled) co_return std::unexpected(std::move(refusal));
  inspection out;
  for (const auto& rule : in_force->rules.rules) out.resources.push_back(row_of_rule(rule));
  out.unseen = part_refused("inspect.resources.unseen", phrase_of(refusal));
  auto audited = co_await audit_pods(transport, *in_force, std::move(own));
  if (audited) out.audited = std::move(*audited);
  co_return out;
}

}  // namespace

kube::task<inspection> inspect_resources(kube::transport& transport, std::string ns, std::string own) {
  const auto found = co_await read_declared(transport, ns);
  if (!found && found.error().code == kube::errc::forbidden)
    co_return co_await inspect_rules(transport, found.error(), std::move(own));
  if (!found) co_return std::unexpected(found.error());
  auto not_selected = co_await list_not_selected(transport, ns);
  if (!not_selected) co_return std::unexpected(not_selected.error());
  const auto registry = registry_of(*found, ns);
  inspection out;
  out.resources = rows_of(registry);
  out.not_selected = std::move(*not_selected);
  const auto in_force = co_await read_rules(transport, registry);
  kube::result<audit> audited = std::unexpected(in_force ? kube::error() : in_force.error());
  if (in_force) audited = co_await audit_pods(transport, *in_force, std::move(own));
  if (audited)
    out.audited = std::move(*audited);
  else
    out.left_out = {"transport.no_audit", {{"problem", phrase_of(audited.error())}}};
  co_return out;
}

void print(const inspection& inspection, const inspect_options& options, std::ostream& out) {
  const auto locale = options.style.language == "zh" ? language::zh : language::en;
  const bool is_read = !options.style.as_data() && options.style.output != "name";
  if (is_read && inspection.resources.empty())
    out << text::message("inspect.resources.nothing", locale, {{"namespace", options.ns}}) << "\n";
  else
    print(resources_listing(), inspection.resources, options.style, out, rest_of(inspection));
  if (!is_read) return;
  if (!inspection.not_selected.empty()) out << "\n" << text::message("inspect.resources.not_selected", locale) << "\n";
  for (const auto& entry : inspection.not_selected) out << "  " << entry.to_string() << "\n";
  print_verdicts(inspection.resources, locale, out);
  if (inspection.audited) print_audit(*inspection.audited, locale, out);
}

int run_inspect_resources(const inspect_options& options, std::ostream& out, std::ostream& err) {
  inspection found;
  const auto own = namespace_of(options.cluster);
  const auto result = ask_cluster(options.cluster,
                                  [&](kube::transport& transport) { return fetch(transport, options.ns, own, found); });
  const auto locale = bilingual(options.style.language).locale();
  if (!result || !found.unseen.empty()) {  // the console's server knows more than the operator's rules say
    auto refused = result ? found.unseen : phrase_of(result.error());
    const view_question question{{}, "declarations", {}, {{"declared", options.ns}}};
    const auto code = namespace_answer(options.cluster, {own, false}, question, options.style, refused, out, err);
    if (code) return *code;
    if (!result) return failed(refused, locale, err);
  }
  if (!found.left_out.empty()) failed(found.left_out, locale, err);
  if (found.audited && !found.audited->ns.empty()) failed(own_pods(found.audited->ns), locale, err);
  if (!found.unseen.empty()) failed(found.unseen, locale, err);
  print(found, options, out);
  return found.unseen.empty() ? 0 : 3;
}

namespace {

/// `inspect --save FILE`, without a subcommand.
void add_save(CLI::App& verb, int& rc) {
  struct options {
    std::string file;
    cluster_options cluster;
  };
  auto flags = std::make_shared<options>();
  add_option(verb, "--save", flags->file,
             "Write what is judged of this cluster to this file (no environment, no commands), for --snapshot of other "
             "verbs; - is standard output")
      ->type_name("FILE");
  add_cluster_options(verb, flags->cluster);
  refuse_flags_before_subcommands(verb);
  verb.callback([flags, &verb, &rc] {
    if (!verb.get_subcommands().empty()) return;
    if (flags->file.empty()) throw CLI::RequiredError("a subcommand or --save");
    nlohmann::ordered_json all;
    const auto result =
        ask_cluster(flags->cluster, [&](kube::transport& transport) { return take_snapshot(transport, all); });
    if (!result) {
      rc = failed(phrase_of(result.error()), language_asked({}), std::cerr);
      return;
    }
    const auto text = all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    if (flags->file == "-") {
      std::cout << text;
      return;
    }
    if (const int error = write_whole_file(text, flags->file); error != 0) {
      rc = failed(flags->file + " cannot be written: " + std::strerror(error), std::cerr);
      return;
    }
    std::cout << flags->file << ": " << all["nodes"].size() << " nodes, " << all["pods"].size() << " pods";
    std::string unseen;
    for (const auto& [list, reason] : all.value("unseen", ordered_json::object()).items())
      unseen += (unseen.empty() ? "; not seen: " : ", ") + list;
    std::cout << unseen << "\n";
  });
}

}  // namespace

void add_inspect(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "inspect", "Show what is in a cluster");
  verb->require_subcommand(0, 1);
  add_save(*verb, rc);
  add_inspect_fleet(*verb, rc);
  auto* resources = add_verb(*verb, "resources", "Declared resources, and pods their rules would refuse");
  auto options = std::make_shared<inspect_options>();
  resources->alias("resource");
  add_listing_options(*resources, options->style, sort_keys(resources_listing()));
  add_namespace_option(*resources, options->ns, "Namespace of the declarations")->capture_default_str();
  add_cluster_options(*resources, options->cluster);
  resources->footer(std::string(resources_example));
  resources->callback([options, &rc] { rc = run_inspect_resources(*options, std::cout, std::cerr); });
}

}  // namespace cli
