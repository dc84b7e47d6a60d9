// quartermaster controller: what lives in the operator, in which order it is made, and until when. The parts know each
// other only by the stores; who wakes whom is the list in `add_observers`.

#include "cli/controller/controller.hpp"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <boost/asio/post.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/static_pod/cluster.hpp"
#include "api/names.hpp"
#include "cli/controller/control_plane.hpp"
#include "cli/controller/control_plane_agents.hpp"
#include "cli/controller/controller_options.hpp"
#include "cli/controller/extender.hpp"
#include "cli/controller/fleet_metrics.hpp"
#include "cli/controller/policy_file.hpp"
#include "cli/controller/preflight.hpp"
#include "cli/controller/stores.hpp"
#include "cli/controller/webhook.hpp"
#include "cli/flags/flags.hpp"
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
#include "controller/runner.hpp"
#include "controller/server_clock.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"
#include "kube/client.hpp"
#include "kube/config.hpp"
#include "kube/curl_transport.hpp"
#include "reconcilers/container_runtime/runtime_fixer.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/resource_rules.hpp"
#include "reconcilers/nodes/card_labeler.hpp"
#include "reconcilers/nodes/enrolment.hpp"
#include "reconcilers/nodes/report_age.hpp"
#include "reconcilers/nodes/restore.hpp"
#include "reconcilers/own_scheduler/scheduler.hpp"
#include "reconcilers/plugins/policy.hpp"
#include "reconcilers/plugins/rollouts.hpp"
#include "reconcilers/quotas/quota_metrics.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "reconcilers/usage/allocation_metrics.hpp"
#include "reconcilers/usage/keeper.hpp"
#include "reconcilers/usage/recorder.hpp"
#include "text/text.hpp"

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

controller::http_server_options front(const controller_options& options) {
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

reconcilers::declarations::parse_settings judged_in(std::string ns) {
  reconcilers::declarations::parse_settings out;
  out.ns = std::move(ns);
  return out;
}

constexpr controller::milliseconds soon{300};
/// A kube-scheduler that was set up by hand asks when a pod with cards waits.
constexpr controller::milliseconds patience_with_schedulers = std::chrono::hours(1);

controller::runner_options at_once(std::size_t keys) {
  controller::runner_options out;
  out.at_once = keys;
  return out;
}

/// An API server that hangs must be noticed well within the renew deadline and a probe's patience.
kube::transport_options patience() {
  kube::transport_options out;
  out.unary_deadline = std::chrono::seconds(15);
  return out;
}

/// Everything that lives as long as the operator, in the order it is made.
class operator_program {
 public:
  operator_program(controller_options options, kube::cluster_config cluster, nlohmann::json policy)
      : options_(std::move(options)),
        given_policy_(std::move(policy)),
        wire_(loop_.executor(), std::move(cluster), patience()) {
    seen_.on_date([this](std::int64_t date) { clock_.saw(date, controller::boot_now()); });
    add_process_metrics(metrics_);
    add_fleet_metrics(metrics_, {stores_.accelerator_nodes, stores_.daemon_sets},
                      [this] { return manager_.leading(); });
    metrics_.collect(
        [this](controller::metric_text& text) { reconcilers::write_report_metrics(stores_.accelerator_nodes, text); });
    metrics_.collect([this](controller::metric_text& text) {
      reconcilers::usage::write_allocation_metrics(
          manager_.leading(), account_, stores_.pods,
          [this](std::string_view ns) { return recorder_.organization(ns); }, prices(), text);
      reconcilers::write_quota_metrics(manager_.leading() && extender_ ? &extender_->limits() : nullptr, stores_.quotas,
                                       text);
    });
    health_.expect_contact_every(std::chrono::seconds(options_.retry_seconds));
    // Not fenced: every replica is asked for its page, and reviews change nothing.
    metrics_access_ = add_metrics_route(server_, metrics_, options_.metrics_authentication ? &seen_ : nullptr);
    add_health_routes(server_, health_);
    add_caches();
    add_observers();
    add_leadership();
    manager_.add_server(server_);
    if (!options_.webhook_address.empty()) add_webhook();
    if (!options_.extender_address.empty()) add_extender();
    manager_.on_leading([this] { loop_.spawn_essential("ledger", audit_ledger()); });
    add_quotas();
    add_usage();
    manager_.add_always("events", [this] { return events_.run(); }, [this] { return events_.flush(); });
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

  void add_caches() {
    controller::reflector_options of_pods;
    of_pods.on_gap = [this](controller::milliseconds since) {
      recorder_.begin_gap(since);
      boost::asio::post(loop_.executor(), [this] { recorder_.end_gap(); });  // behind the news that come now
    };
    // Pods are bound to cards by what this watch says: not while its server may have been given other data.
    of_pods.on_break = [this] { elector_.doubt(); };
    caches_.add(stores_, options_, std::move(of_pods));
  }
  /// Rights that were taken away while we run, and watches that do not work: said where an administrator looks, on the
  /// policy. Before the first sync the log and /readyz say it.
  void say_trouble(const kube::error& error) {
    const auto* about = stores_.policies.find(reconcilers::policy_key);
    if (!about || !manager_.leading()) return;
    const bool refused = error.code == kube::errc::forbidden;
    events_.record(
        {kube::resources::accelerator_policies, *about}, controller::event_type::warning,
        refused ? "Forbidden" : "WatchBroken", "Watch",
        refused ? error.message + ". Grant the right again (helm upgrade restores the chart's); no restart is needed."
                : error.message +
                      ". Lists work, so what is known may be minutes old: look for a proxy between here "
                      "and the API server that cuts or holds back streams.");
  }

  /// A change of `store` is looked at by `reconciler`, which says which of its keys that concerns.
  template <class T, class Reconciler>
  void wake(controller::store<T>& store, const Reconciler& reconciler, controller::runner& runner) {
    store.observe([this, &reconciler, &runner](const T* before, const T* after) {
      for (const auto& key : reconciler.affected_by(before, after)) runner.add(key, priority());
    });
  }
  /// The same where what follows is only counted: a thousand changes at once are one look.
  template <class T, class Reconciler>
  void wake_soon(controller::store<T>& store, const Reconciler& reconciler, controller::runner& runner) {
    store.observe([this, &reconciler, &runner](const T* before, const T* after) {
      for (const auto& key : reconciler.affected_by(before, after)) runner.add_after(key, soon, priority());
    });
  }
  /// The labels that device configurations name ask for one of our modes where the device is one.
  void declare_labels() {
    std::vector<reconcilers::label_alias> labels;
    for (const auto& device : custom_resource_.devices()) {
      if (device.sound) labels.push_back({device.label_key, device.label_value, text::lower_case(device.name)});
    }
    for (const auto& node : enrolment_.declare(std::move(labels))) enrolling_.add(node, priority());
  }
  void add_observers() {
    wake(stores_.policies, policy_, governing_);
    wake(stores_.daemon_sets, policy_, governing_);
    wake(stores_.services, policy_, governing_);
    wake(stores_.service_accounts, policy_, governing_);
    wake(stores_.config_maps, policy_, governing_);
    wake_soon(stores_.nodes, policy_, governing_);
    wake(stores_.policies, enrolment_, enrolling_);
    wake(stores_.nodes, enrolment_, enrolling_);
    wake(stores_.pods, enrolment_, enrolling_);
    wake(stores_.accelerator_nodes, enrolment_, enrolling_);
    wake(stores_.nodes, restore_, restoring_);
    wake(stores_.accelerator_nodes, restore_, restoring_);
    wake(stores_.policies, runtime_fixer_, fixing_);
    wake_soon(stores_.nodes, runtime_fixer_, fixing_);
    wake(stores_.pods, runtime_fixer_, fixing_);
    wake_soon(stores_.accelerator_nodes, runtime_fixer_, fixing_);
    wake(stores_.pods, report_age_, ageing_);
    wake(stores_.accelerator_nodes, report_age_, ageing_);
    wake(stores_.policies, labeler_, labeling_);
    wake(stores_.nodes, labeler_, labeling_);
    wake(stores_.accelerator_nodes, labeler_, labeling_);
    wake(stores_.policies, control_plane_agents_, marking_);
    wake(stores_.nodes, control_plane_agents_, marking_);
    wake(stores_.control_plane_rows, control_plane_agents_, marking_);
    wake(stores_.policies, rollouts_, rolling_);
    wake(stores_.daemon_sets, rollouts_, rolling_);
    wake(stores_.nodes, rollouts_, rolling_);
    wake(stores_.pods, rollouts_, rolling_);
    wake(stores_.accelerator_nodes, rollouts_, rolling_);
    for (auto* store : {&stores_.declared_alauda, &stores_.declared_cpaas, &stores_.device_configs}) {
      wake(*store, policy_, governing_);
      wake(*store, custom_resource_, judging_);
      wake(*store, resource_rules_, compiling_);
    }
    stores_.device_configs.observe([this](const auto*, const auto*) { declare_labels(); });
    wake(stores_.runtime_classes, custom_resource_, judging_);
    wake(stores_.runtime_classes, resource_rules_, compiling_);
    wake(stores_.policies, resource_rules_, compiling_);
    wake(stores_.nodes, resource_rules_, compiling_);
    wake(stores_.compiled_rules, resource_rules_, compiling_);
    wake(stores_.compiled_rules, custom_resource_, judging_);
    wake(stores_.policies, dedicated_, scheduling_);
    wake(stores_.compiled_rules, dedicated_, scheduling_);
    wake(stores_.deployments, dedicated_, scheduling_);
    wake(stores_.config_maps, dedicated_, scheduling_);
    wake(stores_.client_secret, dedicated_, scheduling_);
    wake_soon(stores_.nodes, dedicated_, scheduling_);
    wake_soon(stores_.pods, dedicated_, scheduling_);
    stores_.control_plane_rows.observe([this](const kube::config_map*, const kube::config_map*) { report(); });
    stores_.nodes.observe([this](const kube::node* before, const kube::node* after) {
      if ((before && is_control_plane_node(*before)) != (after && is_control_plane_node(*after))) report();
    });
    for (auto* runner : {&governing_, &enrolling_, &restoring_, &fixing_, &ageing_, &labeling_, &marking_, &rolling_,
                         &judging_, &compiling_, &scheduling_})
      manager_.add_runner(*runner);
  }

  void add_webhook() {
    webhook_ = std::make_unique<webhook>(webhook::dependencies{loop_, metrics_, serving_, running_, client_,
                                                               stores_.policies, stores_.compiled_rules, stores_.nodes},
                                         options_);
    webhook_->join(manager_, health_, caches_, options_.ns);
  }

  /// Also without the extender: what people and other schedulers place can give a card out twice.
  kube::task<void> audit_ledger() {
    for (;;) {
      const bool slept = co_await controller::sleep_for(std::chrono::seconds(60));
      if (!slept) co_return kube::result<void>();
      if (const auto found = account_.audit(); found > 0)
        log::warn("the ledger differed from the API and was repaired", {{"entries", std::to_string(found)}});
    }
  }
  /// Also where no one counts: a quota says so then.
  void add_quotas() {
    quota_status_ = std::make_unique<reconcilers::quota_status>(reconcilers::quota_status::dependencies{
        client_, stores_.quotas, extender_ ? &extender_->limits() : nullptr,
        [this] { return extender_ ? extender_->held_back() : reconcilers::held_back_by_namespace(); },
        [this] { return enforcement(); }, [this] { return extender_ ? extender_->models() : std::set<std::string>(); },
        events_});
    manager_.on_leading([this] {
      led_since_ = controller::boot_now();
      loop_.spawn_essential("quota_status", keep_quotas());
    });
    manager_.on_leading([this] {
      if (!stores_.policies.find(reconcilers::policy_key))
        controller::log::info("there is no AcceleratorPolicy named default: nothing is enrolled until one is created");
    });
  }
  /// Who held how much of which card, for how long. Replicas that do not lead watch, too.
  void add_usage() {
    manager_.add_always("usage", [this] { return usage_.watch(stores_.usages); });
    manager_.on_leading([this] { loop_.spawn_essential("usage", usage_.lead()); });
    manager_.before_release([this] { return usage_.flush(); });
  }
  /// Null: there is no policy.
  const reconcilers::chargeback_spec* prices() const {
    const auto* policy = stores_.policies.find(reconcilers::policy_key);
    return policy ? &policy->chargeback : nullptr;
  }
  kube::task<void> keep_quotas() {
    for (;;) {
      const bool slept = co_await controller::sleep_for(std::chrono::seconds(2));
      if (!slept) co_return kube::result<void>();
      const auto done = co_await quota_status_->turn();
      if (!done) log::warn("the status of quotas cannot be written", {{"error", done.error().message}});
    }
  }
  reconcilers::quota_enforcement enforcement() {
    if (!extender_)
      return {false, "ExtenderOff",
              "no one asks about this quota before a pod is bound, because the scheduler extender is off. "
              "docs/scheduling.md, \"Switch it on\", says how"};
    const auto* rules = stores_.compiled_rules.find(api::compiled_rules::only());
    if (dedicated_.sends().value_or(rules && rules->sends_pods()))
      return {true, std::string(api::names::own_scheduler_asks),
              "pods that ask for cards go to the operator's scheduler"};
    const auto on_control_plane = schedulers().state;
    if (extender_->asked() || (on_control_plane && on_control_plane->status == "True"))
      return {true, std::string(reconcilers::scheduler_asks),
              "a kube-scheduler asks the operator about each pod that it places; a pod that names another scheduler is "
              "counted and not refused"};
    return {
        false, "NoSchedulerAsks",
        "no kube-scheduler has asked the operator since it started. Set spec.scheduler.mode of AcceleratorPolicy "
        "default; for a kube-scheduler that was set up by hand, quartermaster verify --scheduler proves that it asks",
        controller::boot_now() - led_since_ < patience_with_schedulers};
  }

  reconcilers::extender::account::stores stores_of_account() {
    return {stores_.pods,   stores_.nodes,      stores_.policies,         stores_.compiled_rules,
            stores_.quotas, stores_.old_quotas, stores_.accelerator_nodes};
  }
  void add_extender() {
    extender_ = std::make_unique<extender>(
        extender::dependencies{
            loop_, metrics_, serving_, running_, client_, stores_of_account(), account_,
            [this] { return elector_.remaining_confirmed(); }, elector_.identity(), events_, stores_.deployments,
            stores_.control_plane_rows, stores_.client_secret, [this] { report(); },
            [this] { governing_.add_after({{}, std::string(api::names::policy)}, soon, priority()); }},
        options_);
    extender_->join(manager_, caches_, options_.ns);
  }

  void add_leadership() {
    manager_.set_leadership(controller::elector_leadership(elector_));
    manager_.on_leading([this] { loop_.spawn("leader-label", controller::mark_leader(client_, pod_)); });
    if (!given_policy_.is_null())
      manager_.on_leading([this] { loop_.spawn("policy", keep_policy(client_, given_policy_)); });
    manager_.before_release([this] { return controller::unmark_leader(client_, pod_); });
  }

  std::vector<controller::condition> conditions() {
    std::vector<controller::condition> out;
    if (auto condition = resource_rules_.state()) out.push_back(std::move(*condition));
    if (auto condition = schedulers().state) out.push_back(std::move(*condition));
    if (auto condition = runtime_fixer_.state()) out.push_back(std::move(*condition));
    if (!extender_) return out;
    if (auto condition = extender_->state()) out.push_back(std::move(*condition));
    out.push_back(extender_->withdrawals());
    return out;
  }
  /// The kube-schedulers of the control-plane nodes, and the one next to them: of two that are there during a change
  /// the policy's own says how it is.
  control_plane_status schedulers() {
    control_plane_facts known;
    if (const auto* rules = stores_.policies.find(reconcilers::policy_key)) {
      known.wanted = asks_for_static_pod(rules);
      known.generation = rules->generation;
    }
    known.config_map = stores_.control_plane_rows.find({options_.ns, agent::static_pod::static_pod_name});
    for (const auto& node : stores_.nodes.all()) {
      if (is_control_plane_node(node)) known.control_plane_nodes.insert(node.key.name);
    }
    if (known.config_map) {
      for (const auto& [node, row] : known.config_map->data) {
        if (stores_.nodes.find({{}, std::string(node)})) known.nodes.emplace(node);
      }
    }
    auto out = status_of(known);
    control_plane_nodes_.set(out);
    const auto rows = dedicated_.rows();
    if (rows) out.rows.insert(out.rows.begin(), rows->begin(), rows->end());
    if (auto condition = dedicated_.state(); condition && !known.wanted) out.state = std::move(condition);
    return out;
  }
  std::optional<std::vector<reconcilers::scheduler_row>> scheduler_rows() {
    if (!dedicated_.rows() || !stores_.control_plane_rows.synced() || !stores_.nodes.synced()) return std::nullopt;
    return schedulers().rows;
  }
  bool serves_extender() const { return !options_.extender_address.empty(); }
  void isolate() {
    for (const auto& node : enrolment_.isolation_changed()) enrolling_.add(node, priority());
  }
  void report() { governing_.add({{}, std::string(api::names::policy)}); }

  /// What is found at the start waits behind what people change meanwhile.
  int priority() const { return manager_.leading() ? 10 : 0; }

  controller_options options_;
  nlohmann::json given_policy_;  ///< of --policy; null: none
  controller::milliseconds led_since_{};
  int rc_ = 0;
  bool managing_ = false;
  bool server_fills_ = true;  ///< pods, by a policy

  // The ground: metrics, the loop, the way to the API server. `reading_` may be used by every replica, `client_` writes
  // and is fenced.
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

  // What we know.
  stores stores_;

  // Who holds what, and since when.
  reconcilers::extender::account account_{stores_of_account(), metrics_};
  reconcilers::usage::recorder recorder_{
      {stores_.pods, stores_.nodes, stores_.accelerator_nodes, stores_.name_spaces, stores_.policies, account_,
       [this] { return clock_.now(controller::boot_now()); }, [this] { return manager_.watching("pods"); }}};

  // What we do about it.
  controller::runner_metrics running_{metrics_};
  control_plane_metric control_plane_nodes_{metrics_};
  reconcilers::policy policy_{{stores_.policies,
                               stores_.nodes,
                               {stores_.daemon_sets,
                                stores_.services,
                                stores_.service_accounts,
                                stores_.config_maps,
                                {&stores_.declared_alauda, &stores_.declared_cpaas, &stores_.device_configs}}},
                              client_,
                              events_,
                              {.ns = options_.ns,
                               .own_image = options_.image,
                               .declarations = options_.declarations,
                               .conditions = [this] { return conditions(); },
                               .rollout = [this](const std::string& module) { return rollouts_.look(module); },
                               .schedulers = [this] { return scheduler_rows(); },
                               .image_registry = options_.image_registry}};
  reconcilers::enrolment enrolment_{{stores_.policies, stores_.nodes, stores_.pods, stores_.accelerator_nodes},
                                    client_,
                                    events_,
                                    {.ns = options_.ns,
                                     .wake = [this](const kube::object_key& node) { enrolling_.add(node); },
                                     .isolates = [this] { return dedicated_.isolates(); }}};
  reconcilers::card_restore restore_{stores_.nodes, stores_.accelerator_nodes, client_, events_};
  reconcilers::container_runtime::runtime_fixer runtime_fixer_{
      {stores_.policies, stores_.nodes, stores_.pods, stores_.accelerator_nodes},
      client_,
      events_,
      {.ns = options_.ns, .own_image = options_.image, .on_state = [this] { report(); }}};
  reconcilers::report_age report_age_{{stores_.nodes, stores_.pods, stores_.accelerator_nodes},
                                      client_,
                                      events_,
                                      {.ns = options_.ns, .grace = std::chrono::seconds(options_.agent_grace_seconds)}};
  reconcilers::card_labeler labeler_{stores_.nodes, stores_.accelerator_nodes, stores_.policies, client_};
  control_plane_agents control_plane_agents_{{stores_.nodes, stores_.policies, stores_.control_plane_rows},
                                             {options_.ns, std::string(agent::static_pod::static_pod_name)},
                                             client_};
  reconcilers::rollouts rollouts_{{stores_.policies, stores_.daemon_sets, stores_.nodes, stores_.pods,
                                   stores_.accelerator_nodes, enrolment_.pods()},
                                  client_,
                                  events_,
                                  {.ns = options_.ns, .on_news = [this] { report(); }}};
  reconcilers::custom_resource custom_resource_{
      {&stores_.declared_alauda, &stores_.declared_cpaas, &stores_.device_configs},
      client_,
      events_,
      judged_in(options_.declarations),
      &stores_.runtime_classes,
      &stores_.compiled_rules};
  reconcilers::resource_rules resource_rules_{{stores_.policies, stores_.nodes, stores_.compiled_rules},
                                              custom_resource_,
                                              client_,
                                              {.filled_by_policies = [this] { return server_fills_; },
                                               .on_state = [this] { report(); },
                                               .sends = [this] { return dedicated_.sends(); }}};
  reconcilers::own_scheduler::scheduler dedicated_{{stores_.policies,
                                                    stores_.compiled_rules,
                                                    stores_.nodes,
                                                    stores_.pods,
                                                    stores_.client_secret,
                                                    stores_.deployments,
                                                    {stores_.daemon_sets,
                                                     stores_.services,
                                                     stores_.service_accounts,
                                                     stores_.config_maps,
                                                     {},
                                                     &stores_.deployments}},
                                                   client_,
                                                   events_,
                                                   metrics_,
                                                   {.ns = options_.ns,
                                                    .extender = serves_extender(),
                                                    .on_state = [this] { report(); },
                                                    .on_sends = [this] { compiling_.add(api::compiled_rules::only()); },
                                                    .on_isolates = [this] { isolate(); },
                                                    .image_registry = options_.image_registry}};
  reconcilers::usage::keeper usage_{
      client_, recorder_, metrics_, {.period = std::chrono::seconds(options_.usage_checkpoint_seconds)}};
  controller::runner governing_{loop_, policy_, running_};
  controller::runner enrolling_{loop_, enrolment_, running_, at_once(4)};
  controller::runner restoring_{loop_, restore_, running_};
  controller::runner fixing_{loop_, runtime_fixer_, running_, at_once(1)};
  controller::runner ageing_{loop_, report_age_, running_, at_once(1)};
  controller::runner labeling_{loop_, labeler_, running_};
  controller::runner marking_{loop_, control_plane_agents_, running_};
  controller::runner rolling_{loop_, rollouts_, running_, at_once(1)};
  controller::runner judging_{loop_, custom_resource_, running_};
  controller::runner compiling_{loop_, resource_rules_, running_, at_once(1)};
  controller::runner scheduling_{loop_, dedicated_, running_, at_once(1)};

  // How it is seen and started.
  controller::http_server_metrics serving_{metrics_};
  controller::http_server server_{loop_, serving_, front(options_)};
  std::unique_ptr<controller::metrics_access> metrics_access_;  ///< null without --metrics-authentication
  std::unique_ptr<webhook> webhook_;                            ///< null without --webhook-address
  std::unique_ptr<extender> extender_;                          ///< null without --extender-address
  std::unique_ptr<reconcilers::quota_status> quota_status_;
  controller::manager manager_{loop_, health_, metrics_};
  caches caches_{manager_, seen_, [this](const kube::error& error) { say_trouble(error); }};
};

/// glibc raises its threshold for returning memory with every large block that is freed; one declaration of a mebibyte
/// would then stay with us for good.
void give_memory_back() {
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 512 << 10);
}

int complain(std::string_view message, int rc) {
  std::cerr << "quartermaster: " << message << "\n";
  return rc;
}

}  // namespace

int run_controller(controller_options options) {
  give_memory_back();
  log::level level = log::level::info;
  log::parse_level(options.log_level, level);
  log::configure(options.log_format == "json" ? log::format::json : log::format::text, level);
  if (const auto problem = lease_timing(options).problem(); !problem.empty()) return complain(problem, 2);
  if (const auto problem = address_problem("--metrics-address", options.metrics_address); !problem.empty())
    return complain(problem, 2);
  if (const auto problem = webhook_problem(options); !problem.empty()) return complain(problem, 2);
  if (const auto problem = extender_problem(options); !problem.empty()) return complain(problem, 2);

  nlohmann::json policy;
  if (!options.policy.empty()) {
    auto read = read_policy_file(options.policy);
    if (!read) return complain(read.error().message, 2);
    policy = std::move(*read);
  }

  kube::config_options config_options;
  config_options.kubeconfig = options.kubeconfig;
  config_options.context = options.context;
  auto cluster = kube::load_config(config_options);
  if (!cluster) return complain(cluster.error().message, 1);
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
