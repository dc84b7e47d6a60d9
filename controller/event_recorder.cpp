#include "controller/event_recorder.hpp"

#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

event_recorder::event_recorder(kube::client& api, event_settings settings, registry& metrics)
    : api_(api),
      book_(std::move(settings)),
      events_(
          metrics.counters("quartermaster_events_total", "Events recorded, written or not.", {"type", "reason"}, 200)),
      writes_(metrics.counters("quartermaster_event_writes_total", "Event writes by result.", {"result"})) {
  metrics.collect([this](metric_text& metric_text) {
    metric_text.family("quartermaster_events_dropped_total", "Events that were never written.", "counter");
    metric_text.sample("quartermaster_events_dropped_total", {}, static_cast<double>(book_.dropped()));
  });
}

void event_recorder::record(const object_reference& about, event_type type, std::string_view reason,
                            std::string_view action, std::string_view note) {
  events_.with({type == event_type::normal ? "Normal" : "Warning", reason}).add();
  book_.record(about, type, reason, action, note, boot_now(), std::chrono::system_clock::now());
  recorded_->notify_all();
}

boost::asio::awaitable<void> event_recorder::write(event_write event) {
  kube::result<nlohmann::json> done = std::unexpected(kube::error());
  if (event.action == event_write::kind::create) {
    done = co_await api_.create(kube::resources::events, event.key.ns, event.body);
    // The transport may have sent it twice; our own name cannot be someone else's.
    if (!done && done.error().code == kube::errc::already_exists) done = nlohmann::json();
  } else {
    done = co_await api_.patch(kube::resources::events, event.key, kube::patch_kind::merge, event.body);
  }
  writes_.with({done ? "ok" : kube::to_string(done.error().code)}).add();
  if (!done && done.error().code != kube::errc::cancelled)
    log::debug("event not written", {{"event", event.key.to_string()}, {"error", done.error().message}});
  book_.on_result(event, done.has_value(), !done && done.error().code == kube::errc::not_found);
}

kube::task<void> event_recorder::run() {
  for (;;) {
    const auto now = boot_now();
    if (auto event = book_.next(now)) {
      writing_ = true;
      co_await write(std::move(*event));
      writing_ = false;
      continue;
    }
    const auto due = book_.next_due(now);
    const auto wait = due ? std::max(milliseconds(10), *due - now) : milliseconds(std::chrono::hours(24));
    const auto woken = co_await kube::wait_list::wait(recorded_, std::chrono::steady_clock::now() + wait);
    if (woken == kube::woken::by_cancellation)
      co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "the event recorder was stopped", {}});
  }
}

kube::task<void> event_recorder::flush() {
  for (;;) {
    const auto now = boot_now();
    const auto due = book_.next_due(now);
    if (!writing_ && (!due || *due > now)) co_return kube::result<void>();
    const bool slept = co_await sleep_for(milliseconds(10));
    if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "the flush was stopped", {}});
  }
}

}  // namespace controller
