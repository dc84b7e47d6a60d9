#include "cli/lint/lint.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "api/compiled_rules.hpp"
#include "cli/cluster/declared_document.hpp"
#include "cli/cluster/part_refused.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/subcommands.hpp"
#include "cli/lint/lint_workload.hpp"
#include "cli/lint/range_amounts.hpp"
#include "cli/lint/repeated_names.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/declarations/resource_rules.hpp"
#include "text/messages.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::language;

/// Rules of the cluster for the keys that no file declares.
void add_missing(declarations::rule_set& rules, const declarations::rule_set& more) {
  const auto known = rules;
  for (const auto& rule : more.rules)
    if (!known.find(rule.key)) rules.rules.push_back(rule);
  for (const auto& group : more.groups)
    if (!known.group(group.name)) rules.groups.push_back(group);
  std::ranges::sort(rules.rules, {}, &declarations::rule::key);
  std::ranges::sort(rules.groups, {}, &declarations::group_rule::name);
}

std::string located(const manifest& manifest) {
  return manifest.file->name + ":" + std::to_string(manifest.root->location.line);
}

/// All files at once: one registry, one report.
class linter {
 public:
  linter(std::span<const text::yaml::source> files, const lint_settings& settings)
      : settings_(settings), language_(settings.locale), registry_(where(settings)) {
    for (const auto& file : files) {
      order_.try_emplace(file.name, order_.size());
      std::ranges::move(manifests_in(file), std::back_inserter(objects_));
    }
  }

  lint_report run() {
    take_in_cluster();
    for (const auto& object : objects_) {
      if (object.kind == "ConfigMap") last_[object.key] = &object;
    }
    for (const auto& object : objects_) look_at(object), look_for_repeated_names(object);
    judge();
    const auto one_only = settings_.one_only.value_or(std::string(reconcilers::single_share({})));
    declarations::compile_options options;
    options.one_only = one_only;
    auto rules = registry_.compile(options);
    if (settings_.compiled) add_missing(rules, *settings_.compiled);
    known_cluster known;
    if (settings_.nodes) {
      for (const auto& node : *settings_.nodes) {
        add_offered(node, known.resources.offered);
        known.nodes.push_back(&node);
      }
    }
    for (const auto& rule : rules.rules) known.resources.declared.insert(rule.key);
    known.resources.add_refused(refused_declarations(registry_));
    if (settings_.policy) known.modules = modules_of(settings_.policy, known.nodes);
    known.resources.classes = settings_.classes;
    for (const auto& object : objects_)
      if (is_of_dra(object) && object.kind == "DeviceClass")
        add_class(text::yaml::to_json(*object.root).value_or(nlohmann::json()), known.resources.classes);
    const auto of_modules = with_modules(rules, one_only);
    const auto* cluster = settings_.nodes ? &known : nullptr;
    for (const auto& [object, forms] : workloads_) {
      ++out_.workloads;
      if (forms.by_form && !object->kind.empty()) out_.kinds_by_form.insert(object->kind);
      lint_workload(*object, forms, of_modules, language_, out_.findings, cluster);
    }
    for (const auto* quota : quotas_) look_at_quota(*quota, of_modules, cluster);
    leave_out_refused_keys();
    for (const auto* range : ranges_) look_at_range(*range, of_modules, cluster);
    look_at_other_config_maps();
    out_.nothing = std::ranges::all_of(out_.findings,
                                       [](const lint_finding& finding) { return finding.code == "not_an_object"; }) &&
                   std::ranges::all_of(objects_, [](const manifest& object) { return object.kind.empty(); });
    const auto rank = [&](const lint_finding& f) {
      return std::tuple(order_.at(f.file), f.level, f.location, std::string_view(f.code), std::string_view(f.message));
    };
    std::ranges::sort(out_.findings, {}, rank);
    return std::move(out_);
  }

 private:
  static declarations::parse_settings where(const lint_settings& settings) {
    declarations::parse_settings out;
    out.ns = settings.ns;
    return out;
  }

  void say(lint_code code, const manifest& manifest, text::yaml::place place, const lint_details& details) {
    out_.findings.push_back(finding_of(code, manifest, place, details, language_));
  }

  void take_in_cluster() {
    if (!settings_.cluster) return;
    registry_.set_runtime_classes(settings_.cluster->runtime_classes);
    for (const auto& config_map : settings_.cluster->config_maps) registry_.put(reconcilers::view_of(config_map));
  }

  void look_for_repeated_names(const manifest& manifest) {
    for (const auto& [path, location] : repeated_names(*manifest.root))
      say(lint_code::written_twice, manifest, location, {.field = path});
  }

  void look_at(const manifest& manifest) {
    auto forms = pod_forms_of(manifest);
    if (manifest.kind.empty()) {
      const bool values = forms.knowledge == kind_knowledge::makes_pods;
      say(values ? lint_code::values_file : lint_code::not_an_object, manifest, manifest.root->location, {});
      if (values) workloads_.emplace_back(&manifest, std::move(forms));
      return;
    }
    const bool config_map = manifest.kind == "ConfigMap";
    lint_kind(manifest, language_, out_.findings);
    if (!config_map) look_for_labels_of_declaration(manifest);
    if (manifest.group.empty() && manifest.kind == "ResourceQuota") quotas_.push_back(&manifest);
    if (manifest.group.empty() && manifest.kind == "LimitRange") ranges_.push_back(&manifest);
    if (forms.knowledge == kind_knowledge::unknown) return not_judged(manifest);
    if (forms.knowledge == kind_knowledge::makes_pods)
      workloads_.emplace_back(&manifest, std::move(forms));
    else if (!config_map)
      return;
    const auto known = out_.findings.size();
    lint_names(manifest, language_, out_.findings);
    for (auto i = known; i < out_.findings.size(); ++i) refuse(manifest, out_.findings[i].field);
    if (config_map) look_at_config_map(manifest);
  }

  /// Who writes a declaration as something else waits for rules that no one reads.
  void look_for_labels_of_declaration(const manifest& manifest) {
    const auto text = read_config_map(manifest);
    if (kind_of(text.view()) != declarations::kind::declaration) return;
    const auto* entry = text::yaml::find_entry(manifest.root, "kind");
    say(lint_code::declaration_of_other_kind, manifest, entry ? entry->key->location : manifest.root->location,
        {.field = "kind", .value = manifest.kind});
  }

  void not_judged(const manifest& manifest) {
    if (is_no_kind(manifest)) return;  // said
    const auto is = manifest.kind + (manifest.group.empty() ? "" : " of " + manifest.group);
    const auto* entry = text::yaml::find_entry(manifest.root, "kind");
    const auto hint = nearest_kind(manifest);
    say(is_of_dra(manifest) ? lint_code::devices_not_judged : lint_code::not_judged, manifest,
        entry ? entry->key->location : manifest.root->location, {.field = "kind", .value = is, .hint = hint});
  }

  /// A declaration that is refused names its key all the same, and has findings of its own.
  void leave_out_refused_keys() {
    std::set<std::string_view> keys;
    for (const auto& [entry, findings] : judgements_)
      if (const auto* parsed = registry_.find(entry->key)) keys.insert(parsed->value.key);
    std::erase_if(out_.findings, [&](const lint_finding& finding) {
      const bool is_of_key = finding.code == to_string(lint_code::unfamiliar_resource) ||
                             finding.code == to_string(lint_code::declaration_refused);
      return finding.kind != "ConfigMap" && is_of_key && keys.contains(finding.value);
    });
  }

  /// Of extended resources Kubernetes counts requests alone.
  void look_at_quota(const manifest& manifest, const declarations::rule_set& rules, const known_cluster* cluster) {
    const auto* hard = text::yaml::find(text::yaml::find(manifest.root, "spec"), "hard");
    lint_amounts(manifest, std::array{amounts_at{hard, "spec.hard", "requests."}}, rules, language_, out_.findings,
                 cluster);
    if (!hard || !hard->mapping()) return;
    std::vector<std::string_view> known;
    for (const auto& rule : rules.rules) known.emplace_back(rule.key);
    for (const auto& entry : hard->entries) {
      const std::string_view name = entry.key->text;
      // Other things that are counted: objects, storage of a class, and devices of a DeviceClass.
      if (name.starts_with("count/") || name.contains(".storageclass.storage.k8s.io/") ||
          name.ends_with(".deviceclass.resource.k8s.io/devices"))
        continue;
      auto key = name;
      for (const std::string_view prefix : {"requests.", "limits.", "request.", "limit."})
        if (key.starts_with(prefix)) {
          key.remove_prefix(prefix.size());
          break;
        }
      const auto field = "spec.hard[" + text::shown(name, 320) + "]";
      const bool extended = text::is_extended_resource(key);
      const auto hint = extended && !rules.find(key) ? nearest_key(key, known) : extended ? "" : whole_name(key, known);
      const lint_details details{.field = field, .value = key, .key = key, .hint = hint};
      if (!extended && !is_quota_name(name))
        say(lint_code::quota_key, manifest, entry.key->location, details);
      else if (extended && !name.starts_with("requests."))
        say(lint_code::quota_counts_nothing, manifest, entry.key->location, details);
    }
  }

  /// What Kubernetes counts without a domain (k8s.io/kubernetes pkg/apis/core/helper, standardQuotaResources), and
  /// names of its own domain.
  static bool is_quota_name(std::string_view name) {
    static constexpr std::array<std::string_view, 20> names{"cpu",
                                                            "memory",
                                                            "ephemeral-storage",
                                                            "requests.cpu",
                                                            "requests.memory",
                                                            "requests.storage",
                                                            "requests.ephemeral-storage",
                                                            "limits.cpu",
                                                            "limits.memory",
                                                            "limits.ephemeral-storage",
                                                            "pods",
                                                            "resourcequotas",
                                                            "services",
                                                            "replicationcontrollers",
                                                            "secrets",
                                                            "persistentvolumeclaims",
                                                            "configmaps",
                                                            "services.nodeports",
                                                            "services.loadbalancers",
                                                            "storage"};
    return std::ranges::find(names, name) != names.end() || name.starts_with("hugepages-") ||
           name.starts_with("requests.hugepages-") || (name.contains("kubernetes.io/") && !name.contains(' '));
  }

  /// "nvidia.com/gpu" for "gpu" and "nvidia.com/gpu "; may be empty.
  static std::string whole_name(std::string_view name, std::span<const std::string_view> known) {
    name = text::trimmed(name);
    for (const auto key : known)
      if (key == name || key.substr(key.find('/') + 1) == name) return std::string(key);
    return {};
  }

  void look_at_range(const manifest& manifest, const declarations::rule_set& rules, const known_cluster* cluster) {
    std::vector<amounts_at> all;
    const auto* list = text::yaml::find(text::yaml::find(manifest.root, "spec"), "limits");
    for (std::size_t i = 0; list && list->sequence() && i < list->items.size(); ++i)
      for (const auto* part : {"default", "defaultRequest", "max", "min"})
        all.push_back({text::yaml::find(list->items[i], part), "spec.limits[" + std::to_string(i) + "]." + part});
    lint_amounts(manifest, all, rules, language_, out_.findings, cluster);
    lint_range(manifest, language_, out_.findings);
  }

  /// Where nothing else was judged, a person who gave one thinks that it was.
  void look_at_other_config_maps() {
    out_.other_config_maps = others_.size();
    if (out_.config_maps > 0 || out_.workloads > 0) return;
    for (const auto* manifest : others_) {
      const bool has_finding = std::ranges::any_of(out_.findings, [&](const lint_finding& finding) {
        return finding.file == manifest->file->name && finding.object == manifest->key && finding.kind == "ConfigMap";
      });
      if (!has_finding) say(lint_code::config_not_judged, *manifest, manifest->root->location, {});
    }
  }

  /// The declared rules, and what the programs of the modules accept of resources that no one declares here.
  static declarations::rule_set with_modules(declarations::rule_set rules, std::string_view one_only) {
    for (const auto& known : quota::resource_keys) {
      if (!known.managed || rules.find(known.key)) continue;
      declarations::rule rule;
      rule.key = known.key;
      rule.managed = true;
      rule.one_only = rule.key == one_only;
      rules.rules.insert(std::ranges::upper_bound(rules.rules, rule.key, {}, &declarations::rule::key),
                         std::move(rule));
    }
    return rules;
  }

  void look_at_config_map(const manifest& manifest) {
    if (const auto* last = last_.at(manifest.key); last != &manifest) {
      const auto other = located(*last);
      const auto value = "ConfigMap " + manifest.key.to_string();
      return say(lint_code::object_twice, manifest, manifest.root->location,
                 {.field = "metadata.name", .value = value, .other = other});
    }
    const auto* metadata = text::yaml::find(manifest.root, "metadata");
    lint_amounts(manifest, {}, {}, language_, out_.findings);
    bool readable = mapping_or_nothing(manifest, manifest.root, "metadata", "metadata");
    readable = mapping_or_nothing(manifest, metadata, "labels", "metadata.labels") && readable;
    readable = mapping_or_nothing(manifest, manifest.root, "data", "data") && readable;
    if (!readable) return;
    auto text = read_config_map(manifest);
    take_in(manifest, text);
    for (const auto& entry : text.refused) refuse(manifest, entry.field);
    not_text_.emplace(&manifest, std::move(text.refused));
  }

  bool mapping_or_nothing(const manifest& manifest, const text::yaml::node* parent, std::string_view key,
                          std::string_view field) {
    const auto* entry = text::yaml::find_entry(parent, key);
    if (!entry || entry->value->mapping() || entry->value->is == text::yaml::node::shape::null) return true;
    const bool list = entry->value->sequence();
    const auto is = text::message(list ? "yaml.list" : "yaml.single_value", language_);
    say(lint_code::not_a_mapping, manifest, entry->key->location, {.field = field, .other = is});
    return false;
  }

  void take_in(const manifest& manifest, const config_map_file& text) {
    auto view = text.view();
    if (settings_.cluster) {
      const auto same = [&](const kube::config_map& config_map) { return config_map.key == manifest.key; };
      const auto match = std::ranges::find_if(settings_.cluster->config_maps, same);
      view.created =
          match != settings_.cluster->config_maps.end() ? match->created : std::numeric_limits<std::int64_t>::max();
    }
    registry_.put(view);
    if (kind_of(view) == declarations::kind::none) {
      others_.push_back(&manifest);
      if (manifest.key.name.starts_with("cf-crl-")) not_selected(manifest, view);
      return;
    }
    ++out_.config_maps;
    judged_.push_back(&manifest);
  }

  void not_selected(const manifest& manifest, const declarations::config_map_view& view) {
    for (const auto domain : {declarations::names::cpaas, declarations::names::alauda}) {
      const auto label = std::string(domain) + "type";
      const auto value = view.label(label);
      if (!value) continue;
      const auto field = "metadata.labels[" + label + "]";
      return say(lint_code::not_selected, manifest, place_of(manifest, field),
                 {.field = field, .value = *value, .hint = declarations::names::type_value});
    }
    say(lint_code::not_selected, manifest, place_of(manifest, "metadata.labels[]"), {.field = "metadata.labels"});
  }

  /// What declarations/ has to say of the same field tells what to write there.
  void say_not_text(const manifest& manifest, const config_map_file::not_text& not_text) {
    const auto& all = judgements_[&manifest];
    const auto same = std::ranges::find(all, not_text.field, &declarations::finding::field);
    out_.findings.push_back(finding_of(not_text, manifest, language_, same == all.end() ? nullptr : &*same));
  }

  /// Of a field that Kubernetes itself refuses nothing else is reported.
  void refuse(const manifest& manifest, std::string_view field) { refused_.emplace(&manifest, std::string(field)); }

  void judge() {
    for (const auto* entry : judged_) judgements_[entry] = registry_.judge(entry->key).findings;
    for (const auto& [object, all] : not_text_) {
      for (const auto& entry : all) say_not_text(*object, entry);
    }
    for (const auto* entry : judged_) {
      for (const auto& f : judgements_.at(entry)) {
        if (!refused_.contains({entry, f.field}))
          out_.findings.push_back(finding_of(f, *entry, place_of(*entry, f.field), language_));
      }
      unfamiliar_key(*entry);
      declared_memory(*entry);
    }
  }

  /// The key of a declaration looks like one of a module, and is none.
  void unfamiliar_key(const manifest& manifest) {
    const auto key = text::yaml::text_at(text::yaml::find(manifest.root, "data"), "key");
    if (!text::is_extended_resource(key) || quota::resource_key_of(key) || is_vendor_key(key)) return;
    std::vector<std::string_view> known;
    for (const auto& row : quota::resource_keys) known.push_back(row.key);
    if (const auto hint = nearest_key(key, known); !hint.empty())
      say(lint_code::unfamiliar_resource, manifest, place_of(manifest, "data.key"),
          {.field = "data.key", .value = key, .key = key, .hint = hint});
  }

  /// MiB that a unit of memory stands for, as people write it: "Mi", "MiB", "M" and "MB" alike, "256Mi"; 0: none is
  /// seen.
  static std::int64_t mebibytes_of(std::string_view unit) {
    const auto digits = std::min(unit.find_first_not_of("0123456789"), unit.size());
    std::int64_t number = 1;
    std::from_chars(unit.data(), unit.data() + digits, number);
    auto suffix = unit.substr(digits);
    if (suffix.ends_with('B')) suffix.remove_suffix(1);
    if (suffix.ends_with('i')) suffix.remove_suffix(1);
    const auto scale = suffix == "M" ? 1 : suffix == "G" ? 1024 : suffix == "T" ? 1024 * 1024 : 0;
    return number > 0 && number < 1024 * 1024 ? number * scale : 0;
  }

  /// Unit and default of a key that counts memory. A smaller unit than the key's may be a setting of its plugin.
  void declared_memory(const manifest& manifest) {
    constexpr std::int64_t beyond_card_mib = std::int64_t{512} << 10;
    const auto* data = text::yaml::find(manifest.root, "data");
    const auto key = text::yaml::text_at(data, "key"), unit = text::yaml::text_at(data, "resourceUnit"),
               value = text::yaml::text_at(data, "defaultValue");
    const auto* known = quota::resource_key_of(key);
    if (!known || known->unit_mib == 0) return;
    const std::string own_unit = known->unit_mib == 256 ? "256MiB" : std::string(quota::unit_of(*known));
    const auto declared = mebibytes_of(unit);
    if (declared > known->unit_mib)
      say(lint_code::unit_differs, manifest, place_of(manifest, "data.resourceUnit"),
          {.field = "data.resourceUnit", .value = unit, .key = key, .hint = own_unit});
    const auto counted =
        declared > 0 && known->unit_mib == 1024 ? std::min(declared, known->unit_mib) : known->unit_mib;
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = problem == std::errc() && end == value.data() + value.size();
    if (!is_number || number < beyond_card_mib / counted) return;
    const auto in_mib = counted > 1 && number < beyond_card_mib;
    const auto hint = in_mib ? std::to_string((number + counted - 1) / counted) : std::string();
    say(lint_code::default_beyond_card, manifest, place_of(manifest, "data.defaultValue"),
        {.field = "data.defaultValue", .value = value, .key = key, .other = own_unit, .hint = hint});
  }

  const lint_settings& settings_;
  language language_;
  declarations::registry registry_;
  std::vector<manifest> objects_;
  std::vector<std::pair<const manifest*, pod_forms>> workloads_;
  std::vector<const manifest*> quotas_, ranges_;
  std::vector<const manifest*> others_;                    ///< ConfigMaps that are no declarations
  std::map<std::string, std::size_t, std::less<>> order_;  ///< of the files
  std::map<kube::object_key, const manifest*> last_;       ///< of ConfigMaps with one name the last
  std::vector<const manifest*> judged_;
  std::map<const manifest*, std::vector<declarations::finding>> judgements_;
  std::set<std::pair<const manifest*, std::string>> refused_;
  std::map<const manifest*, std::vector<config_map_file::not_text>> not_text_;
  lint_report out_;
};

/// For a person who may not list ConfigMaps in namespace `ns`: as the console's server has them; nothing where it has
/// no answer. @param own a namespace of the person
kube::task<std::optional<declared_resources>> viewed_declarations(kube::transport& transport, std::string own,
                                                                  std::string ns) {
  const view_question question{std::move(own), "declarations", {}, {{"declared", std::move(ns)}}};
  const auto outcome = co_await ask_view(transport, question, listing_style("source"));
  co_return outcome && outcome->reply ? declared_in(outcome->reply->text) : std::nullopt;
}

/// @param own a namespace of the person
kube::task<void> fetch(kube::transport& transport, std::string ns, std::string own, linted_cluster& cluster) {
  auto read = co_await read_linted_cluster(transport, std::move(ns), std::move(own));
  if (!read) co_return std::unexpected(std::move(read.error()));
  cluster = std::move(*read);
  co_return kube::result<void>();
}

constexpr std::string_view example = R"(Example:
  $ cat fpga.yaml
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: cf-crl-lab-fpga
    namespace: kube-public
    labels:
      features.cpaas.io/type: CustomResourceLimitation
      features.cpaas.io/group: lab
      features.cpaas.io/enabled: "true"
  data:
    key: example.com/fpga
    dataType: integer
    group: lab
    limits: requried
    requests: disabled
  $ quartermaster lint fpga.yaml
  fpga.yaml:14:3: error: ConfigMap kube-public/cf-crl-lab-fpga: data.limits is "requried"; allowed: disabled, required, optional; write "required" [not_in_vocabulary]
  $ kubectl get cm -n kube-public -o yaml | quartermaster lint - deployment.yaml --lang zh

Exit codes: 0 clean (or warnings alone, without --strict), 1 a file cannot be read or is no YAML, or nothing was there to
judge, 2 wrong usage, 3 found errors, or with --cluster what is declared there could not be seen (with --strict its
nodes, too).
What each code means: quartermaster explain error CODE)";

std::string summary(const lint_report& lint_report, language locale) {
  const auto is_error = [](const lint_finding& f) { return f.level == text::severity::error; };
  const auto errors = static_cast<std::size_t>(std::ranges::count_if(lint_report.findings, is_error));
  const auto warnings = lint_report.findings.size() - errors;
  if (lint_report.nothing) return text::message("lint_summary.nothing", locale);
  auto out = text::message("lint_summary.text", locale,
                           {{"declarations", text::counted(lint_report.config_maps, "count.declaration", locale)},
                            {"workloads", text::counted(lint_report.workloads, "count.workload", locale)},
                            {"errors", text::counted(errors, "count.error", locale)},
                            {"warnings", text::counted(warnings, "count.warning", locale)}});
  if (!lint_report.kinds_by_form.empty()) {
    std::string kinds;
    for (const auto& kind : lint_report.kinds_by_form)
      kinds += (kinds.empty() ? "" : text::message("engine.comma", locale)) + text::shown(kind);
    out = text::message("lint_summary.by_form", locale, {{"text", out}, {"kinds", kinds}});
  }
  if (lint_report.other_config_maps == 0) return out;
  const auto others = text::counted(lint_report.other_config_maps, "count.config_map", locale);
  return text::message("lint_summary.others", locale, {{"text", out}, {"others", others}});
}

}  // namespace

lint_report lint(std::span<const text::yaml::source> files, const lint_settings& settings) {
  return linter(files, settings).run();
}

kube::task<linted_cluster> read_linted_cluster(kube::transport& transport, std::string ns, std::string own) {
  linted_cluster out;
  auto found = co_await read_declared(transport, ns);
  if (!found && found.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(found.error()));
  std::optional<declared_resources> viewed;
  if (!found && !own.empty()) {
    auto answer = co_await viewed_declarations(transport, std::move(own), std::move(ns));
    if (answer) viewed = std::move(*answer);
  }
  if (found) {
    out.declared = std::move(*found);
  } else if (viewed) {
    out.declared = std::move(*viewed);
    out.is_viewed = true;
  } else {
    out.refusal = phrase_of(found.error());
    const std::function<void(api::compiled_rules)> keep = [&](api::compiled_rules rules) {
      const auto spec = nlohmann::json::parse(rules.spec, nullptr, false);
      if (rules.key == api::compiled_rules::only() && spec.is_object()) out.compiled = declarations::rules_of(spec);
    };
    (void)co_await list_each<api::compiled_rules>(transport, {}, keep);
  }
  std::vector<kube::node> all;
  const std::function<void(kube::node)> keep = [&](kube::node node) { all.push_back(std::move(node)); };
  auto listed = co_await list_each<kube::node>(transport, {}, keep);
  if (listed) out.nodes = std::move(all);
  if (!listed && listed.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(listed.error()));
  const std::function<void(reconcilers::accelerator_policy)> take = [&](reconcilers::accelerator_policy object) {
    if (object.key == reconcilers::policy_key) out.policy = std::move(object);
  };
  out.sees_policy = (co_await list_each<reconcilers::accelerator_policy>(transport, {}, take)).has_value();
  if (auto classes = co_await read_device_classes(transport)) out.classes = std::move(*classes);
  co_return out;
}

int run_lint(const lint_options& options, std::istream& input, std::ostream& out, std::ostream& err) {
  const auto locale = options.language == "zh" ? language::zh : language::en;
  std::vector<text::yaml::source> files;
  bool readable = true;
  for (const auto& path : options.files) {
    auto file = text::yaml::read_file(path, input);
    if (file) {
      files.push_back(std::move(*file));
    } else {
      err << text::shown(words_of(text::yaml::unreadable(file.error()), locale), 4096) << "\n";
      readable = false;
    }
  }
  if (!readable) return 1;

  if (!options.from_cluster) return run_lint(options, nullptr, files, out, err);
  linted_cluster cluster;
  const auto result = ask_cluster(options.cluster, [&](kube::transport& transport) {
    return fetch(transport, options.ns, namespace_of(options.cluster), cluster);
  });
  if (!result) return failed(phrase_of(result.error()), locale, err);
  if (cluster.is_viewed) failed({"transport.views"}, locale, err);
  return run_lint(options, &cluster, files, out, err);
}

int run_lint(const lint_options& options, const linted_cluster* cluster, std::span<const text::yaml::source> files,
             std::ostream& out, std::ostream& err) {
  lint_settings settings;
  settings.ns = options.ns;
  settings.locale = options.language == "zh" ? language::zh : language::en;
  if (cluster) {
    settings.one_only = reconcilers::single_share(cluster->policy);
    settings.cluster = &cluster->declared;
    settings.classes = cluster->classes;
    if (cluster->sees_policy) settings.policy = &cluster->policy;
    if (cluster->compiled) settings.compiled = &*cluster->compiled;
    if (cluster->nodes) settings.nodes = &*cluster->nodes;
    if (!cluster->refusal.empty())
      failed(part_refused(cluster->compiled ? "lint_summary.rules_compiled" : "lint_summary.rules_unseen",
                          cluster->refusal),
             settings.locale, err);
    if (!cluster->nodes) failed({"lint_summary.no_nodes"}, settings.locale, err);
  }
  const auto report = lint(files, settings);
  const bool as_data = printed_as_data(to_json(report.findings), options.output, out);
  if (!as_data) print_text(report.findings, settings.locale, out);
  const bool is_refused = cluster && !cluster->refusal.empty();  // of which a line has been written
  const bool no_rules = report.config_maps == 0 && (!cluster || cluster->declared.config_maps.empty());
  const auto* hint = cluster ? "lint_summary.no_declaration_there" : "lint_summary.no_declaration";
  if (report.workloads > 0 && no_rules && !is_refused)
    err << "quartermaster: " << text::message(hint, settings.locale) << "\n";
  for (const auto& file : files)
    if (file.documents.empty() && files.size() > 1)
      failed({"lint_summary.empty", {{"file", text::shown(file.name, 400)}}}, settings.locale, err);
  const bool is_enough = !cluster || (options.strict ? cluster->is_whole() : cluster->knows_rules());
  auto last_line = summary(report, settings.locale);
  if (!is_enough && !report.nothing)
    last_line = text::message("lint_summary.not_enough", settings.locale, {{"text", last_line}});
  if (!as_data || report.nothing) err << "quartermaster: " << last_line << "\n";
  if (report.nothing) return 1;
  const auto counts = [&](const lint_finding& f) { return options.strict || f.level == text::severity::error; };
  return !is_enough || std::ranges::any_of(report.findings, counts) ? 3 : 0;
}

void add_lint(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "lint", "Judge declarations (ConfigMaps) and workloads in files, without a cluster");
  auto options = std::make_shared<lint_options>();
  add_option(*verb, "-f,--file,files", options->files, "Files of YAML or JSON, judged together; - is standard input")
      ->type_name("FILE");
  add_answer_options(*verb, options->language, options->output);
  add_flag(*verb, "--strict", options->strict, "Warnings count as errors");
  add_namespace_option(*verb, options->ns, "Namespace of the declarations")->capture_default_str();
  auto* from_cluster =
      add_flag(*verb, "--cluster", options->from_cluster,
               "Add the declarations of the cluster, where those in files take the place of their namesakes, and "
               "what its nodes offer and which drivers they have");
  add_cluster_options(*verb, options->cluster);
  // Who names a cluster wants it asked.
  for (const auto* name : {"--kubeconfig", "--context", "--as", "--as-group", "--request-timeout"})
    verb->get_option(name)->needs(from_cluster);
  verb->footer(std::string(example));
  refuse_flags_before_subcommands(*verb);
  add_lint_scheduler(*verb, rc);
  verb->callback([verb, options, &rc] {
    if (!verb->get_subcommands().empty()) return;
    if (options->files.empty()) throw CLI::RequiredError("a file, or - for standard input,");
    rc = run_lint(*options, std::cin, std::cout, std::cerr);
  });
}

}  // namespace cli
