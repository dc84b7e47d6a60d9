#include "cli/render/render_scheduler.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <expected>
#include <iostream>
#include <memory>

#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/lint/lint_scheduler.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/x509.hpp"
#include "scheduler_config/edit/edited.hpp"
#include "scheduler_config/edit/render.hpp"
#include "scheduler_config/names.hpp"
#include "scheduler_config/url.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

namespace config = scheduler_config;
using text::shown;

/// What ends the verb: a line for people and the exit code.
struct failure {
  int rc;
  text::phrase message;
};
template <typename T>
using attempted = std::expected<T, failure>;

std::unexpected<failure> refuse(text::phrase reason) { return std::unexpected(failure{2, std::move(reason)}); }
std::unexpected<failure> refuse(std::string_view key, std::vector<text::phrase_argument> arguments) {
  return refuse(text::phrase{"render." + std::string(key), std::move(arguments)});
}
std::unexpected<failure> refuse(const std::string& file, const config::finding& finding) {
  return refuse(
      text::phrase{"scheduler_file.finding",
                   {{"file", file},
                    {"line", std::to_string(finding.location.line)},
                    {"column", std::to_string(finding.location.column)},
                    {"message", message_of(finding, text::language::en), message_of(finding, text::language::zh)},
                    {"code", std::string(to_string(finding.issue))}}});
}

text::language locale_of(const render_scheduler_options& options) { return bilingual(options.language).locale(); }

attempted<std::string> bytes_of(const std::string& path, std::istream& input) {
  auto out = text::yaml::read_bytes(path, input);
  if (!out) return std::unexpected(failure{1, text::yaml::unreadable(out.error())});
  return std::move(*out);
}

bool is_ip(const std::string& host) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(host, failed);
  return !failed;
}

attempted<std::string> url_of(const std::string& address) {
  const auto url = config::split_url(address);
  const bool whole = url.scheme == "https" && !url.host.empty() && address.find_first_of(" \t\n<${?#") == address.npos;
  const auto fault = whole ? config::fault_of_url(address) : std::nullopt;
  if (!whole || fault)
    return refuse("no_address", {{"value", shown(address)},
                                 {"reason", fault ? text::phrase{"render.because", {{"reason", phrase_of(*fault)}}}
                                                  : text::phrase()}});
  if (url.path.empty()) return address + "/scheduler";
  if (url.path == "/") return address + "scheduler";
  return address;
}

attempted<void> names_of(const render_scheduler_options& options) {
  const auto wrong = [](const char* flag, const std::string& is, const char* kind, const text::phrase& allowed) {
    return refuse("no_name", {{"name", std::string(flag)},
                              {"value", shown(is)},
                              {"kind", text::phrase{std::string("render.kind.") + kind}},
                              {"allowed", allowed}});
  };
  if (!config::is_lease_name(options.lease))
    return wrong("--lease", options.lease, "lease", phrase_of(config::term::lease_name));
  if (const auto& is = options.scheduler_name; !is.empty() && !config::is_scheduler_name(is))
    return wrong("--scheduler-name", is, "scheduler", phrase_of(config::term::scheduler_name));
  if (const auto& is = options.server_name; !is.empty() && !is_ip(is) && !text::is_dns_subdomain(text::lower_case(is)))
    return wrong("--server-name", is, "server", {"render.server_name"});
  return {};
}

attempted<config::extender_settings> extender_of(const render_scheduler_options& options, std::istream& input) {
  config::extender_settings out;
  auto url = url_of(options.address);
  if (!url) return std::unexpected(std::move(url.error()));
  out.url = std::move(*url);
  out.server_name = options.server_name;
  const std::array<std::tuple<const char*, const std::string*, std::string*>, 3> files{
      {{"--ca", &options.ca, &out.ca},
       {"--cert", &options.certificate, &out.certificate},
       {"--key", &options.key, &out.key}}};
  for (const auto& [flag, path, output] : files) {
    auto text = bytes_of(*path, input);
    if (!text) return std::unexpected(std::move(text.error()));
    *output = std::move(*text);
    const bool right = flag == std::string_view("--key") ? output->contains("PRIVATE KEY-----")
                                                         : !controller::x509::read(*output).empty();
    if (!right) return refuse("no_pem", {{"name", std::string(flag)}, {"file", shown(*path, 4096)}});
  }
  if (!controller::x509::belongs({out.certificate, out.key}))
    return refuse("other_key", {{"file", shown(options.key, 4096)}, {"other", shown(options.certificate, 4096)}});
  out.resources = options.resources;
  out.not_offered = options.not_offered;
  for (const auto* list : {&options.resources, &options.not_offered}) {
    for (const auto& entry : *list) {
      if (!text::is_extended_resource(entry)) return refuse("no_resource", {{"value", shown(entry)}});
    }
  }
  return out;
}

/// Whatever was changed in our part of a file is not lost silently.
void tell_edits(const std::string& file, const std::vector<config::edit>& edits, text::language locale,
                std::ostream& err) {
  for (const auto& edit : edits) {
    const auto say = [&](const text::phrase& part, const char* otherwise) {
      const text::phrase missing(std::string("scheduler_file.") + otherwise);
      return shown(words_of(part.empty() ? missing : part, locale), 200);
    };
    err << "quartermaster: "
        << text::message("scheduler_file.edit", locale,
                         {{"file", file},
                          {"line", std::to_string(edit.location.line)},
                          {"column", std::to_string(edit.location.column)},
                          {"field", say(edit.field, "edit_missing")},
                          {"value", say(edit.is, "edit_missing")},
                          {"expected", say(edit.expected, "edit_nothing")}})
        << "\n";
  }
}

attempted<std::string> merged(const render_scheduler_options& options, const config::extender_settings& extender,
                              const config::server& server, std::istream& input, std::ostream& err) {
  auto text = bytes_of(options.merge, input);
  if (!text) return text;
  const config::addition addition{extender_entry(extender), options.scheduler_name};
  auto out = merge(*text, addition, server);
  if (!out) return refuse(options.merge, out.error());
  if (const auto bare = config::unmerge(*text, extender.url))
    tell_edits(options.merge, edits_of(*text, *bare, addition), locale_of(options), err);
  return std::move(*out);
}

attempted<std::string> rendered(const render_scheduler_options& options, std::istream& input, std::ostream& err) {
  if (!options.unmerge.empty()) {
    auto text = bytes_of(options.unmerge, input);
    if (!text) return text;
    auto url = options.address.empty() ? attempted<std::string>() : url_of(options.address);
    if (!url) return url;
    auto out = config::unmerge(*text, *url);
    if (!out) return refuse(options.unmerge, out.error());
    config::extender_settings settings;
    settings.url = std::move(*url);
    settings.resources = options.resources;
    settings.not_offered = options.not_offered;
    tell_edits(options.unmerge, edits_of(*text, *out, merged_into(*text, *out, std::move(settings))),
               locale_of(options), err);
    return std::move(*out);
  }
  const auto minor = minor_of_version(options.kubernetes);
  if (!minor || *minor < config::oldest_minor) return refuse(not_a_version(options.kubernetes));
  for (const auto& [flag, value] : {std::pair{"--address", &options.address}, std::pair{"--ca", &options.ca},
                                    std::pair{"--cert", &options.certificate}, std::pair{"--key", &options.key}}) {
    if (value->empty()) return refuse(text::phrase{"usage.required", {{"name", std::string(flag)}}});
  }
  if (auto right = names_of(options); !right) return std::unexpected(std::move(right.error()));
  auto extender = extender_of(options, input);
  if (!extender) return std::unexpected(std::move(extender.error()));
  const config::server server{.minor = *minor, .in_cluster = options.in_cluster, .plugins = options.plugins};
  if (!options.merge.empty()) return merged(options, *extender, server, input, err);
  config::scheduler_settings scheduler;
  if (!options.scheduler_name.empty()) scheduler.scheduler_name = options.scheduler_name;
  scheduler.lease = options.lease;
  scheduler.kubeconfig = options.in_cluster ? "" : options.kubeconfig;
  auto out = render(*extender, scheduler);
  for (const auto& entry : config::judge(out, server)) {
    if (severity_of(entry.issue) == text::severity::error) return refuse("rendered", entry);
    err << "quartermaster: " << message_of(entry, locale_of(options)) << "\n";
  }
  return out;
}

constexpr std::string_view render_scheduler_example = R"(Example:
  $ for f in ca.crt tls.crt tls.key; do
      kubectl get secret -n quartermaster quartermaster-extender-client -o jsonpath="{.data.${f/./\\.}}" | base64 -d > $f; done
  $ quartermaster render scheduler-config --address https://10.96.0.77 --server-name quartermaster-extender.quartermaster.svc \
      --ca ca.crt --cert tls.crt --key tls.key --into /etc/kubernetes/scheduler-config.yaml > merged.yaml
  $ quartermaster render scheduler-config --unmerge merged.yaml --address https://10.96.0.77 | cmp - /etc/kubernetes/scheduler-config.yaml

In JSON and brackets, where there can be no comment, --unmerge knows the entry by --address alone.

Without --into it is the whole file of a kube-scheduler of its own. Exit codes: 0 printed, 1 a file cannot be read,
2 refused: one line says where, why and what to write. docs/scheduler-config.md)";

}  // namespace

int run_render_scheduler(const render_scheduler_options& options, std::istream& input, std::ostream& out,
                         std::ostream& err) {
  const auto text = rendered(options, input, err);
  if (!text) return failed(text.error().message, locale_of(options), err, text.error().rc);
  const auto host = std::string(config::split_url(options.address).host);
  if (options.unmerge.empty() && options.server_name.empty() && is_ip(host))
    failed({"render.no_ip"}, locale_of(options), err);
  out << *text;
  return 0;
}

void add_render_scheduler(CLI::App& render, int& rc) {
  auto* verb = add_verb(render, "scheduler-config", "What a kube-scheduler must be told to ask the extender");
  auto options = std::make_shared<render_scheduler_options>();
  add_option(*verb, "--address", options->address,
             "Of the extender: https://HOST:PORT, the clusterIP of quartermaster-extender");
  add_option(*verb, "--server-name", options->server_name, "In the extender's certificate, where the address is not");
  add_option(*verb, "--ca", options->ca, "PEM file: who signed the extender's certificate")->type_name("FILE");
  add_option(*verb, "--cert", options->certificate, "PEM file: what kube-scheduler shows")->type_name("FILE");
  add_option(*verb, "--key", options->key, "PEM file: its key")->type_name("FILE");
  add_option(*verb, "--kubernetes", options->kubernetes, "Version of the kube-scheduler")->capture_default_str();
  auto* merge_option = add_option(*verb, "--into", options->merge, "Merge into this file")->type_name("FILE");
  add_option(*verb, "--unmerge", options->unmerge, "Take out of this file what --into put there")
      ->type_name("FILE")
      ->excludes(merge_option);
  add_option(*verb, "--resource", options->resources,
             "A resource pods ask cards by (default: all known); may be repeated");
  add_option(*verb, "--not-offered", options->not_offered, "One that no node advertises; may be repeated");
  add_option(*verb, "--scheduler-name", options->scheduler_name,
             "Name of its profile (default: quartermaster; with --into no profile is added)");
  add_option(*verb, "--lease", options->lease, "Lease of a kube-scheduler of its own")->capture_default_str();
  add_option(*verb, "--kubeconfig", options->kubeconfig, "In kube-scheduler's container")->capture_default_str();
  add_option(*verb, "--plugin", options->plugins,
             "A plugin its image has in addition to Kubernetes' own; may be repeated");
  add_flag(*verb, "--in-cluster", options->in_cluster, "It runs in a pod with a ServiceAccount");
  options->language = language_of_environment();
  add_refusal_language(*verb, options->language);
  verb->footer(std::string(render_scheduler_example));
  verb->callback([options, &rc] { rc = run_render_scheduler(*options, std::cin, std::cout, std::cerr); });
}

}  // namespace cli
