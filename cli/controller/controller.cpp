// quartermaster controller: the list of the operator's parts, in the order in which they are made, and the order in
// which they start. Each part brings its reconcilers, what wakes them, its loops and its series (controller/parts.hpp).

#include "cli/controller/controller.hpp"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <boost/asio/post.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cluster/refusal.hpp"
#include "cli/controller/controller_options.hpp"
#include "cli/controller/declaration_part.hpp"
#include "cli/controller/extender.hpp"
#include "cli/controller/fleet_metrics.hpp"
#include "cli/controller/ground.hpp"
#include "cli/controller/ledger_part.hpp"
#include "cli/controller/node_part.hpp"
#include "cli/controller/policy_file.hpp"
#include "cli/controller/policy_part.hpp"
#include "cli/controller/preflight.hpp"
#include "cli/controller/quota_part.hpp"
#include "cli/controller/scheduler_part.hpp"
#include "cli/controller/stores.hpp"
#include "cli/controller/view_part.hpp"
#include "cli/controller/webhook.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/elector.hpp"
#include "controller/event_recorder.hpp"
#include "controller/fenced_transport.hpp"
#include "controller/health.hpp"
#include "controller/http_server.hpp"
#include "controller/leader_label.hpp"
#include "controller/log.hpp"
#include "controller/loop.hpp"
#include "controller/manager.hpp"
#include "controller/metrics.hpp"
#include "controller/metrics_access.hpp"
#include "controller/parts.hpp"
#include "controller/server_clock.hpp"
#include "controller/teardown.hpp"
#include "kube/client.hpp"
#include "kube/config_fault.hpp"
#include "kube/curl_transport.hpp"

namespace cli {
namespace {

namespace log = controller::log;

controller::lease_settings lease_timing(const controller_options& options) {
  controller::lease_settings out;
  out.identity = controller::make_identity();
  out.duration = std::chrono::seconds(options.lease_seconds);
  out.renew_deadline = std::chrono::seconds(options.renew_seconds);
  out.retry = std::chrono::seconds(options.retry_seconds);
  return out;
}

controller::elector::options election(const controller_options& options) {
  controller::elector::options out;
  out.lease = {options.ns, "quartermaster"};
  out.timing = lease_timing(options);
  return out;
}

controller::http_server_options metrics_server(const controller_options& options) {
  controller::http_server_options out;
  out.name = "metrics";
  out.address = options.metrics_address;
  if (options.metrics_authentication) out.tls.emplace();
  return out;
}

controller::event_settings events_by(const controller::elector& elector) {
  controller::event_settings out;
  out.reporting_instance = elector.identity();
  return out;
}

/// An API server that hangs must be noticed well within the renew deadline and a probe's patience.
kube::transport_options deadlines() {
  kube::transport_options out;
  out.unary_deadline = std::chrono::seconds(15);
  return out;
}

/// Everything that lives as long as the operator, in the order it is made. A new part is a member at the end of the
/// list and a line in `join`.
class operator_program {
 public:
  operator_program(controller_options options, kube::cluster_config cluster, nlohmann::json policy)
      : options_(std::move(options)),
        given_policy_(std::move(policy)),
        wire_(loop_.executor(), std::move(cluster), deadlines()) {
    seen_.on_date([this](std::int64_t date) { clock_.saw(date, controller::boot_now()); });
    add_process_metrics(metrics_);
    health_.expect_contact_every(std::chrono::seconds(options_.retry_seconds));
    // Not fenced: every replica is asked for its page, and reviews change nothing.
    metrics_access_ = add_metrics_route(server_, metrics_, options_.metrics_authentication ? &seen_ : nullptr);
    add_health_routes(server_, health_);
    if (!options_.webhook_address.empty()) webhook_.emplace(ground_);
    if (options_.view_certificate) views_.emplace(ground_);
    if (!options_.extender_address.empty()) add_extender();
    quotas_.emplace(ground_, schedulers_, extender_ ? &*extender_ : nullptr);
    add_conditions();
    add_caches();
    join();
  }

  int run() {
    // Before the first answer of the cluster there is nothing to hand over.
    loop_.stop_on_signals([this] { managing_ ? manager_.stop() : loop_.quit(); });
    loop_.spawn_essential("main", main());
    loop_.run();
    controller::destroy_waiting(loop_.context());
    log::flush();
    return rc_;
  }

  std::string metrics_page() const { return metrics_.text(); }

 private:
  boost::asio::awaitable<void> main() {
    const auto usable = co_await check_cluster(reading_);
    if (!usable) co_return fail(usable.error().message);
    log::info("starting", {{"version", QUARTERMASTER_VERSION},
                           {"kubernetes", *usable},
                           {"identity", elector_.identity()},
                           {"namespace", options_.ns}});
    const auto fills = co_await server_fills_pods(reading_);
    if (!fills) co_return fail(fills.error().message);
    server_fills_ = *fills;
    managing_ = true;
    const auto served = co_await manager_.run();
    if (!served) fail(served.error().message);
    loop_.quit();
  }

  void fail(const std::string& reason) {
    log::error(reason);
    rc_ = 1;
    loop_.quit();
  }

  void add_extender() {
    extender_.emplace(ground_, ledger_.account(),
                      extender::settings{[this] { return elector_.remaining_confirmed(); }, elector_.identity(),
                                         [this] { policy_.report(); }, [this] { policy_.report_soon(); }});
  }

  /// What the status of the policy says besides the policy's own, in this order.
  void add_conditions() {
    policy_.add_condition([this] { return policy_.rights(manager_.refused()); });
    policy_.add_condition([this] { return declarations_.state(); });
    policy_.add_condition([this] { return schedulers_.state(); });
    policy_.add_condition([this] { return nodes_.repair(); });
    if (!extender_) return;
    policy_.add_condition([this] { return extender_->state(); });
    policy_.add_condition([this] { return std::optional(extender_->withdrawals()); });
  }

  void add_caches() {
    controller::reflector_options of_pods;
    of_pods.on_gap = [this](controller::milliseconds since) {
      auto& recorder = ledger_.recorder();
      recorder.begin_gap(since);
      // Behind the news that come now.
      boost::asio::post(loop_.executor(), [&recorder] { recorder.end_gap(); });
    };
    // Pods are bound to cards by what this watch says: not while its server may have been given other data.
    of_pods.on_break = [this] { elector_.doubt(); };
    caches_.add(stores_, options_, std::move(of_pods));
  }

  /// The order in which the parts start. Servers, caches, loops and runners are stopped in the order of manager.cpp.
  void join() {
    join_leadership();
    manager_.add_server(server_);
    parts_.write([this](controller::metric_text& text, bool is_leader) {
      write_fleet_metrics({stores_.accelerator_nodes, stores_.daemon_sets}, is_leader, text);
    });
    policy_.join(parts_);
    nodes_.join(parts_);
    declarations_.join(parts_);
    schedulers_.join(parts_);
    if (webhook_) webhook_->join(parts_);
    if (views_) views_->join(parts_);
    if (extender_) extender_->join(parts_);
    ledger_.join(parts_);
    quotas_->join(parts_);
    manager_.add_always("events", [this] { return events_.run(); }, [this] { return events_.flush(); });
  }

  void join_leadership() {
    manager_.set_leadership(controller::elector_leadership(elector_));
    manager_.on_leading([this] { loop_.spawn("leader-label", controller::mark_leader(client_, pod_)); });
    if (!given_policy_.is_null())
      manager_.on_leading(
          [this] { loop_.spawn("policy", keep_policy(client_, given_policy_, [this] { awaits_policy_ = false; })); });
    manager_.before_release([this] { return controller::unmark_leader(client_, pod_); });
  }

  controller_options options_;
  nlohmann::json given_policy_;  ///< of --policy; null: none
  bool awaits_policy_ = !given_policy_.is_null();
  int rc_ = 0;
  bool managing_ = false;
  bool server_fills_ = true;  ///< pods, by a policy

  // The ground: metrics, the loop, the way to the API server, what we know. `reading_` may be used by every replica,
  // `client_` writes and is fenced.
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  controller::health health_{metrics_};
  controller::server_clock clock_;
  kube::curl_transport wire_;
  controller::observed_transport seen_{wire_, health_, metrics_};
  kube::client reading_{seen_};
  controller::elector elector_{seen_, election(options_), metrics_};
  controller::counter& refused_ = metrics_.make_counter("quartermaster_fenced_requests_total",
                                                        "Writes that were not sent because the lease was not held.");
  controller::fenced_transport fence_{seen_, [this] { return elector_.remaining(); }, refused_};
  kube::client client_{fence_};
  controller::event_recorder events_{client_, events_by(elector_), metrics_};
  controller::own_pod pod_{{options_.ns, options_.pod_name}};
  controller::http_server_metrics serving_{metrics_};
  controller::http_server server_{loop_, serving_, metrics_server(options_)};
  std::unique_ptr<controller::metrics_access> metrics_access_;  ///< null without --metrics-authentication
  stores stores_;
  controller::manager manager_{loop_, health_, metrics_};
  caches caches_{manager_, seen_, [this](const kube::error& error) { policy_.report_trouble(error); },
                 [this] { policy_.report(); }};
  controller::runner_metrics running_{metrics_};
  controller::parts parts_{loop_, manager_, metrics_, running_};
  ground ground_{options_, loop_, metrics_, serving_, health_, client_, events_, stores_, caches_};

  // The parts. They know each other by the stores, and by what stands here.
  ledger_part ledger_{ground_,
                      {.now = [this] { return clock_.now(controller::boot_now()); },
                       .watching = [this] { return manager_.watching("pods"); }}};
  node_part nodes_{ground_,
                   {.isolates = [this] { return schedulers_.isolates(); },
                    .on_state = [this] { policy_.report(); },
                    .awaits_policy = [this] { return awaits_policy_; }}};
  policy_part policy_{ground_, nodes_.pods(), [this] { return schedulers_.rows(); }};
  declaration_part declarations_{ground_,
                                 nodes_,
                                 {.filled_by_policies = [this] { return server_fills_; },
                                  .sends = [this] { return schedulers_.sends(); },
                                  .on_state = [this] { policy_.report(); }}};
  scheduler_part schedulers_{ground_,
                             {.on_state = [this] { policy_.report(); },
                              .on_sends = [this] { declarations_.compile(); },
                              .on_isolates = [this] { nodes_.isolate(); }}};
  std::optional<view_part> views_;    ///< empty without --view-certificate
  std::optional<webhook> webhook_;    ///< empty without --webhook-address
  std::optional<extender> extender_;  ///< empty without --extender-address
  std::optional<quota_part> quotas_;
};

/// glibc raises its threshold for returning memory with every large block that is freed; one declaration of a mebibyte
/// would then stay with us for good.
void give_memory_back() {
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 512 << 10);
}

}  // namespace

int run_controller(controller_options options) {
  give_memory_back();
  log::level level = log::level::info;
  log::parse_level(options.log_level, level);
  log::configure(options.log_format == "json" ? log::format::json : log::format::text, level);
  const auto refuse = [locale = language_of_refusal(options.language)](const text::phrase& problem, int rc) {
    return failed(problem, locale, std::cerr, rc);
  };
  if (const auto problem = lease_timing(options).problem(); !problem.empty()) return refuse(problem, 2);
  if (const auto problem = address_problem("--metrics-address", options.metrics_address); !problem.empty())
    return refuse(problem, 2);
  if (const auto problem = webhook_problem(options); !problem.empty()) return refuse(problem, 2);
  if (const auto problem = extender_problem(options); !problem.empty()) return refuse(problem, 2);

  nlohmann::json policy;
  if (!options.policy.empty()) {
    auto read = read_policy_file(options.policy);
    const auto is_unread = [](const text::phrase_argument& value) { return value.inner.key == "yaml.unreadable"; };
    if (!read) return refuse(read.error(), std::ranges::any_of(read.error().arguments, is_unread) ? 1 : 2);
    policy = std::move(*read);
  }

  kube::config_options config_options;
  config_options.kubeconfig = options.kubeconfig;
  config_options.context = options.context;
  auto cluster = kube::config_in_words(config_options);
  if (!cluster) return refuse(cluster.error(), 1);
  if (options.ns.empty()) options.ns = cluster->ns;
  auto program = std::make_unique<operator_program>(std::move(options), std::move(*cluster), std::move(policy));
  return program->run();
}

std::string metrics_page(controller_options options) {
  return operator_program(std::move(options), {}, nullptr).metrics_page();
}

void add_controller(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "controller", "Run the operator: reconcilers, metrics and health, leader by Lease");
  auto options = std::make_shared<controller_options>();
  add_controller_options(*verb, *options);
  verb->callback([options, &rc] { rc = run_controller(*options); });
}

}  // namespace cli
