#include "agent/agent.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "agent/cards/status.hpp"
#include "agent/settle.hpp"
#include "api/names.hpp"
#include "api/node_words.hpp"
#include "api/xid.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"
#include "text/list.hpp"

namespace agent {
using namespace cards;

namespace {

namespace log = controller::log;
using controller::milliseconds;
using nlohmann::json;

constexpr milliseconds first_retry{1'000}, last_retry{30'000}, between_writes{1'000}, patience{30'000},
    after_deletion{60'000}, look_again{50}, facts_period{300'000};

/// What is known of the cards while the driver does not come back from a call: nothing.
inventory unanswered() {
  inventory out;
  out.problem = "the NVIDIA driver has not come back from a call for " +
                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
                " s; see dmesg of the node, and restart the machine if it stays so";
  out.hangs = true;
  return out;
}

controller::event_settings events_as(const std::string& node) {
  controller::event_settings out;
  out.reporting_instance = node;
  return out;
}

watcher_options watcher_of(const options& options) {
  watcher_options out;
  out.root = options.driver_root;
  out.period = std::chrono::seconds(options.period_seconds);
  out.reads_usage = options.metrics.port != 0;
  return out;
}

/// Thousands of agents that were refused together do not come back together: half of the pause to one and a half.
milliseconds spread(milliseconds pause) {
  std::random_device random;
  return pause / 2 + milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, pause.count())(random));
}

void write_line(const xid_line& line) {
  log::warn(
      "the driver reports an XID",
      {{"card", line.card}, {"xid", line.numbers()}, {"name", line.names()}, {"count", std::to_string(line.count)}});
}

}  // namespace

std::string boot_of_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string out;
  std::getline(file, out);
  return out;
}

card_agent::card_agent(options options, kube::cluster_config cluster)
    : options_(std::move(options)),
      boot_(boot_of_machine()),
      wire_(loop_.executor(), std::move(cluster)),
      events_(api_, events_as(options_.node), metrics_) {
  nodes_.observe([this](const api::reported_node* before, const api::reported_node* after) {
    // Before our first report: what an earlier agent saw since the machine was started.
    if (after && !recalled_ && after->boot == boot_) history_.recall(cards_in(*after));
    recalled_ = recalled_ || after;
    if (!after) free_at_ = controller::boot_now() + after_deletion;
    if (after) restore(*after);
    if (before && after && before->fix != after->fix && reader_) reader_->read_again();
    has_news_ = true;
    changed_->notify_all();
  });
  if (options_.metrics.port != 0) {
    exporter::agent_facts facts;
    facts.report = [this] { return seen_ ? history_.complete(*seen_, controller::boot_now()) : inventory(); };
    facts.mode = [this] { return object() ? object()->mode.actual_mode : std::string(); };
    facts.preflight = [this] { return preflight_.rows(seen_ ? &*seen_ : nullptr); };
    exporter_ = std::make_unique<exporter::exporter>(loop_, metrics_, options_.metrics, options_.node, facts,
                                                     std::chrono::seconds(options_.period_seconds));
  }
}

kube::result<void> card_agent::run() {
  if (exporter_) {
    if (auto done = exporter_->start(wire_, reflector_metrics_); !done) return done;
  }
  loop_.stop_on_signals([this] { loop_.quit(); });
  kube::watch_settings settings;
  settings.field_selector = "metadata.name=" + options_.node;
  loop_.spawn_essential("acceleratornodes",
                        controller::reflect<api::reported_node>(wire_, settings, nodes_, reflector_metrics_));
  loop_.spawn_essential("events", events_.run());
  loop_.spawn_essential("cards", work());
  loop_.spawn("settle", settle());
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
  look_at_mps();  // before the first report
  loop_.spawn_essential("watch_over", watch_over());
  loop_.run();
  for (const auto& line : xid_log_.rest()) write_line(line);
  const bool reader_ends = reader_->end_within(std::chrono::seconds(1));
  if (!watcher_->end_within(std::chrono::seconds(2)) || !reader_ends) {  // in the driver, or in a file system
    log::flush();
    std::_Exit(0);
  }
  watcher_.reset();
  reader_.reset();
  controller::destroy_waiting(loop_.context());
  log::flush();
  return {};
}

void card_agent::take(sighting sighting) {
  if (sighting.usage) return exporter_->take(std::move(*sighting.usage));
  if (sighting.driver_loaded) history_.forget_defects();
  if (sighting.event) {
    const auto& [card, xid] = *sighting.event;
    const auto note = history_.see(card, xid);
    if (exporter_) exporter_->count_xid(card, xid);
    if (note.withdraws || api::class_of(xid) == api::xid_class::notice)
      if (const auto line = xid_log_.see(note, controller::boot_now())) write_line(*line);
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

/// Each name once: as long as it stays there, a later XID of the card counts.
void card_agent::restore(const api::accelerator_node& object) {
  for (const auto& uuid : object.restore) {
    if (std::ranges::find(restored_, uuid) != restored_.end()) continue;
    history_.restore(uuid);
    log::info("a person calls a card in order again", {{"card", uuid}});
  }
  restored_ = object.restore;
}

void card_agent::look_at_mps() {
  auto path = options_.node_root;
  if (!path.ends_with('/')) path += '/';
  auto now = mps::read_state(path + std::string(mps::state_of_node), std::chrono::system_clock::now());
  if (now == mps_) return;
  mps_ = std::move(now);
  std::set<std::string> cards;
  for (const auto& [card, reason] : mps_.failed) {
    cards.insert(card);
    log::warn("MPS of a card has failed", {{"card", card}, {"reason", reason}});
  }
  history_.take_without_mps(std::move(cards));
  history_.take_limited({mps_.limited.begin(), mps_.limited.end()});
  has_news_ = true;
  changed_->notify_all();
}

boost::asio::awaitable<void> card_agent::watch_over() {
  for (auto last = controller::boot_now();;) {
    const bool went_on = co_await controller::sleep_for(milliseconds(1'000));
    if (!went_on) co_return;
    const auto now = controller::boot_now();
    for (const auto& line : xid_log_.due(now)) write_line(line);
    look_at_mps();
    const bool was_frozen = now - std::exchange(last, now) > milliseconds(5'000);
    if (was_frozen) continue;  // this process, and so the watcher's thread: its sign is old, and says nothing
    const bool hangs = watcher_->silence() > patience;
    if (std::exchange(hangs_, hangs) == hangs) continue;
    if (hangs)
      log::error("the driver does not come back from a call", {{"cards", "no new pods"}});
    else
      log::info("the driver answers again");
    has_news_ = true;
    changed_->notify_all();
  }
}

boost::asio::awaitable<void> card_agent::work() {
  auto pause = first_retry;
  std::string trouble;
  for (;;) {
    has_news_ = false;
    const bool synced = nodes_.synced();  // before the write, so that a list that ends meanwhile is not missed
    const auto done = co_await write();
    if (!done) {
      if (done.error().message != trouble) log::warn("cannot report", {{"error", done.error().message}});
      trouble = done.error().message;
      const milliseconds at_least = done.error().retry_after.value_or(std::chrono::seconds(0));
      const bool went_on = co_await controller::sleep_for(at_least + spread(pause));
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
    auto due = std::min(history_.due().value_or(later), preflight_.due().value_or(later));
    if (free_at_ && !object()) due = std::min(due, *free_at_);
    if (!synced) due = controller::boot_now() + look_again;  // a list without the object brings no event
    const auto end = std::chrono::steady_clock::now() + (due - controller::boot_now());
    if (co_await kube::wait_list::wait(changed_, end) == kube::woken::by_cancellation) co_return;
  }
}

kube::task<bool> card_agent::write() {
  const auto cards = co_await write_cards();
  const auto* node = nodes_.synced() ? object() : nullptr;
  const auto preflight = co_await preflight_.write(api_, node, seen_ ? &*seen_ : nullptr);
  if (cards && !preflight) co_return std::unexpected(preflight.error());
  co_return cards;
}

kube::task<bool> card_agent::write_cards() {
  if ((!seen_ && !hangs_) || !nodes_.synced()) co_return false;
  const auto* node = object();
  if (!node) co_return co_await introduce();
  const auto report = history_.complete(hangs_ ? unanswered() : *seen_, controller::boot_now());
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
  auto answer = co_await status_.apply(api_, type, key, body, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  log::info("reported", {{"cards", std::to_string(report.cards.size())}, {"driver", report.driver}});
  tell(report);
  // The watch shows it in a moment; until then we would write it again.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (node = object(); node && node->resource_version == version; node = object())
    if (co_await kube::wait_list::wait(changed_, end) != kube::woken::by_event) break;
  co_return true;
}

kube::task<bool> card_agent::introduce() {
  if (free_at_ && controller::boot_now() < *free_at_) co_return false;
  free_at_ = controller::boot_now() + after_deletion;  // the watch shows it before that, and then we are called again
  const auto& type = kube::resources::accelerator_nodes;
  const json body = {{"apiVersion", type.api_version()}, {"kind", type.kind}, {"metadata", {{"name", options_.node}}}};
  kube::write_options options;
  options.field_manager = api::names::agent_field_owner;
  auto answer = co_await api_.create(type, {}, body, options);
  if (!answer && answer.error().code != kube::errc::already_exists) {
    free_at_.reset();
    co_return std::unexpected(std::move(answer.error()));
  }
  co_return false;
}

void card_agent::tell(const inventory& report) {
  controller::object_reference node;
  node.api_version = "v1";
  node.kind = "Node";
  node.key.name = node.uid = options_.node;  // as the kubelet's events on its node
  std::erase_if(defects_, [&](const auto& entry) {
    return std::ranges::find(report.cards, entry.first, &card::uuid) == report.cards.end();
  });
  std::erase_if(warnings_, [&](const auto& entry) { return !defects_.contains(entry.first); });
  for (const auto& card : report.cards) {
    if (std::exchange(warnings_[card.uuid], card.warnings) != card.warnings && !card.warnings.empty())
      events_.record(node, controller::event_type::warning, "CardWarning", "Report",
                     "card " + card.uuid + " (" + card.model +
                         ") still gets pods, and someone should look at it: " + text::joined(card.warnings));
    auto& before = defects_[card.uuid];
    if (before == card.defect) continue;
    const bool is_sick = !card.defect.empty();
    const auto mps = mps_.failed.find(card.uuid);
    const auto cause =
        card.defect + (card.defect == api::mps_failed && mps != mps_.failed.end() ? ": " + mps->second : "");
    events_.record(
        node, is_sick ? controller::event_type::warning : controller::event_type::normal,
        is_sick ? "CardUnhealthy" : "CardHealthy", "Report",
        "card " + card.uuid + " (" + card.model + ")" + (is_sick ? " is sick: " + cause : " is in order again"));
    before = card.defect;
  }
}

}  // namespace agent
