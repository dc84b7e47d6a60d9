#include "cli/controller/webhook.hpp"

#include "controller/address.hpp"
#include "controller/log.hpp"
#include "text/text.hpp"

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

text::phrase webhook_problem(const controller_options& options) {
  const bool listens = !options.webhook_address.empty();
  if (auto wrong = address_problem("--webhook-address", options.webhook_address); !wrong.empty()) return wrong;
  if (!listens && !options.webhook_url.empty())
    return {"usage.requires", {{"name", "--webhook-url"}, {"value", "--webhook-address"}}};
  const bool usable = reconcilers::host_of(options.webhook_url).has_value() && !options.webhook_url.ends_with('/');
  if (!options.webhook_url.empty() && !usable)
    return {"usage.not_a_webhook_url", {{"name", "--webhook-url"}, {"value", text::shown(options.webhook_url, 300)}}};
  return {};
}

webhook::webhook(const ground& ground)
    : ground_(ground),
      server_(ground.loop, ground.serving, listening(ground.options)),
      answers_(ground.stores.policies, ground.stores.compiled_rules, ground.options.ns, ground.metrics,
               &ground.stores.nodes),
      config_({secrets_, mutating_}, ground.client, told(ground.options)),
      certificate_({secrets_, mutating_}, told(ground.options), server_) {
  answers_.add_routes(server_);
}

void webhook::join(controller::parts& parts) {
  auto& manager = parts.phases();
  ground_.caches.add(only(reconcilers::names::webhook, ground_.options.ns), secrets_);
  ground_.caches.add(only(reconcilers::names::webhook_configuration), mutating_);
  secrets_.observe([this](const auto*, const auto*) { certificate_.poke(); });
  mutating_.observe([this](const auto*, const auto*) { certificate_.poke(); });
  manager.add_server(server_);
  parts.run(config_).wake(secrets_, mutating_);
  manager.add_always("webhook-certificate", [this] { return certificate_.run(); });
  ground_.health.check("webhook", [this] { return certificate_.problem(); });
  // Callers find us through a Service. kube-proxy of a busy node hears of our going only seconds later; it was seen to
  // take more than three.
  manager.set_drain_delay(8s);
}

kube::task<bool> server_fills_pods(kube::client& api) {
  const auto answer = co_await api.raw("/apis/admissionregistration.k8s.io/v1");
  if (!answer) co_return std::unexpected(answer.error());
  const bool fills = answer->status != 200 || reconcilers::fills_pods(answer->body);
  controller::log::info("admission", {{"filled_by", fills ? "policies" : "webhook"}});
  co_return fills;
}

}  // namespace cli
