// quartermaster agent: what runs on nodes.

#include "cli/agent/agent.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/cards/status.hpp"
#include "agent/facts/other_cards.hpp"
#include "agent/facts/status.hpp"
#include "agent/static_pod/driver.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/subcommands.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/clock.hpp"
#include "controller/log.hpp"
#include "kube/config_fault.hpp"
#include "text/quotation.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace log = controller::log;

/// A path that begins with a slash, or nothing.
CLI::Validator absolute_or_nothing() {
  const auto check = [](std::string& text) { return text.empty() ? std::string() : absolute_path()(text); };
  return {check, ""};
}

CLI::Validator https_address() {
  return {[](const std::string& text) {
            const bool is_good = text.empty() || text.starts_with("https://");
            return is_good ? std::string() : refusal("usage.not_https", text::shown(text));
          },
          ""};
}

text::phrase problem_of(const agent_options& options) {
  if (options.print) return {};
  if (options.node.empty()) return {"usage.no_node_name"};
  if (const auto& metrics = options.cards.metrics; !metrics.pod_resources.empty() && metrics.port == 0)
    return {"usage.requires", {{"name", "--pod-resources"}, {"value", "--metrics-port"}}};
  controller::lease_settings lease;
  lease.identity = options.node;
  lease.duration = std::chrono::seconds(options.lease_seconds);
  lease.renew_deadline = std::chrono::seconds(options.renew_seconds);
  lease.retry = std::chrono::seconds(options.retry_seconds);
  return lease.problem();
}

agent::cards::inventory cards_of_machine(const std::string& driver_root) {
  namespace cards = agent::cards;
  cards::inventory out;
  const auto nvml = cards::nvml_library::load(driver_root);
  if (!nvml) {
    out.problem = nvml.error();
  } else if (const auto code = (*nvml)(cards::call::init); code != nvml::success) {
    out.problem = "the NVIDIA driver does not start: " + nvml->error_text(code);
  } else {
    out = cards::history().complete(cards::read_inventory(*nvml), controller::boot_now());
    (*nvml)(cards::call::shutdown);
  }
  return out;
}

/// What the agent would report, without a cluster.
int print_report(const agent::options& options, text::language locale) {
  namespace facts = agent::facts;
  const auto report = cards_of_machine(options.driver_root);
  const auto seen = facts::read({"/", options.node_root});
  const auto rows = facts::judge(seen, &report);
  const auto now = controller::rfc3339_seconds(std::chrono::system_clock::now());
  auto status = agent::cards::status_of(report, agent::boot_of_machine(), {}, now);
  auto preflight = facts::status_of(rows, facts::other_cards(seen), {}, now);
  status["preflight"] = std::move(preflight["preflight"]);
  if (preflight.contains("otherCards")) status["otherCards"] = std::move(preflight["otherCards"]);
  status["conditions"].push_back(std::move(preflight["conditions"][0]));
  std::cout << status.dump(2) << "\n";
  return report.problem.empty() ? 0 : failed(text::quotation_of(text::phrase(report.problem)), locale, std::cerr);
}

constexpr std::string_view example =
    R"(Without --static-pod it reports the NVIDIA cards of this node to its AcceleratorNode (status.cards, status.driver and
condition CardsHealthy): UUID, model, memory, NUMA node, links, MIG, and what is wrong with a card. The scheduler then
gives out these cards by UUID, and none that is lost or has a fatal XID. Such a card is used again when its driver has
been loaded again, the machine was started again, or someone has restored it. It writes only when something changes.

What it would report, without a cluster:
  $ quartermaster agent --print
Use a card again after an XID, for example after its reset:
  $ kubectl annotate node NODE quartermaster.io/restore=GPU-...
What it has reported:
  $ kubectl get anode NODE -o json | jq .status.cards
Metrics of cards and of shares of cards (docs/metrics.md lists them):
  $ quartermaster agent --metrics-port 9402 --pod-resources /var/lib/kubelet/pod-resources/kubelet.sock
  $ curl -s localhost:9402/metrics | grep ^quartermaster_share_

It also checks what cards need of their node: driver, kernel, device nodes, container runtime, CDI, RDMA and more. Each
check is a row of status.preflight with what was found and what to do; condition PreflightPassed sums them up.
`quartermaster verify` and `inspect nodes` show them. It only reads files and starts no process.

With --static-pod it runs on every control-plane node that kubeadm has set up, and acts while the AcceleratorPolicy says
spec.scheduler.mode: StaticPod. Then, one node at a time and only while all other kube-schedulers are ready:
  1. our extender is merged into /etc/kubernetes/scheduler-config.yaml (made where there is none), certificates inline,
     and judged as kube-scheduler would judge it; nothing is written that would not start;
  2. both files as they are and as they will be are kept in /etc/kubernetes/quartermaster/record.json;
  3. the file, then manifests/kube-scheduler.yaml (--config, its mount, the file's checksum) are renamed into place;
  4. the new kube-scheduler has to be ready, answer /healthz, and keep doing so; a time-out puts both files back.
After kubeadm upgrade has rewritten the files, this happens again. A scheduler-config.yaml that a person has changed
since is left alone and reported. When the mode is another, both files get back the bytes they had.

See how far each control-plane node is:
  $ kubectl get configmap quartermaster-static-pod -n quartermaster -o json | jq '.data // {} | map_values(fromjson)'
  $ kubectl describe node NODE             # events SchedulerConfigApplied, -RolledBack, -Stopped
To try a configuration again that was rolled back, delete record.json on that node.
No other file is written, and no symbolic link is followed. docs/scheduler-config.md)";

CLI::Option* add_seconds(CLI::App& verb, const char* flag, int& output, int most, const char* help) {
  return add_option(verb, flag, output, help)->check(whole_number(1, most))->capture_default_str();
}

void add_lease_options(CLI::App& verb, agent_options& options, const char* group) {
  add_seconds(verb, "--lease-duration", options.lease_seconds, 3600,
              "Seconds that other agents wait after our last renewal of the lease")
      ->group(group);
  add_seconds(verb, "--renew-deadline", options.renew_seconds, 3600,
              "Seconds without a renewal after which we stop; less than the duration")
      ->group(group);
  add_seconds(verb, "--retry-period", options.retry_seconds, 3600,
              "Seconds between two tries to get or renew the lease")
      ->group(group);
}

}  // namespace

int run_agent(const agent_options& agent_options) {
  auto options = agent_options;
  log::level level = log::level::info;
  log::parse_level(options.log_level, level);
  log::configure(options.log_format == "json" ? log::format::json : log::format::text, level);
  const auto locale = language_of_refusal(options.language);
  if (const auto problem = problem_of(options); !problem.empty()) return failed(problem, locale, std::cerr, 2);
  if (options.print) return print_report(options.cards, locale);
  kube::config_options config_options;
  config_options.kubeconfig = options.cluster.kubeconfig;
  config_options.context = options.cluster.context;
  auto cluster = kube::config_in_words(config_options);
  if (!cluster) return failed(cluster.error(), locale, std::cerr);
  if (!options.static_pod) {
    options.cards.node = options.node;
    agent::card_agent program(options.cards, std::move(*cluster));
    const auto done = program.run();
    return done ? 0 : failed(phrase_without_grants(done.error()), locale, std::cerr);
  }
  if (options.ns.empty()) options.ns = cluster->ns;
  agent::static_pod::driver program(options, std::move(*cluster));
  program.run();
  return 0;
}

CLI::Validator node_name() {
  return {[](const std::string& text) {
            return text::is_object_name(text) ? std::string() : refusal("usage.not_a_node", text::shown(text));
          },
          ""};
}

void add_agent(CLI::App& app, int& rc) {
  auto* verb =
      add_verb(app, "agent", "Run on a node: report its cards, or look after a control-plane node's kube-scheduler");
  auto options = std::make_shared<agent_options>();
  constexpr auto for_cards = "Options for cards", with_static_pod = "Options with --static-pod";
  add_flag(*verb, "--static-pod", options->static_pod,
           "Keep the extender in the configuration of this node's kube-scheduler, a static pod of kubeadm");
  const auto text = [verb](const char* flags, std::string& output, const char* variable, const char* help) {
    return add_option(*verb, flags, output, help)->envname(variable)->capture_default_str();
  };
  add_flag(*verb, "--print", options->print, "Print cards and checks of this machine as JSON, and end")
      ->group(for_cards);
  text("--driver-root", options->cards.driver_root, "QUARTERMASTER_DRIVER_ROOT",
       "Where the node's file system is mounted; the driver's library is looked for below it")
      ->check(absolute_path())
      ->group(for_cards);
  text("--node-root", options->cards.node_root, "QUARTERMASTER_NODE_ROOT",
       "Where the node's dev, etc, run and usr are mounted; preflight checks read them")
      ->check(absolute_path())
      ->group(for_cards);
  text("--node-name", options->node, "NODE_NAME", "Name of this node's Node object")->check(node_name());
  text("-n,--namespace", options->ns, "POD_NAMESPACE",
       "Namespace of the operator; without it the namespace of the context")
      ->group(with_static_pod);
  text("--root", options->root, "QUARTERMASTER_ROOT", "Where the node's /etc/kubernetes is mounted")
      ->check(absolute_path())
      ->group(with_static_pod);
  text("--extender-url", options->extender_url, "QUARTERMASTER_EXTENDER_URL",
       "https://HOST:PORT where kube-scheduler reaches the extender; without it the clusterIP of its Service")
      ->check(https_address())
      ->group(with_static_pod);
  const auto seconds = [verb](const char* flag, int& output, int most, const char* help) {
    return add_seconds(*verb, flag, output, most, help);
  };
  seconds("--patience", options->patience_seconds, 3600,
          "Seconds in which a new kube-scheduler has to work; otherwise both files are put back")
      ->group(with_static_pod);
  seconds("--settle", options->settle_seconds, 600, "Seconds that it has to work without a break")
      ->group(with_static_pod);
  seconds("--look", options->look_seconds, 600, "Seconds that the agent watches it at least before it puts files back")
      ->group(with_static_pod);
  seconds("--period", options->period_seconds, 10, "Seconds between two looks when nothing is under way")
      ->group(with_static_pod);
  add_option(*verb, "--metrics-port", options->cards.metrics.port,
             "Serve /metrics of cards and of what each container uses of them on this port; 0: do not")
      ->check(whole_number(0, 65535))
      ->capture_default_str()
      ->group(for_cards);
  add_metrics_authentication(*verb, options->cards.metrics.authentication)->group(for_cards);
  add_option(*verb, "--metrics-max-series", options->cards.metrics.max_series,
             "Series of containers at most, of which one has up to 6 for each of its cards; the page counts the rest")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str()
      ->group(for_cards);
  text("--pod-resources", options->cards.metrics.pod_resources, "QUARTERMASTER_POD_RESOURCES",
       "The kubelet's socket that says which container has which card (pod-resources/kubelet.sock); for metrics")
      ->check(absolute_or_nothing())
      ->check(socket_path(longest_socket_path))
      ->group(for_cards);
  seconds("--card-period", options->cards.period_seconds, 600, "Seconds between two readings of all facts of cards")
      ->group(for_cards);
  add_lease_options(*verb, *options, with_static_pod);
  add_option(*verb, "--log-format", options->log_format, "text or json, on stderr")
      ->check(choice({"text", "json"}))
      ->capture_default_str();
  add_option(*verb, "--log-level", options->log_level, "debug, info, warn or error")
      ->check(choice({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  add_refusal_language(*verb, options->language);
  add_kubeconfig_options(*verb, options->cluster);
  verb->footer(std::string(example));
  add_fix_runtime(*verb, rc);
  add_plugin(*verb, rc);
  add_mps(*verb, rc);
  refuse_flags_before_subcommands(*verb);
  verb->callback([verb, options, &rc] {
    if (verb->get_subcommands().empty()) rc = run_agent(*options);
  });
}

}  // namespace cli
