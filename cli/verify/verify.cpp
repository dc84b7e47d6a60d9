#include "cli/verify/verify.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cluster/declaration_registry.hpp"
#include "cli/cluster/fleet.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/console/walked_view.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/declarations/declared_config_map.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "scheduler_config/managed.hpp"
#include "text/messages.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"
#include "text/yaml/writer.hpp"

namespace cli {
namespace {

namespace verify = reconcilers::verify;
using nlohmann::ordered_json;
using text::language;
using verify::outcome;

std::string table_words(std::string_view key, language locale, std::initializer_list<text::parameter> parameters = {}) {
  return text::message("verify_table." + std::string(key), locale, parameters);
}

std::string mark(outcome is, language locale) { return table_words("outcome." + std::string(to_string(is)), locale); }

std::string text_in(const verify::step& step, language locale) {
  if (step.position != verify::stage::allocation) return text_of(step, locale);
  if (step.is == outcome::skipped)
    return step.other.empty() ? table_words("no_plugin", locale)
                              : table_words("nothing_free", locale, {{"key", step.value}});
  if (step.is == outcome::good) return table_words("pod_sees", locale, {{"key", step.other}, {"text", step.value}});
  if (step.is == outcome::unknown) return table_words("pod_sees_unknown", locale, {{"key", step.other}});
  return text_of(step, locale);
}

/// Texts come from objects that anyone may have written: our lines stay whole, and the terminal does nothing.
std::string plain(std::string_view text) {
  constexpr std::size_t most = 8192;
  return text::shown(text, most);
}

std::string padded(std::string_view text, std::size_t width) {
  const auto is = width_of(text);
  return std::string(text) + std::string(is < width ? width - is : 0, ' ');
}

/// Reports what was tried, however it went.
bool proved(const verify::step& step) {
  return step.position == verify::stage::allocation || step.position == verify::stage::extender;
}

/// In the short table. A check of the node that has no facts is counted in the heading.
bool is_shown(const verify::step& step) {
  const bool is_check = step.row.has_value();
  return step.is == outcome::wrong || step.is == outcome::changing || step.is == outcome::warning ||
         (step.is == outcome::unknown && !is_check) || proved(step);
}

void print_steps(const std::vector<verify::step>& steps, std::string_view node, language locale, bool all,
                 std::ostream& out) {
  for (const auto& step : steps) {
    if (!all && !is_shown(step)) continue;
    auto head = padded(mark(step.is, locale), 8);
    if (!head.ends_with(' ')) head += ' ';
    head += name_of(step.position, locale);
    out << "  " << padded(head, 23) << plain(text_in(step, locale)) << "\n";
    const auto remedy = remedy_of(step, node, locale);
    if (!remedy.empty())
      out << "  " << padded("", 8) << padded("", 15) << table_words("remedy", locale, {{"text", plain(remedy)}})
          << "\n";
  }
}

std::size_t wrong_in(const std::vector<verify::step>& steps) {
  return static_cast<std::size_t>(
      std::ranges::count_if(steps, [](const verify::step& step) { return step.is == outcome::wrong; }));
}

/// "1 problem" or "nothing wrong". Of the cluster the latter stands only where no node below has a problem.
std::string count_in(const std::vector<verify::step>& steps, language locale, std::size_t wrong_nodes) {
  const auto count = [&](outcome is) {
    return static_cast<std::size_t>(std::ranges::count(steps, is, &verify::step::is));
  };
  const auto problems = count(outcome::wrong), unknown = count(outcome::unknown);
  if (problems > 0) return text::counted(problems, "count.problem", locale);
  const bool is_changing = count(outcome::changing) > 0;
  auto out = is_changing       ? mark(outcome::changing, locale)
             : wrong_nodes > 0 ? table_words("own_parts", locale)
                               : table_words("nothing", locale);
  if (unknown > 0) out += table_words("not_known", locale, {{"number", std::to_string(unknown)}});
  if (wrong_nodes > 0) out += text::counted(wrong_nodes, "verify_table.wrong_nodes", locale);
  return out;
}

/// What a heading says of other parts of the report.
struct surroundings {
  bool is_cluster_wrong = false;  ///< for a node
  std::size_t wrong_nodes = 0;    ///< for the cluster
};

void print_part(std::string_view title, const std::vector<verify::step>& steps, std::string_view node, language locale,
                bool all, std::ostream& out, const surroundings& others) {
  const auto skipped = [](const verify::step& step) { return step.is == outcome::skipped; };
  const auto problems = wrong_in(steps);
  out << table_words("title", locale, {{"title", plain(title)}});
  // A node of which steps follow from what is wrong with the cluster is not well because nothing is wrong with itself.
  if (others.is_cluster_wrong && problems == 0 && std::ranges::any_of(steps, skipped))
    out << table_words("follows", locale) << "\n";
  else
    out << count_in(steps, locale, others.wrong_nodes) << "\n";
  print_steps(steps, node, locale, all, out);
}

ordered_json as_json(const verify::step& step, std::string_view node) {
  ordered_json out = {{"step", to_string(step.position)}, {"outcome", to_string(step.is)}};
  out["code"] = to_string(step.cause);
  if (step.row) out["check"] = step.row->name;
  out["text"] = {{"en", text_in(step, language::en)}, {"zh", text_in(step, language::zh)}};
  if (const auto remedy = remedy_of(step, node, language::en); !remedy.empty())
    out["remedy"] = {{"en", remedy}, {"zh", remedy_of(step, node, language::zh)}};
  return out;
}

ordered_json as_json(const std::vector<verify::step>& steps, std::string_view node) {
  auto out = ordered_json::array();
  for (const auto& step : steps) out.push_back(as_json(step, node));
  return out;
}

ordered_json as_json(const verify::report& report) {
  ordered_json out = {
      {"problems", problems(report)}, {"cluster", as_json(report.cluster, {})}, {"nodes", ordered_json::array()}};
  if (report.other_findings) out["otherFindings"] = *report.other_findings;
  for (const auto& node : report.nodes) {
    out["nodes"].push_back({{"name", node.node},
                            {"mode", node.current.empty() ? "none" : node.current},
                            {"requestedMode", node.requested.empty() ? "none" : node.requested},
                            {"problems", wrong_in(node.steps)},
                            {"steps", as_json(node.steps, node.node)}});
  }
  return out;
}

/// Only where the walk found the plugin working is there something to ask for.
bool worth_trying(const verify::node_walk& node_walk) {
  return std::ranges::any_of(node_walk.steps, [](const verify::step& step) {
    return step.position == verify::stage::resources && (step.is == outcome::good || step.is == outcome::wrong) &&
           step.cause != verify::stage_code::nothing_advertised && step.cause != verify::stage_code::no_cards;
  });
}

/// Who schedules pods that ask for accelerators; empty: the cluster's own.
std::string scheduler_of(const std::optional<reconcilers::accelerator_policy>& policy) {
  if (!policy) return {};
  const auto status = ordered_json::parse(policy->status, nullptr, false);
  if (!status.is_object()) return {};
  for (const auto& row : status.value("schedulers", ordered_json::array())) {
    if (kube::text_in(row, "mode") == "Dedicated" && policy->scheduler.mode == "Dedicated")
      return kube::text_in(row, "name");
  }
  return {};
}

/// With which people's pods of the mode run, as the module's declarations say; empty: none is needed.
std::string runtime_class_of(const std::optional<reconcilers::accelerator_policy>& policy, const std::string& mode) {
  if (!policy) return {};
  const auto spec = policy->modules.find(mode);
  return spec == policy->modules.end() ? std::string() : spec->second.runtime_class;
}

/// How long the operator may take to come to an object before that is reported.
constexpr std::chrono::seconds settling{5};
constexpr std::chrono::milliseconds between_looks{500};

/// What the walk is made from. Who may not read all that the ledger is made from does without the ledger.
picture_request walked_parts(const std::string& ns) {
  return {{part::types, part::policies, part::accelerator_nodes, part::nodes, part::daemon_sets, part::pods},
          {part::rules, part::quotas, part::old_quotas, part::device_labels, part::lease, part::slices, part::view_api},
          ns};
}

/// A walk, and what it was made from.
struct walked {
  verify::cluster_view view;
  verify::report report;
};

std::expected<walked, text::phrase> walk_of(picture& picture, const std::string& only_node,
                                            const std::vector<std::string>& unread_declarations = {}) {
  if (!only_node.empty() && !picture.nodes.find({{}, only_node}))
    return std::unexpected(text::phrase{"transport.no_node", {{"node", plain(only_node)}}});
  if (!picture.book && sees_ledger(picture)) picture.finish();
  const auto walk_over = [&](std::string_view node) {
    walked out{console::walked_view(picture, node), {}};
    out.view.unread_declarations = unread_declarations;
    out.report = walk(out.view);
    return out;
  };
  auto out = walk_over(only_node);
  if (!only_node.empty()) out.report = about_node(std::move(out.report), walk_over({}).report);
  return out;
}

/// ConfigMaps that would declare something where declarations are read. Who may not list them all learns nothing.
kube::task<std::vector<std::string>> find_unread_declarations(kube::transport& transport) {
  namespace declarations = reconcilers::declarations;
  const auto read_in = declarations::parse_settings().ns;
  std::set<std::string> out;
  const std::function<void(declarations::declared_config_map)> keep = [&](const auto& config_map) {
    if (config_map.key.ns != read_in) out.insert(config_map.key.to_string());
  };
  for (const auto selector : {declarations::names::alauda_selector, declarations::names::cpaas_selector,
                              declarations::names::device_selector}) {
    kube::list_options options;
    options.label_selector = selector;
    options.limit = declarations::declared_config_map::page;
    const auto listed = co_await list_each<declarations::declared_config_map>(transport, options, keep);
    if (!listed) break;
  }
  co_return std::vector<std::string>(out.begin(), out.end());
}

/// @param problem what is wrong with what was asked for although the cluster answers, or the words of an error
kube::task<void> look(kube::transport& transport, const verify_options& options, verify::report& report,
                      text::phrase& problem) {
  verify::cluster_view view;
  for (const auto until = std::chrono::steady_clock::now() + settling;;) {
    picture picture;
    const auto found = co_await read_picture(transport, walked_parts(options.ns), picture);
    if (!found) co_return std::unexpected(found.error());
    co_await console::take_in_refused_declarations(transport, picture);
    const auto unread = co_await find_unread_declarations(transport);
    auto seen = walk_of(picture, options.node, unread.value_or(std::vector<std::string>()));
    if (!seen) {
      problem = std::move(seen.error());
      co_return kube::result<void>();
    }
    view = std::move(seen->view);
    report = std::move(seen->report);
    if (!unsettled(report) || std::chrono::steady_clock::now() >= until) break;
    const bool slept = co_await controller::sleep_for(between_looks);
    if (!slept) break;
  }
  if (!options.allocate) co_return kube::result<void>();
  auto settings = options.allocation;
  if (settings.scheduler.empty()) settings.scheduler = scheduler_of(view.policy);
  for (std::size_t i = 0; i < report.nodes.size(); ++i) {
    auto& node = report.nodes[i];
    const auto* mode = reconcilers::modules::offered_by(view.policy ? &*view.policy : nullptr).find(node.mode);
    if (!mode || !worth_trying(node)) {
      node.steps.push_back({verify::stage::allocation, outcome::skipped, verify::stage_code::none, {}, {}, {}});
      continue;
    }
    settings.runtime_class = runtime_class_of(view.policy, node.mode);
    auto tried = co_await try_allocation(transport, view.nodes[i], *mode, settings, &problem);
    if (!tried) co_return std::unexpected(tried.error());
    node.steps.push_back(std::move(*tried));
  }
  co_return kube::result<void>();
}

std::expected<void, text::phrase> look_at_file(const verify_options& options, verify::report& report) {
  picture picture;
  if (auto read = gather({}, options.snapshot, picture); !read) return read;
  auto seen = walk_of(picture, options.node);
  if (!seen) return std::unexpected(seen.error());
  report = std::move(seen->report);
  return {};
}

kube::task<void> look_at_scheduler(kube::transport& transport, const verify_options& options, verify::report& report,
                                   text::phrase& problem) {
  auto settings = options.scheduler_with;
  auto tested = co_await test_scheduler(transport, std::move(settings), &problem);
  if (!tested) co_return std::unexpected(tested.error());
  report.cluster.push_back(std::move(*tested));
  co_return kube::result<void>();
}

std::vector<std::string> managed_keys() {
  std::vector<std::string> out;
  for (const auto& managed_key : scheduler_config::managed_keys) out.emplace_back(managed_key.key);
  return out;
}

constexpr std::string_view example = R"(Examples:
  $ quartermaster verify                    # every node that has or asks for a mode, and the cluster around them
  $ quartermaster verify gpu-1 --allocate   # one node, and a pod that takes the smallest unit there
  gpu-1 (vgpu): 1 problem
    WRONG   plugin         plugin pod quartermaster/vgpu-daemonset-7xk2p is not ready: ImagePullBackOff
                           do: kubectl describe pod and kubectl logs --previous of it; ...
  $ quartermaster verify --scheduler        # does the kube-scheduler that users' pods go to ask the extender?
  $ quartermaster verify --scheduler my-scheduler --resource nvidia.com/gpu

One cause is reported once: what only follows from it is left out. -o wide shows every step, good ones too.
Reads only; --allocate makes one pod a node and removes it again, on Ctrl-C too. --scheduler walks no node: it makes one
pod that the extender refuses on every node, reads what the scheduler says of it, and removes it. That needs no look at
the scheduler's configuration, so it works where a provider owns the control plane.
A change of mode that goes on is no problem: it is named with what it waits for. What could not be seen is counted as "not
known", and never as good.
Exit codes: 0 nothing wrong, 1 could not look, 2 wrong usage, 3 found problems, or with --strict anything but good.)";

constexpr std::string_view node_example = R"(Examples:
  $ quartermaster explain node gpu-1        # as quartermaster verify gpu-1 -o wide: the steps from label to allocatable

Exit codes: 0 nothing wrong, 1 could not look, 2 wrong usage, 3 found problems.)";

}  // namespace

void print(const verify::report& report, const verify_options& options, std::ostream& out) {
  const auto locale = options.language == "zh" ? language::zh : language::en;
  if (options.output == "json" || options.output == "yaml") {
    const auto all = as_json(report);
    out << (options.output == "yaml" ? text::yaml::write(all)
                                     : all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    return;
  }
  const bool all = options.output == "wide";
  const auto wrong_nodes = std::ranges::count_if(
      report.nodes, [](const verify::node_walk& node_walk) { return wrong_in(node_walk.steps) > 0; });
  const auto print_cluster = [&] {
    print_part(table_words("cluster", locale), report.cluster, {}, locale, all, out,
               {.wrong_nodes = static_cast<std::size_t>(wrong_nodes)});
  };
  const bool is_of_node = report.other_findings.has_value();
  if (!is_of_node) print_cluster();
  const bool cluster_wrong = wrong_in(report.cluster) > 0;
  for (const auto& node : report.nodes)
    print_part(node.node + (node.shown_mode.empty() || node.shown_mode == "none" ? "" : " (" + node.shown_mode + ")"),
               node.steps, node.node, locale, all, out, {.is_cluster_wrong = cluster_wrong});
  if (is_of_node) print_cluster();
  if (report.other_findings.value_or(0) > 0)
    out << text::counted(*report.other_findings, "verify_table.other_findings", locale) << "\n";
  if (report.nodes.empty() && !options.scheduler) out << table_words("no_node", locale) << "\n";
}

int run_verify(const verify_options& options, std::ostream& out, std::ostream& err) {
  verify::report found;
  text::phrase problem;
  auto result = !options.snapshot.empty() ? look_at_file(options, found)
                                          : in_words(ask_cluster(options.cluster, [&](kube::transport& transport) {
                                              return options.scheduler
                                                         ? look_at_scheduler(transport, options, found, problem)
                                                         : look(transport, options, found, problem);
                                            }));
  if (!problem.empty()) result = std::unexpected(problem);
  const auto locale = options.language == "zh" ? language::zh : language::en;
  if (!result) return failed(result.error(), locale, err);
  print(found, options, out);
  return problems(found) > 0 || (options.strict && !all_good(found)) ? 3 : 0;
}

void add_verify(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "verify", "Walk nodes from label to allocatable and say what is wrong, with remedies");
  auto options = std::make_shared<verify_options>();
  auto* node = add_node(*verb, options->node, "Only this node");
  add_answer_options(*verb, options->language, options->output);
  add_operator_namespace(*verb, options->ns);
  add_unused_namespace(*verb);
  add_flag(*verb, "--strict", options->strict, "Exit code 3 also for warnings, changes and what is not known");
  auto* allocate =
      add_flag(*verb, "--allocate", options->allocate, "Run one pod for the smallest unit on each node that works");
  auto* scheduler = add_option(*verb, "--scheduler", options->scheduler_with.name,
                               "Only this: does the kube-scheduler of that name ask the extender? Without a "
                               "name: the one of pods that name none")
                        ->expected(0, 1)
                        ->type_name("[NAME]")
                        ->excludes(node)
                        ->excludes(allocate);
  add_option(*verb, "--resource", options->scheduler_with.resource,
             "What the pod of --scheduler asks for; without it nvidia.com/gpucores, which no node has to offer")
      ->check(choice(managed_keys()).description(""))
      ->type_name("KEY")
      ->needs(scheduler);
  add_option(*verb, "--allocate-namespace", options->allocation.ns, "Where the test pod is made")
      ->check(namespace_name())
      ->capture_default_str();
  add_option(*verb, "--allocate-scheduler", options->allocation.scheduler,
             "By which the pod of --allocate is scheduled; without it the operator's own, or the cluster's")
      ->needs(allocate);
  add_option(*verb, "--image", options->allocation.image, "Image of the pod of --allocate; it must have sh and glibc")
      ->capture_default_str();
  auto seconds = std::make_shared<std::optional<int>>();
  add_option(*verb, "--timeout", *seconds, "Seconds the test pod may take; without it 120, and 30 for --scheduler")
      ->check(whole_number(1, 3600));
  add_option(*verb, "--snapshot", options->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE")
      ->excludes(allocate)
      ->excludes(scheduler);
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(example));
  verb->callback([options, scheduler, seconds, &rc] {
    options->scheduler = scheduler->count() > 0;
    options->scheduler_with.ns = options->allocation.ns;
    if (*seconds) {
      options->allocation.timeout_seconds = **seconds;
      options->scheduler_with.patience = std::chrono::seconds(**seconds);
    }
    rc = run_verify(*options, std::cout, std::cerr);
  });
}

void add_explain_node(CLI::App& explain, int& rc) {
  auto* verb = add_verb(explain, "node", "Why a node has not the mode that it asks for, step by step, with remedies");
  verb->alias("nodes");
  auto options = std::make_shared<verify_options>();
  add_node(*verb, options->node, "NAME, or node/NAME")->required();
  options->output = "wide";
  add_answer_options(*verb, options->language, options->output);
  add_operator_namespace(*verb, options->ns);
  add_unused_namespace(*verb);
  add_option(*verb, "--snapshot", options->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(node_example));
  verb->callback([options, &rc] { rc = run_verify(*options, std::cout, std::cerr); });
}

}  // namespace cli
