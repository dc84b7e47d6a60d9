#include "cli/lint/lint.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/lint/lint_workload.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace crl = reconcilers::crl;
using crl::language;

std::string located(const manifest& of) { return of.file->name + ":" + std::to_string(of.root->at.line); }

/// All files at once: one registry, one report.
class linter {
 public:
  linter(std::span<const yaml::source> files, const lint_settings& settings)
      : settings_(settings), in_(settings.in), registry_(where(settings)) {
    for (const auto& file : files) {
      order_.try_emplace(file.name, order_.size());
      std::ranges::move(manifests_in(file), std::back_inserter(objects_));
    }
  }

  lint_report run() {
    take_in_cluster();
    for (const auto& of : objects_) {
      if (of.kind == "ConfigMap") last_[of.key] = &of;
    }
    for (const auto& of : objects_) look_at(of);
    judge();
    const auto rules = registry_.compile();
    known_cluster known;
    if (settings_.nodes) {
      for (const auto& one : *settings_.nodes) {
        add_offered(one, known.resources.offered);
        known.nodes.push_back(&one);
      }
    }
    for (const auto& rule : rules.rules) known.resources.declared.insert(rule.key);
    for (const auto& of : objects_) {
      if (pod_spec_path(of.kind).empty()) continue;
      ++out_.workloads;
      lint_workload(of, rules, in_, out_.findings, settings_.nodes ? &known : nullptr);
    }
    const auto rank = [&](const lint_finding& f) {
      return std::tuple(order_.at(f.file), f.level, f.at, std::string_view(f.code), std::string_view(f.message));
    };
    std::ranges::sort(out_.findings, {}, rank);
    return std::move(out_);
  }

 private:
  static crl::parse_settings where(const lint_settings& settings) {
    crl::parse_settings out;
    out.ns = settings.ns;
    return out;
  }

  void say(lint_code what, const manifest& of, yaml::place at, const lint_details& details) {
    out_.findings.push_back(finding_of(what, of, at, details, in_));
  }

  void take_in_cluster() {
    if (!settings_.cluster) return;
    registry_.set_runtime_classes(settings_.cluster->runtime_classes);
    for (const auto& one : settings_.cluster->config_maps) registry_.put(reconcilers::view_of(one));
  }

  void look_at(const manifest& of) {
    if (of.kind.empty()) return say(lint_code::not_an_object, of, of.root->at, {});
    const bool config_map = of.kind == "ConfigMap";
    if (!config_map && pod_spec_path(of.kind).empty()) return;
    named(of, "metadata.name", of.key.name, true);
    if (!of.key.ns.empty()) named(of, "metadata.namespace", of.key.ns, false);
    if (config_map) look_at_config_map(of);
  }

  void named(const manifest& of, std::string_view field, std::string_view value, bool name) {
    // A generateName may end in a dash.
    while (name && value.size() > 1 && value.ends_with('-')) value.remove_suffix(1);
    const bool legal = name ? crl::is_dns_subdomain(value) : crl::is_dns_subdomain(value, 63) && !value.contains('.');
    if (legal) return;
    auto lower = crl::lower_case(value.substr(0, 253));
    std::ranges::replace(lower, '_', '-');
    const auto hint = crl::is_dns_subdomain(lower) ? lower : std::string();
    refuse(of, field);
    say(lint_code::name_malformed, of, place_of(of, field), {.field = field, .value = value, .hint = hint});
  }

  void look_at_config_map(const manifest& of) {
    if (const auto* last = last_.at(of.key); last != &of) {
      const auto other = located(*last);
      const auto value = "ConfigMap " + of.key.to_string();
      return say(lint_code::object_twice, of, of.root->at, {.field = "metadata.name", .value = value, .other = other});
    }
    const auto* metadata = yaml::find(of.root, "metadata");
    const std::array<std::pair<const yaml::node*, std::string>, 4> mappings{
        {{of.root, ""},
         {metadata, "metadata."},
         {yaml::find(metadata, "labels"), "metadata.labels"},
         {yaml::find(of.root, "data"), "data."}}};
    for (const auto& [mapping, path] : mappings) {
      for (const auto* key : yaml::repeated_keys(mapping)) {
        const auto name = crl::shown(key->text, 64);
        const auto field = path == "metadata.labels" ? path + "[" + name + "]" : path + name;
        say(lint_code::written_twice, of, key->at, {.field = field});
      }
    }
    bool readable = mapping_or_nothing(of, of.root, "metadata", "metadata");
    readable = mapping_or_nothing(of, metadata, "labels", "metadata.labels") && readable;
    readable = mapping_or_nothing(of, of.root, "data", "data") && readable;
    if (!readable) return;
    auto text = read_config_map(of);
    take_in(of, text);
    for (const auto& one : text.refused) refuse(of, one.field);
    not_text_.emplace(&of, std::move(text.refused));
  }

  bool mapping_or_nothing(const manifest& of, const yaml::node* in, std::string_view key, std::string_view field) {
    const auto* entry = yaml::find_entry(in, key);
    if (!entry || entry->value->mapping() || entry->value->is == yaml::node::shape::null) return true;
    const bool list = entry->value->sequence();
    const auto* is = in_ == language::zh ? (list ? "列表" : "单个值") : (list ? "a list" : "a single value");
    say(lint_code::not_a_mapping, of, entry->key->at, {.field = field, .other = is});
    return false;
  }

  void take_in(const manifest& of, const config_map_file& text) {
    auto view = text.view();
    if (settings_.cluster) {
      const auto same = [&](const kube::config_map& one) { return one.key == of.key; };
      const auto at = std::ranges::find_if(settings_.cluster->config_maps, same);
      view.created =
          at != settings_.cluster->config_maps.end() ? at->created : std::numeric_limits<std::int64_t>::max();
    }
    registry_.put(view);
    if (kind_of(view) == crl::kind::none) {
      if (of.key.name.starts_with("cf-crl-")) not_selected(of, view);
      return;
    }
    ++out_.config_maps;
    judged_.push_back(&of);
  }

  void not_selected(const manifest& of, const crl::config_map_view& view) {
    for (const auto domain : {crl::names::cpaas, crl::names::alauda}) {
      const auto label = std::string(domain) + "type";
      const auto value = view.label(label);
      if (!value) continue;
      const auto field = "metadata.labels[" + label + "]";
      return say(lint_code::not_selected, of, place_of(of, field),
                 {.field = field, .value = *value, .hint = crl::names::type_value});
    }
    say(lint_code::not_selected, of, place_of(of, "metadata.labels[]"), {.field = "metadata.labels"});
  }

  /// What crl has to say of the same field tells what to write there.
  void say_not_text(const manifest& of, const config_map_file::not_text& what) {
    const auto& all = judgements_[&of];
    const auto same = std::ranges::find(all, what.field, &crl::finding::field);
    out_.findings.push_back(finding_of(what, of, in_, same == all.end() ? nullptr : &*same));
  }

  /// Nothing else is said of a field that Kubernetes itself refuses.
  void refuse(const manifest& of, std::string_view field) { refused_.emplace(&of, std::string(field)); }

  void judge() {
    for (const auto* of : judged_) judgements_[of] = registry_.judge(of->key).findings;
    for (const auto& [of, all] : not_text_) {
      for (const auto& one : all) say_not_text(*of, one);
    }
    for (const auto* of : judged_) {
      for (const auto& f : judgements_.at(of)) {
        if (!refused_.contains({of, f.field})) out_.findings.push_back(finding_of(f, *of, place_of(*of, f.field), in_));
      }
    }
  }

  const lint_settings& settings_;
  language in_;
  crl::registry registry_;
  std::vector<manifest> objects_;
  std::map<std::string, std::size_t, std::less<>> order_;  ///< of the files
  std::map<kube::object_key, const manifest*> last_;       ///< of ConfigMaps with one name the last
  std::vector<const manifest*> judged_;
  std::map<const manifest*, std::vector<crl::finding>> judgements_;
  std::set<std::pair<const manifest*, std::string>> refused_;
  std::map<const manifest*, std::vector<config_map_file::not_text>> not_text_;
  lint_report out_;
};

/// @param nodes empty: they may not be listed
kube::task<void> fetch(kube::transport& over, std::string ns, declared& into,
                       std::optional<std::vector<kube::node>>& nodes) {
  auto found = co_await read_declared(over, std::move(ns));
  if (!found) co_return std::unexpected(std::move(found.error()));
  into = std::move(*found);
  std::vector<kube::node> all;
  const std::function<void(kube::node)> keep = [&](kube::node one) { all.push_back(std::move(one)); };
  auto listed = co_await list_each<kube::node>(over, {}, keep);
  if (listed) nodes = std::move(all);
  if (!listed && listed.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(listed.error()));
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

Exit codes: 0 clean (or warnings alone, without --strict), 1 a file cannot be read or is no YAML, 2 wrong usage, 3 found errors.
What each code means: docs/declarations.md and docs/cli.md)";

std::string counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string summary(const lint_report& of, language in) {
  const auto is_error = [](const lint_finding& f) { return f.level == crl::severity::error; };
  const auto errors = static_cast<std::size_t>(std::ranges::count_if(of.findings, is_error));
  const auto warnings = of.findings.size() - errors;
  if (in == language::zh) {
    return "已检查 " + std::to_string(of.config_maps) + " 个声明、" + std::to_string(of.workloads) + " 个工作负载：" +
           std::to_string(errors) + " 个错误，" + std::to_string(warnings) + " 个警告";
  }
  return counted(of.config_maps, "declaration") + ", " + counted(of.workloads, "workload") + ": " +
         counted(errors, "error") + ", " + counted(warnings, "warning");
}

std::string_view no_declaration(language in) {
  return in == language::zh
             ? "输入中没有声明（ConfigMap）：仅按 Kubernetes 自身的规则检查工作负载；请加入声明，或使用 --cluster"
             : "no declaration (ConfigMap) among the inputs: workloads are held to Kubernetes' own rule only; add the "
               "ConfigMaps, or --cluster";
}

}  // namespace

lint_report lint(std::span<const yaml::source> files, const lint_settings& settings) {
  return linter(files, settings).run();
}

int run_lint(const lint_options& options, std::istream& in, std::ostream& out, std::ostream& err) {
  std::vector<yaml::source> files;
  bool readable = true;
  for (const auto& path : options.files) {
    auto file = yaml::read_file(path, in);
    if (file) {
      files.push_back(std::move(*file));
    } else {
      err << crl::shown(file.error(), 4096) << "\n";
      readable = false;
    }
  }
  if (!readable) return 1;

  lint_settings settings;
  settings.ns = options.ns;
  settings.in = options.language == "zh" ? language::zh : language::en;
  declared cluster;
  std::optional<std::vector<kube::node>> nodes;
  if (options.from_cluster) {
    const auto asked =
        ask_cluster(options.cluster, [&](kube::transport& over) { return fetch(over, options.ns, cluster, nodes); });
    if (!asked) {
      err << "quartermaster: " << asked.error().what << "\n";
      return 1;
    }
    settings.cluster = &cluster;
    if (nodes)
      settings.nodes = &*nodes;
    else
      err << "quartermaster: nodes may not be listed, so names of resources and what pods need of a driver are not "
             "held "
             "against what nodes offer\n";
  }

  const auto report = lint(files, settings);
  const bool as_data = printed_as_data(to_json(report.findings), options.output, out);
  if (!as_data) print_text(report.findings, settings.in, out);
  const bool no_rules = report.config_maps == 0 && cluster.config_maps.empty();
  if (report.workloads > 0 && no_rules) err << "quartermaster: " << no_declaration(settings.in) << "\n";
  if (!as_data) err << "quartermaster: " << summary(report, settings.in) << "\n";
  const auto counts = [&](const lint_finding& f) { return options.strict || f.level == crl::severity::error; };
  return std::ranges::any_of(report.findings, counts) ? 3 : 0;
}

void add_lint(CLI::App& app, int& rc) {
  auto* verb = app.add_subcommand("lint", "Judge declarations (ConfigMaps) and workloads in files, without a cluster");
  auto options = std::make_shared<lint_options>();
  verb->add_option("-f,--file,files", options->files, "Files of YAML or JSON, judged together; - is standard input");
  add_answer_options(*verb, options->language, options->output);
  verb->add_flag("--strict", options->strict, "Warnings count as errors");
  verb->add_option("-n,--namespace", options->ns, "Of the declarations")->capture_default_str();
  verb->add_flag("--cluster", options->from_cluster,
                 "Add the declarations of the cluster, where those in files take the place of their namesakes, and "
                 "what its nodes offer and which drivers they have");
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(example));
  add_lint_scheduler(*verb, rc);
  verb->callback([verb, options, &rc] {
    if (!verb->get_subcommands().empty()) return;
    if (options->files.empty()) throw CLI::RequiredError("files");
    rc = run_lint(*options, std::cin, std::cout, std::cerr);
  });
}

}  // namespace cli
