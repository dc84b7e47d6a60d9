#include "cli/inspect/inspect.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/cluster/snapshot.hpp"
#include "cli/lint/lint_workload.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "kube/client.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace crl = reconcilers::crl;
using crl::language, crl::shown;
using json = nlohmann::ordered_json;

constexpr std::size_t most_named = 20;

crl::registry registry_of(const declared& from, std::string ns) {
  crl::parse_settings where;
  where.ns = std::move(ns);
  crl::registry out(std::move(where));
  out.set_runtime_classes(from.runtime_classes);
  for (const auto& one : from.config_maps) out.put(reconcilers::view_of(one));
  return out;
}

std::vector<resource_row> rows_of(const crl::registry& from) {
  std::vector<resource_row> out;
  for (auto& judged : from.judge_all()) {
    const auto* found = from.find(judged.config_map);
    if (found) out.push_back({found->what, std::move(judged)});
  }
  const auto rank = [](const resource_row& of) { return std::tie(of.what.key, of.what.config_map); };
  std::ranges::sort(out, {}, rank);
  return out;
}

kube::task<std::vector<kube::object_key>> list_not_selected(kube::transport& over, std::string ns) {
  namespace names = crl::names;
  kube::list_options what;
  what.ns = std::move(ns);
  what.label_selector = std::string(names::alauda) + "type!=" + std::string(names::type_value) + "," +
                        std::string(names::cpaas) + "type!=" + std::string(names::type_value) + "," +
                        std::string(names::device_label) + "!=true";
  std::vector<kube::object_key> out;
  const std::function<void(kube::config_map)> keep = [&](kube::config_map one) {
    if (one.key.name.starts_with("cf-crl-")) out.push_back(std::move(one.key));
  };
  const auto listed = co_await list_each<kube::config_map>(over, what, keep, metadata_only{});
  if (!listed) co_return std::unexpected(listed.error());
  std::ranges::sort(out);
  co_return out;
}

/// One of our own objects named "default": null where there is none, absent where we may not read it.
kube::task<std::optional<nlohmann::json>> read_default(kube::transport& over, const kube::resource& type) {
  kube::client api(over);
  const auto path = kube::path_of(type, {}, "default");
  const auto answer = co_await api.raw(path);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status == 404) co_return nlohmann::json();
  auto object = nlohmann::json::parse(answer->body, nullptr, false);
  const bool readable = answer->status == 200 && object.is_object();
  co_return readable ? std::optional(std::move(object)) : std::nullopt;
}

std::string text_at(const nlohmann::json& in, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return in.contains(at) && in[at].is_string() ? in[at].get<std::string>() : std::string();
}

/// What pods are held to now: the rules as the operator compiled them, which outlive an edit into an error; without
/// them what the ConfigMaps say. How strictly, the policy says.
struct rules_in_force {
  crl::rule_set rules;
  std::string enforcement;
};
kube::task<rules_in_force> read_rules(kube::transport& over, const crl::registry& from) {
  const auto compiled = co_await read_default(over, kube::resources::resource_rules);
  if (!compiled) co_return std::unexpected(compiled.error());
  const auto policy = co_await read_default(over, kube::resources::accelerator_policies);
  if (!policy) co_return std::unexpected(policy.error());
  rules_in_force out;
  const auto& object = *compiled;
  out.rules = object && object->contains("spec") ? crl::rules_of(object->at("spec")) : from.compile();
  const auto& how = *policy;
  out.enforcement = how ? text_at(*how, "/spec/customResources/enforcement") : "unknown";
  if (out.enforcement == "Off") out.enforcement.clear();
  co_return out;
}

kube::task<audit> audit_pods(kube::transport& over, const crl::registry& from) {
  auto in_force = co_await read_rules(over, from);
  if (!in_force) co_return std::unexpected(in_force.error());
  audit out;
  out.enforcement = in_force->enforcement;
  const std::function<void(kube::pod)> look_at = [&](kube::pod one) {
    if (one.finished() || one.mirror || is_exempt(one.key.ns)) return;
    ++out.looked_at;
    const auto amounts = crl::pod_amounts_in(one.annotations, one.labels);
    auto ruling = crl::evaluate(in_force->rules, one.containers, "", {.on_pod = &amounts});
    if (!ruling.allowed()) out.refused.push_back({std::move(one.key), std::move(ruling.refused)});
  };
  const auto listed = co_await list_each<kube::pod>(over, kube::list_options(), look_at);
  if (!listed) co_return std::unexpected(listed.error());
  std::ranges::sort(out.refused, {}, &audit::row::pod);
  co_return out;
}

struct words {
  std::vector<std::string> header;
  std::string description, nothing, not_selected, yes, no;
};
const words& words_in(language in) {
  static const words en{
      {"RESOURCE", "LABEL", "GROUP", "UNIT", "DEFAULT", "LIMITS", "REQUESTS", "ENABLED", "VERDICT", "CONFIGMAP"},
      "DESCRIPTION",
      "No resource is declared in namespace ",
      "Named cf-crl-*, but with neither label features.cpaas.io/type=CustomResourceLimitation nor "
      "device-plugin.cpaas.io/config=true, so nobody reads them:",
      "true",
      "false"};
  static const words zh{{"资源名", "名称", "组", "单位", "默认值", "LIMITS", "REQUESTS", "启用", "结论", "CONFIGMAP"},
                        "说明",
                        "该命名空间中没有声明任何资源：",
                        "名称为 cf-crl-*，但既没有标签 features.cpaas.io/type=CustomResourceLimitation，也没有 "
                        "device-plugin.cpaas.io/config=true，因此没有人读取：",
                        "是",
                        "否"};
  return in == language::zh ? zh : en;
}

std::string verdict_in(const crl::judgement& of, language in) {
  const auto verdict = crl::verdict_of(of);
  if (in == language::en) return std::string(crl::to_string(verdict));
  return verdict == crl::verdict::accepted ? "有效" : verdict == crl::verdict::warning ? "有警告" : "被拒绝";
}

std::string default_of(const crl::declaration& of) {
  return of.default_value ? std::to_string(*of.default_value) : std::string();
}
std::string group_of(const crl::declaration& of, language in) {
  const auto& name = of.group_label(in);
  return name.empty() ? of.group : name;
}

/// A word that cannot be read is no word: a finding of the same field says so.
bool unreadable(const crl::judgement& judged, std::string_view field) {
  return std::ranges::any_of(judged.findings, [&](const crl::finding& f) {
    const bool no_word = f.what == crl::code::not_in_vocabulary || f.what == crl::code::missing;
    return no_word && (f.field == field || f.field == "data");
  });
}
std::string word_of(crl::use use, const crl::judgement& judged, std::string_view field) {
  return unreadable(judged, field) ? std::string("?") : std::string(to_string(use));
}
/// Neither true nor false where its label cannot be read.
bool known_enabled(const crl::declaration& of) { return of.enabled || of.switched_off; }

void print_resources(const inspection& what, language in, bool wide, std::ostream& to) {
  const auto& say = words_in(in);
  auto header = say.header;
  if (wide) header.push_back(say.description);
  table out(std::move(header));
  for (const auto& [of, judged] : what.resources) {
    std::vector<std::string> row{shown(of.key, 320),
                                 shown(of.label(in), 256),
                                 shown(group_of(of, in), 256),
                                 of.unit,
                                 default_of(of),
                                 word_of(of.limits, judged, "data.limits"),
                                 word_of(of.requests, judged, "data.requests"),
                                 !known_enabled(of) ? "?"
                                 : of.enabled       ? say.yes
                                                    : say.no,
                                 verdict_in(judged, in),
                                 of.config_map.name};
    if (wide) row.push_back(shown(of.description(in), crl::max_text_bytes));
    out.add(std::move(row));
  }
  out.print(to);
}

std::string audit_line(const audit& of, language in) {
  const auto count = std::to_string(of.refused.size());
  const auto all = std::to_string(of.looked_at);
  if (in == language::zh) {
    const auto mode = of.enforcement.empty() ? std::string("规则未强制执行") : "enforcement: " + of.enforcement;
    return "审计（" + mode + "）：" + all + " 个 Pod 中，有 " + count + " 个若现在创建会被拒绝；不会改动它们";
  }
  const auto mode = of.enforcement.empty() ? std::string("nothing is enforced") : "enforcement: " + of.enforcement;
  return "Audit (" + mode + "): " + count + " of " + all +
         " pods would be refused if they were made now; they are never touched";
}

void print_audit(const audit& of, language in, std::ostream& to) {
  const bool zh = in == language::zh;
  to << "\n" << audit_line(of, in) << (of.refused.empty() ? "\n" : zh ? "：\n" : ":\n");
  for (std::size_t i = 0; i < std::min(of.refused.size(), most_named); ++i) {
    const auto& [pod, reasons] = of.refused[i];
    to << "  " << pod.to_string() << ": " << shown(crl::text_of(reasons.front(), in), 1000) << "\n";
  }
  if (of.refused.size() <= most_named) return;
  const auto rest = std::to_string(of.refused.size() - most_named);
  to << (zh ? "  另有 " + rest + " 个；-o json 列出全部\n" : "  and " + rest + " more; -o json has them all\n");
}

json both(std::string_view en, std::string_view zh) { return {{"en", en}, {"zh", zh}}; }

json as_json(const crl::finding& f) {
  return {{"severity", to_string(severity_of(f))},
          {"code", to_string(f.what)},
          {"field", f.field},
          {"value", f.value},
          {"message", both(message_of(f, language::en), message_of(f, language::zh))}};
}

json as_json(const resource_row& of) {
  const auto& what = of.what;
  json out = {{"key", what.key},
              {"label", both(what.label_en, what.label_zh)},
              {"description", both(what.description_en, what.description_zh)},
              {"group", what.group},
              {"groupName", both(what.group_en, what.group_zh)},
              {"unit", what.unit}};
  out["default"] = what.default_value ? json(*what.default_value) : json();
  const auto word = [&](crl::use use, const char* field) {
    return unreadable(of.judged, field) ? json() : json(to_string(use));
  };
  out["limits"] = word(what.limits, "data.limits");
  out["requests"] = word(what.requests, "data.requests");
  out["relatedResources"] = what.related;
  out["excludeResources"] = what.excluded;
  out["ignoreNodeCheck"] = what.ignore_node_check;
  out["runtimeClassName"] = what.runtime_class;
  out["enabled"] = known_enabled(what) ? json(what.enabled) : json();
  out["verdict"] = crl::to_string(crl::verdict_of(of.judged));
  out["configMap"] = {{"namespace", what.config_map.ns}, {"name", what.config_map.name}};
  out["findings"] = json::array();
  for (const auto& f : of.judged.findings) out["findings"].push_back(as_json(f));
  return out;
}

json as_json(const audit& of) {
  auto pods = json::array();
  for (const auto& [pod, reasons] : of.refused) {
    json one = {{"namespace", pod.ns}, {"name", pod.name}, {"reasons", json::array()}};
    for (const auto& why : reasons)
      one["reasons"].push_back(both(text_of(why, language::en), text_of(why, language::zh)));
    pods.push_back(std::move(one));
  }
  json out = {{"enforcement", of.enforcement.empty() ? "Off" : of.enforcement},
              {"podsLookedAt", of.looked_at},
              {"podsRefused", of.refused.size()}};
  out["pods"] = std::move(pods);
  return out;
}

json as_json(const inspection& of) {
  json out = {{"resources", json::array()}, {"notSelected", json::array()}};
  for (const auto& one : of.resources) out["resources"].push_back(as_json(one));
  for (const auto& one : of.not_selected) out["notSelected"].push_back({{"namespace", one.ns}, {"name", one.name}});
  out["audit"] = of.audited ? as_json(*of.audited) : json();
  return out;
}

kube::task<void> fetch(kube::transport& over, std::string ns, inspection& into) {
  auto found = co_await inspect_resources(over, std::move(ns));
  if (!found) co_return std::unexpected(std::move(found.error()));
  into = std::move(*found);
  co_return kube::result<void>();
}

constexpr std::string_view example = R"(Example:
  $ quartermaster inspect resources --lang zh
  资源名                  名称  组           单位  默认值  LIMITS    REQUESTS  启用  结论  CONFIGMAP
  tencent.com/vcuda-core  核心  gpu-manager  -     20      optional  disabled  是    有效  cf-crl-gpu-manager-vcuda-core

Reads ConfigMaps, RuntimeClasses, Pods and our own objects, and changes nothing. -o json and -o yaml have both languages.
Exit codes: 0 done, 1 the cluster or its ConfigMaps cannot be read, 2 wrong usage.)";

}  // namespace

kube::task<inspection> inspect_resources(kube::transport& over, std::string ns) {
  const auto found = co_await read_declared(over, ns);
  if (!found) co_return std::unexpected(found.error());
  auto not_selected = co_await list_not_selected(over, ns);
  if (!not_selected) co_return std::unexpected(not_selected.error());
  const auto registry = registry_of(*found, ns);
  inspection out;
  out.resources = rows_of(registry);
  out.not_selected = std::move(*not_selected);
  auto audited = co_await audit_pods(over, registry);
  if (audited)
    out.audited = std::move(*audited);
  else
    out.left_out = "the audit of running pods is left out: " + audited.error().what;
  co_return out;
}

void print(const inspection& what, const inspect_options& how, std::ostream& to) {
  const auto in = how.language == "zh" ? language::zh : language::en;
  if (printed_as_data(as_json(what), how.output, to)) return;
  if (what.resources.empty())
    to << words_in(in).nothing << how.ns << "\n";
  else
    print_resources(what, in, how.output == "wide", to);
  if (!what.not_selected.empty()) to << "\n" << words_in(in).not_selected << "\n";
  for (const auto& one : what.not_selected) to << "  " << one.to_string() << "\n";
  if (what.audited) print_audit(*what.audited, in, to);
}

int run_inspect_resources(const inspect_options& options, std::ostream& out, std::ostream& err) {
  inspection found;
  const auto asked =
      ask_cluster(options.cluster, [&](kube::transport& over) { return fetch(over, options.ns, found); });
  if (!asked) {
    err << "quartermaster: " << asked.error().what << "\n";
    return 1;
  }
  if (!found.left_out.empty()) err << "quartermaster: " << found.left_out << "\n";
  print(found, options, out);
  return 0;
}

namespace {

/// `inspect --save FILE`, without a subcommand.
void add_save(CLI::App& verb, int& rc) {
  struct options {
    std::string file;
    cluster_options cluster;
  };
  auto given = std::make_shared<options>();
  verb.add_option("--save", given->file,
                  "Write what placements are judged by to this file (no environment, no commands), for explain pod and "
                  "simulate --snapshot; - is standard output");
  add_cluster_options(verb, given->cluster);
  verb.callback([given, &verb, &rc] {
    if (!verb.get_subcommands().empty()) {
      if (!given->file.empty()) throw CLI::ValidationError("--save", "stands alone: leave out the subcommand");
      return;
    }
    if (given->file.empty()) throw CLI::RequiredError("a subcommand or --save");
    nlohmann::ordered_json all;
    const auto asked = ask_cluster(given->cluster, [&](kube::transport& over) { return take_snapshot(over, all); });
    if (!asked) {
      std::cerr << "quartermaster: " << asked.error().what << "\n";
      rc = 1;
      return;
    }
    const auto text = all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
    if (given->file == "-") {
      std::cout << text;
      return;
    }
    std::ofstream file(given->file, std::ios::binary | std::ios::trunc);
    file << text << std::flush;
    if (!file) {
      std::cerr << "quartermaster: " << given->file << " cannot be written: " << std::strerror(errno) << "\n";
      rc = 2;
      return;
    }
    std::cout << given->file << ": " << all["nodes"].size() << " nodes, " << all["pods"].size() << " pods\n";
  });
}

}  // namespace

void add_inspect(CLI::App& app, int& rc) {
  auto* verb = app.add_subcommand("inspect", "Show what is in a cluster");
  verb->require_subcommand(0, 1);
  add_save(*verb, rc);
  add_inspect_fleet(*verb, rc);
  auto* resources = verb->add_subcommand("resources", "Declared resources, and pods their rules would refuse");
  auto options = std::make_shared<inspect_options>();
  resources->alias("resource");
  add_answer_options(*resources, options->language, options->output);
  resources->add_option("-n,--namespace", options->ns, "Of the declarations")->capture_default_str();
  add_cluster_options(*resources, options->cluster);
  resources->footer(std::string(example));
  resources->callback([options, &rc] { rc = run_inspect_resources(*options, std::cout, std::cerr); });
}

}  // namespace cli
