#include "cli/controller/extender.hpp"

#include "agent/static_pod/health.hpp"
#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;

controller::http_server_options listening(const controller_options& options,
                                          std::function<void(const controller::x509::info&)> on_caller) {
  controller::http_server_options out;
  out.on_caller = std::move(on_caller);
  out.name = "extender";
  out.address = options.extender_address;
  out.tls = controller::certificate_files{options.extender_cert, options.extender_key, options.extender_client_ca};
  // Space for one body with whole nodes at a time, plus all lists of node names that a scheduler sends at once.
  out.bodies_limit = reconcilers::extender::max_filter_body + (16u << 20);
  out.small_body = 1u << 20;
  return out;
}

controller::http_server_options plainly(const controller_options& options) {
  controller::http_server_options out;
  out.name = "predicates";
  out.address = options.predicates_address;
  out.bodies_limit = 2 * reconcilers::extender::max_predicates_body;
  out.small_body = 256u << 10;
  out.max_connections = 32;
  return out;
}

}  // namespace

text::phrase extender_problem(const controller_options& options) {
  const bool listens = !options.extender_address.empty();
  for (const auto& [flag, address] : {std::pair("--extender-address", &options.extender_address),
                                      std::pair("--predicates-address", &options.predicates_address)})
    if (auto wrong = address_problem(flag, *address); !wrong.empty()) return wrong;
  const bool files =
      !options.extender_cert.empty() && !options.extender_key.empty() && !options.extender_client_ca.empty();
  const bool any =
      !options.extender_cert.empty() || !options.extender_key.empty() || !options.extender_client_ca.empty();
  constexpr auto all_files = "--extender-cert-file, --extender-key-file, --extender-client-ca";
  if (listens && any && !files) return {"usage.all_or_none", {{"value", all_files}}};
  if (listens || (options.predicates_address.empty() && !any)) return {};
  return {"usage.requires", {{"name", any ? all_files : "--predicates-address"}, {"value", "--extender-address"}}};
}

extender::extender(const ground& ground, reconcilers::extender::account& account, settings settings)
    : ground_(ground),
      book_(account),
      sick_cards_({ground.stores.accelerator_nodes, ground.stores.nodes, ground.stores.pods, book_, ground.events}),
      earlier_({ground.loop,
                ground.client,
                ground.stores.pods,
                [this](const kube::pod& pod) { return reconcilers::extender::asks(pod, book_.keys()); },
                settings.identity,
                {ground.options.ns, ground.options.pod_name}}),
      binds_(
          {ground.loop, ground.client, ground.stores.pods, ground.stores.nodes, book_, earlier_, settings.lease_left},
          ground.metrics),
      waiting_({ground.client, ground.stores.pods, ground.stores.nodes, book_, ground.events}, ground.metrics),
      front_({book_, ground.client, ground.stores.pods, binds_, [this] { return leading_; },
              [this](const kube::pod& pod) { waiting_.note(pod); }},
             ground.metrics),
      predicates_({ground.client, ground.stores.pods, book_, earlier_,
                   [this, left = settings.lease_left] { return leading_ && left() > controller::milliseconds(0); },
                   [this](const kube::pod& pod) { waiting_.note(pod); }},
                  ground.metrics),
      callers_(ground.stores.policies, ground.events, ground.metrics, {.on_state = settings.on_state}),
      server_(ground.loop, ground.serving,
              listening(ground.options, [this](const controller::x509::info& leaf) { callers_.note(leaf); })) {
  book_.on_room([this] { waiting_.room(); });
  book_.on_brake(settings.on_withdrawals);
  if (ground.options.extender_cert.empty()) issue();
  front_.add_routes(server_);
  if (ground.options.predicates_address.empty()) return;
  plain_ = std::make_unique<controller::http_server>(ground.loop, ground.serving, plainly(ground.options));
  predicates_.add_routes(*plain_);
}

/// The leader issues and renews the certificates. Every replica serves the stored certificate.
void extender::issue() {
  certificates_ = std::make_unique<reconcilers::extender_certificates>(
      reconcilers::extender_certificates::stores{{authority_secret_, server_secret_, ground_.stores.client_secret},
                                                 ground_.stores.policies,
                                                 ground_.stores.deployments},
      ground_.client, ground_.events, ground_.metrics,
      reconcilers::extender_certificates::settings{
          .ns = ground_.options.ns, .control_plane_nodes = [this] { return known_control_plane_nodes(); }});
  certificate_ = std::make_unique<reconcilers::extender_certificate>(server_secret_, server_);
}

void extender::join(controller::parts& parts) {
  auto& stores = ground_.stores;
  auto& manager = parts.phases();
  ground_.caches.add(only(reconcilers::names::extender_authority_secret, ground_.options.ns), authority_secret_);
  ground_.caches.add(only(reconcilers::names::extender_server_secret, ground_.options.ns), server_secret_);
  stores.old_quotas.observe([this](const kube::config_map*, const kube::config_map*) { tell_of_quotas(); });
  manager.add_server(server_);
  if (certificates_)
    parts.run(*certificates_)
        .wake(authority_secret_, server_secret_, stores.client_secret, stores.policies, stores.control_plane_rows,
              stores.deployments);
  if (plain_) manager.add_server(*plain_);
  manager.on_leading([this] {
    leading_ = true;
    tell_of_quotas();
    sick_cards_.tell_again();
  });
  parts.lead("extender", [this] { return lead(); });
  parts.lead("waiting_pods", [this] { return care(); });
}

/// Schedulers whose node exists; a deleted control-plane node leaves its row behind. Empty: stores not synced yet.
std::optional<std::vector<reconcilers::extender_scheduler>> extender::known_control_plane_nodes() const {
  if (!ground_.stores.control_plane_rows.synced() || !ground_.stores.nodes.synced()) return std::nullopt;
  std::vector<reconcilers::extender_scheduler> out;
  for (const auto& rows : ground_.stores.control_plane_rows.all()) {
    for (const auto& [node, text] : rows.data) {
      if (!ground_.stores.nodes.find({{}, std::string(node)})) continue;
      const auto row = agent::static_pod::read_row(text);
      out.push_back({std::string(node), row.is, row.certificates});
    }
  }
  return out;
}

void extender::tell_of_quotas() {
  if (!leading_ || book_.trouble().empty()) return;
  for (const auto& entry : ground_.stores.old_quotas.all())
    ground_.events.record({kube::config_map::of(), entry}, controller::event_type::warning, "QuotaUnreadable", "Read",
                          book_.trouble() + ". The limits read before stay in force until this is fixed.");
}

controller::condition extender::withdrawals() const {
  const auto* rules = ground_.stores.policies.find(reconcilers::policy_key);
  return reconcilers::extender::held_back_condition(book_.brake(), rules ? rules->generation : 0);
}

kube::task<void> extender::lead() {
  co_await earlier_.close();
  co_await earlier_.catch_up();
  for (;;) {
    const bool slept = co_await controller::sleep_for(5s);
    if (!slept) co_return kube::result<void>();
    callers_.look();
    const auto now = controller::boot_now();
    binds_.look_after(now);
    co_await predicates_.look_after(now);
  }
}

/// Tells waiting pods why they wait. When capacity is given back, touches pods that fit so that the scheduler retries.
kube::task<void> extender::care() {
  for (;;) {
    const bool slept = co_await controller::sleep_for(200ms);
    if (!slept) co_return kube::result<void>();
    sick_cards_.turn(controller::boot_now());
    co_await waiting_.turn(controller::boot_now());
  }
}

}  // namespace cli
