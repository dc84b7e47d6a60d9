#include "cli/controller/webhook.hpp"

#include "controller/address.hpp"
#include "controller/log.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;

controller::http_server_options listening(const controller_options& options) {
  controller::http_server_options out;
  out.name = "webhook";
  out.address = options.webhook_address;
  out.tls = controller::certificate_files{{}, {}, options.webhook_client_ca};
  // Anyone may send here, and reviews are read in milliseconds. One body of the largest size whose length is not said
  // has room: its string takes up to twice what is in it.
  out.bodies_limit = 24u << 20;
  return out;
}

reconcilers::webhook_settings told(const controller_options& options) {
  reconcilers::webhook_settings out;
  out.ns = options.ns;
  out.url = options.webhook_url;
  return out;
}

}  // namespace

std::string webhook_problem(const controller_options& options) {
  const bool listens = !options.webhook_address.empty();
  if (auto wrong = address_problem("--webhook-address", options.webhook_address); !wrong.empty()) return wrong;
  if (!listens && !options.webhook_url.empty()) return "--webhook-url needs --webhook-address, for example :8443";
  const bool usable = reconcilers::host_of(options.webhook_url).has_value() && !options.webhook_url.ends_with('/');
  if (!options.webhook_url.empty() && !usable)
    return "--webhook-url is \"" + options.webhook_url +
           "\"; allowed is https://host[:port], without a slash at the end";
  return {};
}

webhook::webhook(dependencies dependencies, const controller_options& options)
    : server_(dependencies.loop, dependencies.serving, listening(options)),
      answers_(dependencies.policies, dependencies.rules, options.ns, dependencies.metrics, &dependencies.nodes),
      config_({secrets, mutating}, dependencies.client, told(options)),
      certificate_({secrets, mutating}, told(options), server_),
      keeping_(dependencies.loop, config_, dependencies.running) {
  answers_.add_routes(server_);
  watch(secrets);
  watch(mutating);
}

template <class T>
void webhook::watch(controller::store<T>& store) {
  store.observe([this](const T* before, const T* after) {
    certificate_.poke();
    for (const auto& key : config_.affected_by(before, after)) keeping_.add(key);
  });
}

void webhook::join(controller::manager& manager, controller::health& health, caches& caches, const std::string& ns) {
  caches.add(only(reconcilers::names::webhook, ns), secrets);
  caches.add(only(reconcilers::names::webhook_configuration), mutating);
  manager.add_server(server_);
  manager.add_runner(keeping_);
  manager.add_always("webhook-certificate", [this] { return certificate_.run(); });
  health.check("webhook", [this] { return certificate_.problem(); });
  // Callers find us through a Service, which hears of our going a moment later.
  manager.set_drain_delay(3s);
}

kube::task<bool> server_fills_pods(kube::client& api) {
  const auto answer = co_await api.raw("/apis/admissionregistration.k8s.io/v1");
  if (!answer) co_return std::unexpected(answer.error());
  const bool fills = answer->status != 200 || reconcilers::fills_pods(answer->body);
  controller::log::info("admission", {{"filled_by", fills ? "policies" : "webhook"}});
  co_return fills;
}

}  // namespace cli
