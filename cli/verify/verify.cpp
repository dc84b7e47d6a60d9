#include "cli/verify/verify.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cluster/fleet.hpp"
#include "cli/output/table.hpp"
#include "cli/output/yaml.hpp"
#include "cli/verbs.hpp"
#include "controller/sleep.hpp"
#include "scheduler_config/managed.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace verify = reconcilers::verify;
using reconcilers::crl::language;
using verify::outcome;
using json = nlohmann::ordered_json;

struct words {
  std::string_view good, wrong, warning, unknown, skipped, cluster, remedy, nothing, follows, no_node;
};
const words& words_in(language in) {
  static const words en{
      "ok",          "WRONG",
      "warning",     "unknown",
      "-",           "cluster",
      "do",          "nothing wrong",
      "see cluster", "No node has or asks for a mode (label nvidia-device-enable or quartermaster.io/mode)"};
  static const words zh{"正常",       "错误",
                        "警告",       "未知",
                        "-",          "集群",
                        "处理",       "没有问题",
                        "见集群部分", "没有节点具有或请求模式（标签 nvidia-device-enable 或 quartermaster.io/mode）"};
  return in == language::zh ? zh : en;
}

std::string_view mark(outcome is, const words& say) {
  switch (is) {
    case outcome::good:
      return say.good;
    case outcome::wrong:
      return say.wrong;
    case outcome::warning:
      return say.warning;
    case outcome::unknown:
      return say.unknown;
    case outcome::skipped:
      return say.skipped;
  }
  return {};
}

std::string text_in(const verify::step& of, language in) {
  const bool zh = in == language::zh;
  if (of.at != verify::stage::allocation) return text_of(of, in);
  if (of.is == outcome::skipped && !of.other.empty())
    return zh ? "未尝试：" + of.value + " 已没有空闲" : "not tried: no " + of.value + " is free";
  if (of.is != outcome::good && of.is != outcome::unknown) return text_of(of, in);
  const auto ran = zh ? "测试 Pod（" + of.other + "）已运行" : "a test pod for " + of.other + " ran";
  if (of.is == outcome::unknown)
    return ran + (zh ? "；无法读取其日志，因此不知道它看到了什么"
                     : "; its log could not be read, so what it sees is not known");
  return ran + (zh ? "，并看到：" : " and saw: ") + of.value;
}

/// Texts come from objects that anyone may have written: no line of ours is broken, and the terminal does nothing.
std::string plain(std::string_view text) {
  constexpr std::size_t most = 8192;
  return reconcilers::crl::shown(text, most);
}

std::string padded(std::string_view text, std::size_t width) {
  const auto is = width_of(text);
  return std::string(text) + std::string(is < width ? width - is : 0, ' ');
}

/// What was tried is told, however it went.
bool proved(const verify::step& of) { return of.at == verify::stage::allocation || of.at == verify::stage::extender; }

void print_steps(const std::vector<verify::step>& steps, std::string_view node, language in, bool all,
                 std::ostream& to) {
  const auto& say = words_in(in);
  for (const auto& one : steps) {
    if (!all && one.is != outcome::wrong && one.is != outcome::warning && !proved(one)) continue;
    to << "  " << padded(mark(one.is, say), 8) << padded(name_of(one.at, in), 15) << plain(text_in(one, in)) << "\n";
    const auto remedy = remedy_of(one, node, in);
    if (!remedy.empty())
      to << "  " << padded("", 8) << padded("", 15) << say.remedy << (in == language::zh ? "：" : ": ") << plain(remedy)
         << "\n";
  }
}

std::size_t wrong_in(const std::vector<verify::step>& steps) {
  return static_cast<std::size_t>(
      std::ranges::count_if(steps, [](const verify::step& one) { return one.is == outcome::wrong; }));
}

std::string count_in(std::size_t problems, language in) {
  if (problems == 0) return std::string(words_in(in).nothing);
  const auto number = std::to_string(problems);
  if (in == language::zh) return number + " 个问题";
  return number + (problems == 1 ? " problem" : " problems");
}

void print_part(std::string_view title, const std::vector<verify::step>& steps, std::string_view node, language in,
                bool all, std::ostream& to, bool follows = false) {
  const auto skipped = [](const verify::step& one) { return one.is == outcome::skipped; };
  const auto problems = wrong_in(steps);
  to << plain(title) << (in == language::zh ? "：" : ": ");
  // A node of which steps follow from what is wrong with the cluster is not well because nothing is wrong with itself.
  if (follows && problems == 0 && std::ranges::any_of(steps, skipped))
    to << words_in(in).follows << "\n";
  else
    to << count_in(problems, in) << "\n";
  print_steps(steps, node, in, all, to);
}

json as_json(const verify::step& of, std::string_view node) {
  json out = {{"step", to_string(of.at)}, {"outcome", to_string(of.is)}};
  out["code"] = to_string(of.why);
  if (of.row) out["check"] = reconcilers::to_string(of.row->what);
  out["text"] = {{"en", text_in(of, language::en)}, {"zh", text_in(of, language::zh)}};
  if (const auto remedy = remedy_of(of, node, language::en); !remedy.empty())
    out["remedy"] = {{"en", remedy}, {"zh", remedy_of(of, node, language::zh)}};
  return out;
}

json as_json(const std::vector<verify::step>& steps, std::string_view node) {
  auto out = json::array();
  for (const auto& one : steps) out.push_back(as_json(one, node));
  return out;
}

json as_json(const verify::report& of) {
  json out = {{"problems", problems(of)}, {"cluster", as_json(of.cluster, {})}, {"nodes", json::array()}};
  for (const auto& one : of.nodes) {
    out["nodes"].push_back({{"name", one.node},
                            {"mode", one.mode.empty() ? "none" : one.mode},
                            {"problems", wrong_in(one.steps)},
                            {"steps", as_json(one.steps, one.node)}});
  }
  return out;
}

/// Only where the walk found the plugin working is there something to ask for.
bool worth_trying(const verify::node_walk& of) {
  return std::ranges::any_of(of.steps, [](const verify::step& one) {
    return one.at == verify::stage::resources && (one.is == outcome::good || one.is == outcome::wrong) &&
           one.why != verify::code::nothing_advertised;
  });
}

/// Who schedules pods that ask for accelerators; empty: the cluster's own.
std::string scheduler_of(const std::optional<reconcilers::accelerator_policy>& policy) {
  if (!policy) return {};
  const auto status = json::parse(policy->status, nullptr, false);
  if (!status.is_object()) return {};
  for (const auto& row : status.value("schedulers", json::array())) {
    if (row.value("mode", "") == "Dedicated" && policy->scheduler.mode == "Dedicated") return row.value("name", "");
  }
  return {};
}

/// How long an object that the operator has not come to yet is given before it is told.
constexpr std::chrono::seconds settling{5};
constexpr std::chrono::milliseconds between_looks{500};

kube::task<void> look(kube::transport& over, const verify_options& options, verify::report& into) {
  fleet_options what;
  what.ns = options.ns;
  what.node = options.node;
  verify::cluster_view view;
  for (const auto until = std::chrono::steady_clock::now() + settling;;) {
    const auto found = co_await read_fleet(over, what);
    if (!found) co_return std::unexpected(found.error());
    view = view_of(*found, options.node, std::chrono::system_clock::now());
    into = walk(view);
    if (!unsettled(into) || std::chrono::steady_clock::now() >= until) break;
    const bool slept = co_await controller::sleep_for(between_looks);
    if (!slept) break;
  }
  if (!options.allocate) co_return kube::result<void>();
  auto with = options.with;
  with.scheduler = scheduler_of(view.policy);
  for (std::size_t i = 0; i < into.nodes.size(); ++i) {
    auto& one = into.nodes[i];
    const auto* mode = reconcilers::modules::offered_by(view.policy ? &*view.policy : nullptr).find(one.mode);
    if (!mode || !worth_trying(one)) continue;
    auto tried = co_await try_allocation(over, view.nodes[i], *mode, with);
    if (!tried) co_return std::unexpected(tried.error());
    one.steps.push_back(std::move(*tried));
  }
  co_return kube::result<void>();
}

kube::task<void> look_at_scheduler(kube::transport& over, const verify_options& options, verify::report& into) {
  auto with = options.scheduler_with;
  auto tested = co_await test_scheduler(over, std::move(with));
  if (!tested) co_return std::unexpected(tested.error());
  into.cluster.push_back(std::move(*tested));
  co_return kube::result<void>();
}

std::vector<std::string> managed_keys() {
  std::vector<std::string> out;
  for (const auto& one : reconcilers::scheduler_config::managed_keys) out.emplace_back(one.key);
  return out;
}

/// Empty: it is one. A namespace is part of every path, so that what is none is told before anything is asked.
std::string not_a_namespace(const std::string& text) {
  if (reconcilers::crl::is_dns_subdomain(text, 63) && !text.contains('.')) return {};
  return "\"" + plain(text) + "\" is not the name of a namespace: a-z, 0-9 and -, at most 63, no - at either end";
}

constexpr std::string_view example = R"(Examples:
  $ quartermaster verify                    # every node that has or asks for a mode, and the cluster around them
  $ quartermaster verify gpu-1 --allocate   # one node, and a pod that takes the smallest unit there
  gpu-1 (vgpu): 1 problem
    WRONG   plugin         plugin pod quartermaster/gpu-manager-daemonset-7xk2p is not ready: ImagePullBackOff
                           do: kubectl describe pod and kubectl logs --previous of it; ...
  $ quartermaster verify --scheduler        # does the kube-scheduler that users' pods go to ask the extender?
  $ quartermaster verify --scheduler my-scheduler --resource nvidia.com/gpu

One cause is told once: what only follows from it is left out. -o wide shows every step, good ones too.
Reads only; --allocate makes one pod a node and removes it again, on Ctrl-C too. --scheduler walks no node: it makes one
pod that the extender refuses on every node, reads what the scheduler says of it, and removes it. That needs no look at
the scheduler's configuration, so it works where a provider owns the control plane.
Exit codes: 0 nothing wrong, 1 could not look, 2 wrong usage, 3 found problems.)";

}  // namespace

void print(const verify::report& what, const verify_options& how, std::ostream& to) {
  const auto in = how.language == "zh" ? language::zh : language::en;
  if (how.output == "json" || how.output == "yaml") {
    const auto all = as_json(what);
    to << (how.output == "yaml" ? yaml::write(all) : all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    return;
  }
  const bool all = how.output == "wide";
  print_part(words_in(in).cluster, what.cluster, {}, in, all, to);
  const bool cluster_wrong = wrong_in(what.cluster) > 0;
  for (const auto& one : what.nodes)
    print_part(one.node + (one.mode.empty() ? "" : " (" + one.mode + ")"), one.steps, one.node, in, all, to,
               cluster_wrong);
  if (what.nodes.empty() && !how.scheduler) to << words_in(in).no_node << "\n";
}

int run_verify(const verify_options& options, std::ostream& out, std::ostream& err) {
  verify::report found;
  const auto asked = ask_cluster(options.cluster, [&](kube::transport& over) {
    return options.scheduler ? look_at_scheduler(over, options, found) : look(over, options, found);
  });
  if (!asked) {
    err << "quartermaster: " << plain(asked.error().what) << "\n";
    return 1;
  }
  print(found, options, out);
  return problems(found) == 0 ? 0 : 3;
}

void add_verify(CLI::App& app, int& rc) {
  auto* verb =
      app.add_subcommand("verify", "Walk nodes from label to allocatable and say what is wrong, with remedies");
  auto options = std::make_shared<verify_options>();
  auto* node = verb->add_option("node", options->node, "Only this node");
  verb->add_option("--lang", options->language, "en or zh")->check(CLI::IsMember({"en", "zh"}))->capture_default_str();
  verb->add_option("-o,--output", options->output, "table (what is wrong), wide (every step), json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
      ->capture_default_str();
  verb->add_option("-n,--namespace", options->ns, "The operator's; without it where the lease quartermaster is");
  auto* allocate =
      verb->add_flag("--allocate", options->allocate, "Run one pod for the smallest unit on each node that works");
  auto* scheduler = verb->add_option("--scheduler", options->scheduler_with.name,
                                     "Only this: does the kube-scheduler of that name ask the extender? Without a "
                                     "name: the one of pods that name none")
                        ->expected(0, 1)
                        ->type_name("[NAME]")
                        ->excludes(node)
                        ->excludes(allocate);
  verb->add_option("--resource", options->scheduler_with.resource,
                   "What the pod of --scheduler asks for; without it nvidia.com/gpucores, which no node has to offer")
      ->check(CLI::IsMember(managed_keys()).description(""))
      ->type_name("KEY")
      ->needs(scheduler);
  verb->add_option("--allocate-namespace", options->with.ns, "Where the test pod is made")
      ->check(CLI::Validator(not_a_namespace, ""))
      ->capture_default_str();
  verb->add_option("--image", options->with.image, "Of the pod of --allocate: with sh and glibc")
      ->capture_default_str();
  auto seconds = std::make_shared<std::optional<int>>();
  verb->add_option("--timeout", *seconds, "Seconds the test pod may take; without it 120, and 30 for --scheduler")
      ->check(CLI::Range(1, 3600));
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(example));
  verb->callback([options, scheduler, seconds, &rc] {
    options->scheduler = scheduler->count() > 0;
    options->scheduler_with.ns = options->with.ns;
    if (*seconds) {
      options->with.timeout_seconds = **seconds;
      options->scheduler_with.patience = std::chrono::seconds(**seconds);
    }
    rc = run_verify(*options, std::cout, std::cerr);
  });
}

}  // namespace cli
