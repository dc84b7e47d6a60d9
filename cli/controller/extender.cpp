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

std::string extender_problem(const controller_options& options) {
  const bool listens = !options.extender_address.empty();
  for (const auto& [flag, address] : {std::pair("--extender-address", &options.extender_address),
                                      std::pair("--predicates-address", &options.predicates_address)})
    if (auto wrong = address_problem(flag, *address); !wrong.empty()) return wrong;
  const bool files =
      !options.extender_cert.empty() && !options.extender_key.empty() && !options.extender_client_ca.empty();
  const bool any =
      !options.extender_cert.empty() || !options.extender_key.empty() || !options.extender_client_ca.empty();
  if (listens && any && !files)
    return "give --extender-cert-file, --extender-key-file and --extender-client-ca together, or omit all three: then "
           "the operator issues the certificates";
  if (!listens && !options.predicates_address.empty()) return "--predicates-address needs --extender-address";
  if (!listens && any)
    return "--extender-cert-file, --extender-key-file and --extender-client-ca need --extender-address";
  return {};
}

extender::extender(dependencies dependencies, const controller_options& options)
    : loop_(dependencies.loop),
      nodes_(dependencies.stores.nodes),
      old_quotas_(dependencies.stores.old_quotas),
      control_plane_rows_(dependencies.control_plane_rows),
      policies_(dependencies.stores.policies),
      events_(dependencies.events),
      book_(dependencies.account),
      sick_cards_(
          {dependencies.stores.cards, dependencies.stores.nodes, dependencies.stores.pods, book_, dependencies.events}),
      earlier_({dependencies.loop,
                dependencies.client,
                dependencies.stores.pods,
                [this](const kube::pod& pod) { return reconcilers::extender::asks(pod, book_.keys()); },
                dependencies.identity,
                {options.ns, options.pod_name}}),
      binds_({dependencies.loop, dependencies.client, dependencies.stores.pods, dependencies.stores.nodes, book_,
              earlier_, dependencies.lease_left},
             dependencies.metrics),
      waiting_({dependencies.client, dependencies.stores.pods, dependencies.stores.nodes, book_, dependencies.events},
               dependencies.metrics),
      front_({book_, dependencies.client, dependencies.stores.pods, binds_, [this] { return leading_; },
              [this](const kube::pod& pod) { waiting_.note(pod); }},
             dependencies.metrics),
      predicates_({dependencies.client, dependencies.stores.pods, book_, earlier_,
                   [this, left = dependencies.lease_left] { return leading_ && left() > controller::milliseconds(0); },
                   [this](const kube::pod& pod) { waiting_.note(pod); }},
                  dependencies.metrics),
      callers_(dependencies.stores.policies, dependencies.events, dependencies.metrics,
               {.on_state = dependencies.on_state}),
      server_(dependencies.loop, dependencies.serving,
              listening(options, [this](const controller::x509::info& leaf) { callers_.note(leaf); })) {
  book_.on_room([this] { waiting_.room(); });
  book_.on_brake(dependencies.on_withdrawals);
  dependencies.stores.old_quotas.observe(
      [this](const kube::config_map*, const kube::config_map*) { tell_of_quotas(); });
  if (options.extender_cert.empty()) issue(dependencies, options.ns);
  front_.add_routes(server_);
  if (options.predicates_address.empty()) return;
  plain_ = std::make_unique<controller::http_server>(dependencies.loop, dependencies.serving, plainly(options));
  predicates_.add_routes(*plain_);
}

/// The leader issues and renews the certificates. Every replica serves the stored certificate.
void extender::issue(const dependencies& dependencies, const std::string& ns) {
  certificates_ = std::make_unique<reconcilers::extender_certificates>(
      reconcilers::extender_certificates::stores{{authority_secret, server_secret, dependencies.client_secret},
                                                 dependencies.stores.policies,
                                                 dependencies.deployments},
      dependencies.client, dependencies.events, dependencies.metrics,
      reconcilers::extender_certificates::settings{
          .ns = ns, .control_plane_nodes = [this] { return known_control_plane_nodes(); }});
  certificate_ = std::make_unique<reconcilers::extender_certificate>(server_secret, server_);
  rotating_ = std::make_unique<controller::runner>(dependencies.loop, *certificates_, dependencies.running);
  const auto rotate = [this](const auto* before, const auto* after) {
    for (const auto& key : certificates_->affected_by(before, after)) rotating_->add(key);
  };
  authority_secret.observe(rotate);
  server_secret.observe(rotate);
  dependencies.client_secret.observe(rotate);
  dependencies.stores.policies.observe(rotate);
  dependencies.control_plane_rows.observe(rotate);
  dependencies.deployments.observe(rotate);
}

void extender::join(controller::manager& manager, caches& caches, const std::string& ns) {
  caches.add(only(reconcilers::names::extender_authority_secret, ns), authority_secret);
  caches.add(only(reconcilers::names::extender_server_secret, ns), server_secret);
  manager.add_server(server_);
  if (rotating_) manager.add_runner(*rotating_);
  if (plain_) manager.add_server(*plain_);
  manager.on_leading([this] {
    leading_ = true;
    tell_of_quotas();
    sick_cards_.tell_again();
    loop_.spawn_essential("extender", lead());
    loop_.spawn_essential("waiting_pods", care());
  });
}

/// Schedulers whose node exists; a deleted control-plane node leaves its row behind. Empty: stores not synced yet.
std::optional<std::vector<reconcilers::extender_scheduler>> extender::known_control_plane_nodes() const {
  if (!control_plane_rows_.synced() || !nodes_.synced()) return std::nullopt;
  std::vector<reconcilers::extender_scheduler> out;
  for (const auto& rows : control_plane_rows_.all()) {
    for (const auto& [node, text] : rows.data) {
      if (!nodes_.find({{}, std::string(node)})) continue;
      const auto row = agent::static_pod::read_row(text);
      out.push_back({std::string(node), row.is, row.certificates});
    }
  }
  return out;
}

void extender::tell_of_quotas() {
  if (!leading_ || book_.trouble().empty()) return;
  for (const auto& entry : old_quotas_.all())
    events_.record({kube::config_map::of(), entry}, controller::event_type::warning, "QuotaUnreadable", "Read",
                   book_.trouble() + ". The limits read before stay in force until this is fixed.");
}

controller::condition extender::withdrawals() const {
  const auto* rules = policies_.find(reconcilers::policy_key);
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
