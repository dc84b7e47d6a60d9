#include "agent/exporter/exporter.hpp"

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace agent::exporter {
namespace {

namespace log = controller::log;
using controller::milliseconds;

constexpr milliseconds kubelet_deadline{5'000};

controller::http_server_options listening(const metrics_options& options) {
  controller::http_server_options out("metrics", ":" + std::to_string(options.port));
  out.max_connections = 32;
  if (options.authentication) out.tls.emplace();
  return out;
}

}  // namespace

exporter::exporter(controller::loop& loop, controller::registry& metrics, metrics_options options, std::string node,
                   agent_facts facts, milliseconds period)
    : loop_(loop),
      options_(std::move(options)),
      node_(std::move(node)),
      facts_(std::move(facts)),
      period_(period),
      metrics_(metrics),
      serving_(metrics),
      server_(loop, serving_, listening(options_)) {
  if (!options_.pod_resources.empty())
    kubelet_answers_ = &metrics.make_gauge("quartermaster_exporter_kubelet_answers",
                                           "1 while the kubelet says which devices its containers have, 0 otherwise.");
  controller::add_process_metrics(metrics);
  metrics.collect([this](controller::metric_text& text) { collect(text); });
}

kube::result<void> exporter::start(kube::transport& transport, controller::reflector_metrics& metrics) {
  access_ = add_metrics_route(server_, metrics_, options_.authentication ? &transport : nullptr);
  if (auto done = server_.start(); !done) return done;
  kube::watch_settings settings;
  settings.field_selector = "spec.nodeName=" + node_;
  controller::reflector_options options;
  options.state = &pods_state_;
  loop_.spawn_essential("pods", controller::reflect<pod>(transport, settings, pods_, metrics, options));
  if (!options_.pod_resources.empty()) loop_.spawn("pod-resources", ask_kubelet());
  return {};
}

void exporter::take(std::vector<cards::card_usage> usage) {
  usage_ = std::move(usage);
  read_at_ = controller::boot_now();
}

void exporter::count_xid(const std::string& card, std::uint64_t xid) {
  constexpr std::size_t most = 1'000;
  const std::pair key(card, xid);
  if (xids_.size() < most || xids_.contains(key)) ++xids_[key];
}

boost::asio::awaitable<void> exporter::ask_kubelet() {
  std::string trouble;
  for (;;) {
    auto devices = co_await kubelet::list_devices(loop_.executor(), options_.pod_resources, kubelet_deadline);
    kubelet_answers_->set(devices ? 1 : 0);
    if (devices) {
      trouble.clear();
      devices_ = std::move(*devices);
    } else if (devices.error().code == kube::errc::cancelled) {
      co_return;
    } else if (devices.error().message != trouble) {
      trouble = devices.error().message;
      log::warn("the kubelet does not say who has which card", {{"error", trouble}});
    }
    const bool went_on = co_await controller::sleep_for(period_);
    if (!went_on) co_return;
  }
}

page exporter::now() const {
  page out;
  out.node = node_;
  out.mode = facts_.mode();
  out.report = facts_.report();
  out.max_share_series = options_.max_series;
  out.xids = xids_;
  if (facts_.preflight) out.preflight = facts_.preflight();
  // A driver that hangs gives no new readings, and old ones are not shown as new.
  if (read_at_.count() == 0 || controller::boot_now() - read_at_ > 3 * period_) return out;
  out.usage = usage_;
  std::vector<const pod*> pods;
  for (const auto& pod : pods_.all()) pods.push_back(&pod);
  out.parts = attribute(out.usage, devices_, pods_.synced() ? &pods : nullptr);
  return out;
}

void exporter::collect(controller::metric_text& text) const {
  text.family("quartermaster_exporter_reading_age_seconds", "Since the cards were read last.", "gauge");
  if (read_at_.count() != 0) {
    const auto age = std::chrono::duration<double>(controller::boot_now() - read_at_);
    text.sample("quartermaster_exporter_reading_age_seconds", {}, age.count());
  }
  write(now(), text);
}

}  // namespace agent::exporter
