#include "agent/cards/driver.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/cards/status.hpp"
#include "agent/cards/xid.hpp"
#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace agent::cards {
namespace {

namespace log = controller::log;
using controller::milliseconds;
using nlohmann::json;

constexpr milliseconds first_retry{1'000}, last_retry{30'000}, between_writes{1'000}, facts_period{300'000};

controller::event_settings events_as(const std::string& node) {
  controller::event_settings out;
  out.reporting_instance = node;
  return out;
}

watcher_options watcher_of(const options& options) {
  watcher_options out;
  out.root = options.driver_root;
  out.period = std::chrono::seconds(options.period_seconds);
  return out;
}

}  // namespace

std::string boot_of_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string out;
  std::getline(file, out);
  return out;
}

driver::driver(cards::options options, kube::cluster_config cluster)
    : options_(std::move(options)),
      boot_(boot_of_machine()),
      wire_(loop_.executor(), std::move(cluster)),
      events_(api_, events_as(options_.node), metrics_) {
  nodes_.observe([this](const facts::reported_node*, const facts::reported_node* after) {
    // Before our first report: what an earlier agent saw since the machine was started.
    if (after && !recalled_ && after->boot == boot_) history_.recall(cards_in(*after));
    recalled_ = recalled_ || after;
    has_news_ = true;
    changed_->notify_all();
  });
}

void driver::run() {
  loop_.stop_on_signals([this] { loop_.quit(); });
  kube::watch_settings settings;
  settings.field_selector = "metadata.name=" + options_.node;
  loop_.spawn_essential("acceleratornodes",
                        controller::reflect<facts::reported_node>(wire_, settings, nodes_, reflector_metrics_));
  loop_.spawn_essential("events", events_.run());
  loop_.spawn_essential("cards", work());
  log::info("starting", {{"version", QUARTERMASTER_VERSION}, {"node", options_.node}});
  const auto take_facts = [this](facts::machine_facts seen) {
    preflight_.take(std::move(seen));
    has_news_ = true;
    changed_->notify_all();
  };
  reader_ = std::make_unique<facts::facts_reader>(
      facts::folders{"/", options_.node_root}, facts_period, [this, take_facts](facts::machine_facts seen) {
        boost::asio::post(loop_.context(),
                          [take_facts, seen = std::move(seen)]() mutable { take_facts(std::move(seen)); });
      });
  watcher_ = std::make_unique<watcher>(watcher_of(options_), [this](sighting seen) {
    boost::asio::post(loop_.context(), [this, seen = std::move(seen)]() mutable { take(std::move(seen)); });
  });
  loop_.run();
  watcher_.reset();
  reader_.reset();
  log::flush();
}

void driver::take(sighting sighting) {
  if (sighting.driver_loaded) history_.forget_defects();
  if (sighting.event) {
    const auto& [card, xid] = *sighting.event;
    const auto note = history_.see(card, xid);
    if (note.withdraws || class_of(xid) == xid_class::notice)
      log::warn("the driver reports an XID", {{"card", card}, {"xid", std::to_string(xid)}, {"name", name_of(xid)}});
  }
  if (sighting.now) {
    if (!sighting.now->problem.empty()) log::warn("no cards", {{"problem", sighting.now->problem}});
    seen_ = std::move(sighting.now);
    reader_->read_again();                              // device nodes come and go with cards
    history_.complete(*seen_, controller::boot_now());  // every look counts, also those that are not reported
  }
  has_news_ = true;
  changed_->notify_all();
}

boost::asio::awaitable<void> driver::work() {
  auto pause = first_retry;
  std::string trouble;
  for (;;) {
    has_news_ = false;
    const auto done = co_await write();
    if (!done) {
      if (done.error().message != trouble) log::warn("cannot report", {{"error", done.error().message}});
      trouble = done.error().message;
      const bool went_on = co_await controller::sleep_for(pause);
      if (!went_on) co_return;
      pause = std::min(2 * pause, last_retry);
      continue;
    }
    trouble.clear();
    pause = first_retry;
    // A card or driver that comes and goes is written about once a second, and not more often.
    const bool went_on = co_await controller::sleep_for(*done ? between_writes : milliseconds(0));
    if (!went_on) co_return;
    if (has_news_) continue;
    const auto later = controller::boot_now() + std::chrono::hours(1);
    const auto due = std::min(history_.due().value_or(later), preflight_.due().value_or(later));
    const auto end = std::chrono::steady_clock::now() + (due - controller::boot_now());
    if (co_await kube::wait_list::wait(changed_, end) == kube::woken::by_cancellation) co_return;
  }
}

kube::task<bool> driver::write() {
  const auto cards = co_await write_cards();
  const auto* node = nodes_.synced() ? object() : nullptr;
  const auto preflight = co_await preflight_.write(api_, node, seen_ ? &*seen_ : nullptr);
  if (cards && !preflight) co_return std::unexpected(preflight.error());
  co_return cards;
}

kube::task<bool> driver::write_cards() {
  // An object that has just been made may not be shown yet: then the next event of the watch comes here again.
  const auto* node = object();
  if (!seen_ || !node || !nodes_.synced()) co_return false;
  const auto report = history_.complete(*seen_, controller::boot_now());
  if (says(*node, report, boot_)) co_return false;
  const auto& type = kube::resources::accelerator_nodes;
  json body = {{"apiVersion", type.api_version()},
               {"kind", type.kind},
               {"metadata", {{"name", options_.node}, {"uid", node->id.to_string()}}}};
  body["status"] = status_of(report, boot_, *node, controller::rfc3339_seconds(std::chrono::system_clock::now()));
  kube::write_options options;
  options.field_manager = api::names::agent_field_owner;
  options.force = true;
  const kube::object_key key{{}, options_.node};
  const auto version = node->resource_version;
  auto answer = co_await api_.apply_status(type, key, body, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  log::info("reported", {{"cards", std::to_string(report.cards.size())}, {"driver", report.driver}});
  tell(report);
  // The watch shows it in a moment; until then we would write it again.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (node = object(); node && node->resource_version == version; node = object())
    if (co_await kube::wait_list::wait(changed_, end) != kube::woken::by_event) break;
  co_return true;
}

void driver::tell(const inventory& report) {
  controller::object_reference node;
  node.api_version = "v1";
  node.kind = "Node";
  node.key.name = node.uid = options_.node;  // as the kubelet's events on its node
  std::erase_if(defects_, [&](const auto& entry) {
    return std::ranges::find(report.cards, entry.first, &card::uuid) == report.cards.end();
  });
  for (const auto& card : report.cards) {
    auto& before = defects_[card.uuid];
    if (before == card.defect) continue;
    const bool is_sick = !card.defect.empty();
    events_.record(node, is_sick ? controller::event_type::warning : controller::event_type::normal,
                   is_sick ? "CardUnhealthy" : "CardHealthy", "Report",
                   "card " + card.uuid + " (" + card.model + ")" +
                       (is_sick ? " gets no new pods: " + card.defect : " is in order again"));
    before = card.defect;
  }
}

}  // namespace agent::cards
