#include "cli/render/render.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/lint/lint.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "reconcilers/declarations/declaration.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"
#include "text/yaml/writer.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using nlohmann::ordered_json;

/// Flag, the field it writes, and the option it is kept in; in the order of the fields of a published declaration.
struct flag {
  const char* name;
  std::string_view field;
  std::string declaration_options::* value;
  const char* help;
};
constexpr std::array<flag, 13> flags{{
    {"--key", "key", &declaration_options::key, "The resource, as the device plugin advertises it: <domain>/<name>"},
    {"--default", "defaultValue", &declaration_options::default_value, "A whole number; without it no default"},
    {"--description-en", "descriptionEn", &declaration_options::description_en, "What it is, in English"},
    {"--description-zh", "descriptionZh", &declaration_options::description_zh, "What it is, in Chinese"},
    {"--group", "group", &declaration_options::group, "Resources that belong together have one group"},
    {"--label-en", "labelEn", &declaration_options::label_en, "Short name, in English"},
    {"--label-zh", "labelZh", &declaration_options::label_zh, "Short name, in Chinese"},
    {"--limits", "limits", &declaration_options::limits,
     "Must, may or must not a container of the group name it: required, optional, disabled"},
    {"--requests", "requests", &declaration_options::requests,
     "disabled, required, optional, fromLimits; Kubernetes itself keeps a request equal to its limit"},
    {"--unit", "resourceUnit", &declaration_options::unit, "What is counted: count, %, Mi, GiB, cores"},
    {"--related", "relatedResources", &declaration_options::related, "Resources that go with it, by commas"},
    {"--exclude", "excludeResources", &declaration_options::excluded,
     "Resources no pod may name together with it, by commas"},
    {"--runtime-class", "runtimeClassName", &declaration_options::runtime_class,
     "RuntimeClass of the pods that use it"},
}};

/// cf-crl-<group>-<name>, with "-" for what a name may not hold.
std::string name_of(const declaration_options& options) {
  auto name = text::lower_case("cf-crl-" + options.group + "-" + options.key.substr(options.key.find('/') + 1));
  const auto is_legal = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  std::ranges::replace_if(name, [&](char c) { return !is_legal(c); }, '-');
  name.resize(std::min<std::size_t>(name.size(), 253));
  name.resize(name.find_last_not_of('-') + 1);
  return name;
}

ordered_json config_map_of(const declaration_options& options) {
  const std::string domain(options.dialect == "alauda" ? declarations::names::alauda : declarations::names::cpaas);
  ordered_json labels = {{domain + "type", declarations::names::type_value},
                         {domain + "group", options.group},
                         {domain + "enabled", options.disabled ? "false" : "true"}};
  ordered_json data = {{"key", options.key}, {"dataType", "integer"}};
  for (const auto& flag : flags) {
    if (!(options.*flag.value).empty()) data[flag.field] = options.*flag.value;
  }
  if (options.ignore_node_check) data["ignoreNodeCheck"] = "true";
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name_of(options)}, {"namespace", options.ns}, {"labels", std::move(labels)}}},
          {"data", std::move(data)}};
}

std::string flag_of(std::string_view field) {
  if (field == "metadata.namespace") return "-n: ";
  if (field.ends_with("group]")) return "--group: ";
  const auto match =
      std::ranges::find_if(flags, [&](const flag& flag) { return "data." + std::string(flag.field) == field; });
  return match == flags.end() ? "" : std::string(match->name) + ": ";
}

constexpr std::string_view example = R"(Example:
  $ quartermaster render declaration --key example.com/fpga --group lab --default 1 --label-zh FPGA卡 | kubectl apply -f -

Exit codes: 0 printed, 2 refused: one line says which value and what is allowed. Fields: docs/declarations.md)";

}  // namespace

int run_render_declaration(const declaration_options& options, std::ostream& out, std::ostream& err) {
  const auto refuse = [&](const std::string& reason) { return failed(reason, err, 2); };
  const auto locale = bilingual(options.language).locale();
  for (const auto& flag : flags) {
    if (!text::is_plain_text(options.*flag.value))
      return failed(
          {"render.not_plain", {{"name", std::string(flag.name)}, {"value", text::shown(options.*flag.value)}}}, locale,
          err, 2);
  }
  const auto object = config_map_of(options);
  const auto text = text::yaml::write(object);
  std::vector<text::yaml::source> made;
  auto read_back = text::yaml::read("declaration", text);
  if (!read_back) return refuse(words_of(text::yaml::unreadable(read_back.error()), locale));
  made.push_back(std::move(*read_back));
  lint_settings settings;
  settings.ns = options.ns;
  settings.locale = locale;
  std::string meant;
  for (const auto& f : lint(made, settings).findings) {
    // What else is declared cannot be seen from here; and a resource no one may use can be meant.
    if (f.code == "related_unknown") continue;
    if (f.code != "unusable") return refuse(flag_of(f.field) + f.message);
    meant += "quartermaster: " + flag_of(f.field) + f.message + "\n";
  }
  err << meant;
  printed_as_data(object, options.output, out);
  return 0;
}

void add_render(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "render", "Write objects for kubectl apply, and the scheduler's configuration");
  verb->require_subcommand(1);
  verb->footer("Documentation: docs/declarations.md, docs/scheduler-config.md");
  auto* declaration = add_verb(*verb, "declaration", "A ConfigMap that declares a resource");
  auto options = std::make_shared<declaration_options>();
  for (const auto& flag : flags) {
    auto* option = add_option(*declaration, flag.name, (*options).*flag.value, flag.help)->capture_default_str();
    option->required(flag.field == "key" || flag.field == "group");
  }
  add_flag(*declaration, "--ignore-node-check", options->ignore_node_check, "No node has to offer it");
  add_flag(*declaration, "--disabled", options->disabled, "Declared, but not in force");
  add_option(*declaration, "--dialect", options->dialect, "Labels of features.cpaas.io, or of features.alauda.io")
      ->check(choice({"cpaas", "alauda"}))
      ->capture_default_str();
  add_option(*declaration, "-n,--namespace", options->ns, "Of the declaration")->capture_default_str();
  options->language = language_of_environment();
  add_refusal_language(*declaration, options->language);
  add_option(*declaration, "-o,--output", options->output, "yaml or json")
      ->check(choice({"yaml", "json"}))
      ->capture_default_str();
  declaration->footer(std::string(example));
  declaration->callback([options, &rc] { rc = run_render_declaration(*options, std::cout, std::cerr); });
  add_render_scheduler(*verb, rc);
}

}  // namespace cli
