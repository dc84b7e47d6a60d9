#include "cli/lint/lint_scheduler.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "cli/lint/lint_finding.hpp"
#include "cli/lint/scheduler_input.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "scheduler_config/flags/judge_flags.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

namespace config = scheduler_config;
using text::language;

using input = scheduler_input;

/// Its rules are not known: it is judged by those of the oldest that are.
bool is_before_oldest(int minor) { return minor < config::oldest_minor; }

lint_finding finding_of(const config::finding& finding, const input& input, std::string_view kind, int minor,
                        language language) {
  lint_finding out;
  out.file = input.name;
  out.location = input.place_in_file(finding.location);
  out.level = severity_of(finding.issue);
  out.kind = kind;
  out.code = to_string(finding.issue);
  out.field = finding.field;
  out.value = value_of(finding);
  out.allowed = allowed_of(finding, language);
  out.remedy = remedy_of(finding, language);
  out.message = message_of(finding, language);
  if (!input.entry.empty()) {
    out.kind = "ConfigMap";
    out.object = input.config_map;
    out.message = "data[" + text::shown(input.entry) + "]: " + out.message;
  }
  if (!is_before_oldest(minor) || config::holds_before_oldest(finding.issue))
    out.start_fails = effect_of(finding.issue) == config::effect::ends;
  return out;
}

/// Meant for kube-scheduler, and no manifest.
bool is_configuration(const input& file) {
  return file.read && !is_pod(*file.read) && config::other_product_of(*file.read).empty();
}

class scheduler_linter {
 public:
  scheduler_linter(const std::deque<input>& files, config::server server, language language)
      : files_(files), server_(std::move(server)), language_(language) {}

  std::vector<lint_finding> run() {
    const input* last = nullptr;
    for (const auto& file : files_) {
      if (!file.read) {
        add(file, {file.read.error()}, "");
      } else if (!is_pod(*file.read)) {
        // Entries of a ConfigMap are files of several kube-schedulers as a rule, and a static pod can mount none.
        auto server = server_;
        server.in_cluster = server.in_cluster || !file.entry.empty();
        if (file.entry.empty()) server.election = flags_of_manifest();
        auto found = config::judge(*file.read, server);
        if (!is_configuration(file)) {
          add(file, std::move(found), "");
          continue;
        }
        if (last && file.entry.empty())
          add(*last, lost_between(*last->read, *file.read, file.name), "KubeSchedulerConfiguration");
        add(file, std::move(found), "KubeSchedulerConfiguration");
        last = file.entry.empty() ? &file : nullptr;
      }
    }
    for (const auto& file : files_) {
      if (file.read && is_pod(*file.read))
        add(file, judge_static_pod(*file.read, last ? &*last->read : nullptr, server_), "Pod");
    }
    return std::move(out_);
  }

 private:
  config::election_flags flags_of_manifest() const {
    for (const auto& file : files_) {
      if (!file.read || !is_pod(*file.read)) continue;
      if (const auto pod = config::read_static_pod(*file.read); pod.runs_scheduler) return election_of(pod.line);
    }
    return {};
  }

  void add(const input& input, const config::findings& found, std::string_view kind) {
    for (const auto& entry : found) out_.push_back(finding_of(entry, input, kind, server_.minor, language_));
  }

  const std::deque<input>& files_;
  config::server server_;
  language language_;
  std::vector<lint_finding> out_;
};

/// The version asked for, else that of the manifest's image, else the newest.
int minor_for(const std::string& version, const std::deque<input>& files) {
  if (const auto minor = minor_of_version(version)) return *minor;
  for (const auto& file : files) {
    if (!file.read || !is_pod(*file.read)) continue;
    const auto pod = config::read_static_pod(*file.read);
    if (const auto minor = config::minor_of_image(pod.image); pod.runs_scheduler && minor != 0) return minor;
  }
  return config::newest_minor;
}

/// Those that count: the last file, or all entries of a ConfigMap in it.
std::vector<const input*> counting(const std::deque<input>& files) {
  std::vector<const input*> out;
  for (const auto& file : files) {
    if (!is_configuration(file)) continue;
    if (!out.empty() && (file.entry.empty() || out.back()->entry.empty() || out.back()->name != file.name)) out.clear();
    out.push_back(&file);
  }
  return out;
}

/// Nothing where no configuration can be read.
std::optional<bool> asks_about_cards(const std::deque<input>& files) {
  const auto all = counting(files);
  if (all.empty()) return std::nullopt;
  return std::ranges::any_of(all, [](const input* file) { return config::asks_about_cards(*file->read); });
}

/// What the configurations that count and the manifest name, each once. Not looked at: this machine need not be theirs.
std::vector<std::string> opened_files(const std::deque<input>& files) {
  std::vector<std::string> out;
  const auto add = [&](const std::vector<config::opened_file>& named) {
    for (const auto& entry : named) {
      if (std::ranges::find(out, entry.path) == out.end()) out.push_back(entry.path);
    }
  };
  for (const auto& file : files) {
    if (!file.read || !is_pod(*file.read)) continue;
    if (const auto pod = config::read_static_pod(*file.read); pod.runs_scheduler) add(config::opened_files(pod));
  }
  for (const auto* file : counting(files)) add(config::opened_files(*file->read));
  return out;
}

/// "data[a.yaml] of ConfigMap kube-system/x"; empty: no entry is judged.
std::string judged_entries(const std::deque<input>& files) {
  std::string out;
  for (const auto* file : counting(files)) {
    if (file->entry.empty()) continue;
    out += (out.empty() ? "" : ", ") + ("data[" + text::shown(file->entry) + "] of ConfigMap ") +
           text::shown(file->config_map.to_string(), 400);
  }
  return out;
}

bool starts(std::span<const lint_finding> findings) {
  return std::ranges::none_of(findings, [](const auto& finding) { return finding.start_fails.value_or(false); });
}

/// A whole file was not looked at.
bool is_unjudged(const lint_finding& finding) {
  using enum config::code;
  return std::ranges::any_of(std::array{beyond_limits, other_program, other_file, config_map_without},
                             [&](config::code code) { return finding.code == to_string(code); });
}

/// Something could not be judged, so that it may end for all we know.
bool left_open(std::span<const lint_finding> findings, int minor) {
  return is_before_oldest(minor) || std::ranges::any_of(findings, [](const auto& finding) {
           return finding.code == to_string(config::code::shell_not_followed) ||
                  finding.code == to_string(config::code::flags_not_judged) || is_unjudged(finding);
         });
}

/// Of all that was given nothing was judged.
bool is_all_unjudged(const std::deque<input>& files, std::span<const lint_finding> findings) {
  return std::ranges::all_of(files, [&](const input& file) {
    return std::ranges::any_of(
        findings, [&](const lint_finding& finding) { return is_unjudged(finding) && finding.file == file.name; });
  });
}

/// The closing line is printed where there is nothing to find, too.
nlohmann::ordered_json verdict_of(std::span<const lint_finding> findings, int minor, std::optional<bool> asks,
                                  const std::vector<std::string>& opens) {
  nlohmann::ordered_json out = {
      {"kubernetes", "1." + std::to_string(minor)}, {"starts", nullptr}, {"opens", opens}, {"asksAboutCards", nullptr}};
  if (!starts(findings) || !left_open(findings, minor)) out["starts"] = starts(findings);
  if (asks) out["asksAboutCards"] = *asks;
  out["findings"] = to_json(findings);
  return out;
}

std::string joined(const std::vector<std::string>& names, std::string_view separator) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : std::string(separator)) + text::shown(name);
  return out;
}

/// "not all was judged", of what was judged at all.
std::string start_words(std::span<const lint_finding> findings, const std::deque<input>& files, int minor,
                        const std::vector<std::string>& opens, language locale) {
  const auto words = [&](const char* key, std::initializer_list<text::parameter> parameters = {}) {
    return text::message(std::string("lint_scheduler.") + key, locale, parameters);
  };
  if (!starts(findings)) return words("does_not_start");
  if (is_all_unjudged(files, findings)) return words("not_judged");
  if (left_open(findings, minor)) return words("may_start");
  return opens.empty() ? words("starts") : words("starts_if", {{"files", joined(opens, words("comma"))}});
}

std::string summary(std::span<const lint_finding> findings, const std::deque<input>& files, int minor,
                    std::optional<bool> asks, const std::vector<std::string>& opens, language locale) {
  const auto errors =
      static_cast<std::size_t>(std::ranges::count(findings, text::severity::error, &lint_finding::level));
  const auto warnings = findings.size() - errors;
  const bool sound = starts(findings);
  const auto version = "1." + std::to_string(minor), newest = "1." + std::to_string(config::newest_minor);
  const bool unknown = minor > config::newest_minor, unasked = sound && !asks.value_or(true);
  const auto words = [&](const char* key, std::initializer_list<text::parameter> parameters = {}) {
    return text::message(std::string("lint_scheduler.") + key, locale, parameters);
  };
  const auto entries = judged_entries(files);
  return "kube-scheduler " + version + start_words(findings, files, minor, opens, locale) +
         words("sums", {{"errors", text::counted(errors, "count.error", locale)},
                        {"warnings", text::counted(warnings, "count.warning", locale)}}) +
         (unknown ? words("newest_known", {{"version", newest}}) : "") +
         (is_before_oldest(minor) && !is_all_unjudged(files, findings)
              ? words("oldest_known", {{"version", "1." + std::to_string(config::oldest_minor)}})
              : "") +
         (unasked ? words("unasked") : "") + (entries.empty() ? "" : words("in_cluster", {{"entries", entries}}));
}

constexpr std::string_view lint_scheduler_example = R"(Example:
  $ quartermaster lint scheduler-config /etc/kubernetes/scheduler-config.yaml --manifest /etc/kubernetes/manifests/kube-scheduler.yaml
  scheduler-config.yaml:1:1: error: apiVersion is kubescheduler.config.k8s.io/v1beta2, which kube-scheduler no longer reads since Kubernetes 1.28; allowed: kubescheduler.config.k8s.io/v1; write kubescheduler.config.k8s.io/v1 [api_version_removed]

Of several configurations each takes the place of the one before it; the manifest is known by its kind. Of a ConfigMap
each entry that is a configuration is judged, as for a kube-scheduler in a pod.
Exit codes: 0 clean (or warnings alone, without --strict), 1 a file cannot be read, 2 wrong usage, 3 found errors, or
a file that is not judged: one that is too large or too deep to be read here, a Pod that runs no kube-scheduler, or a
file of kubeadm or of Volcano.
What each code means: docs/scheduler-config.md)";

}  // namespace

std::optional<int> minor_of_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  if (!text.starts_with("1.")) return std::nullopt;
  text.remove_prefix(2);
  int out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = end == text.data() + text.size() || *end == '.';
  if (wrong != std::errc{} || !whole || out < 0 || out > 99) return std::nullopt;
  return out;
}

text::phrase not_a_version(std::string_view text) {
  return {"render.no_version",
          {{"name", "--kubernetes"},
           {"value", text::shown(text)},
           {"oldest", std::to_string(config::oldest_minor)},
           {"newest", std::to_string(config::newest_minor)}}};
}

int run_lint_scheduler(const lint_scheduler_options& options, std::istream& stream, std::ostream& out,
                       std::ostream& err) {
  if (!options.kubernetes.empty() && !minor_of_version(options.kubernetes))
    return failed(not_a_version(options.kubernetes), bilingual(options.language).locale(), err, 2);
  auto paths = options.files;
  if (!options.manifest.empty()) paths.push_back(options.manifest);
  std::deque<input> files;
  for (const auto& path : paths) {
    auto bytes = text::yaml::read_bytes(path, stream);
    if (!bytes) {
      const auto words = words_of(text::yaml::unreadable(bytes.error()), bilingual(options.language).locale());
      err << text::shown(words, 4096) << "\n";
      return 1;
    }
    for (auto& input : read_scheduler_inputs(path == "-" ? "<stdin>" : path, *bytes)) files.push_back(std::move(input));
  }
  const auto say_in = options.language == "zh" ? language::zh : language::en;
  config::server server;
  server.minor = minor_for(options.kubernetes, files);
  server.in_cluster = options.in_cluster;
  server.plugins = options.plugins;
  const auto minor = server.minor;
  const auto found = scheduler_linter(files, std::move(server), say_in).run();
  const auto asks = asks_about_cards(files);
  const auto opens = opened_files(files);
  if (!printed_as_data(verdict_of(found, minor, asks, opens), options.output, out)) {
    print_text(found, say_in, out);
    err << "quartermaster: " << summary(found, files, minor, asks, opens, say_in) << "\n";
  }
  const auto counts = [&](const lint_finding& f) { return options.strict || f.level == text::severity::error; };
  return std::ranges::any_of(found, counts) ? 3 : 0;
}

void add_lint_scheduler(CLI::App& lint, int& rc) {
  auto* verb = add_verb(lint, "scheduler-config",
                        "Does kube-scheduler start with this file, and are pods with cards scheduled then?");
  auto options = std::make_shared<lint_scheduler_options>();
  add_option(*verb, "files", options->files, "Configurations, and the manifest; - is standard input")
      ->required()
      ->type_name("FILE");
  add_option(*verb, "--manifest", options->manifest, "kube-scheduler.yaml of the static pod");
  add_option(*verb, "--kubernetes", options->kubernetes,
             "Version of the kube-scheduler (default: that of the manifest's image, else 1.37)");
  add_option(*verb, "--plugin", options->plugins,
             "A plugin its image has in addition to Kubernetes' own; may be repeated");
  add_flag(*verb, "--in-cluster", options->in_cluster,
           "It runs in a pod with a ServiceAccount, not on the host network");
  add_answer_options(*verb, options->language, options->output);
  add_unused_namespace(*verb);
  add_flag(*verb, "--strict", options->strict, "Warnings count as errors");
  verb->footer(std::string(lint_scheduler_example));
  verb->callback([options, &rc] { rc = run_lint_scheduler(*options, std::cin, std::cout, std::cerr); });
}

}  // namespace cli
