#include "controller/event_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/escape.hpp"

namespace controller {

event_book::event_book(event_settings settings) : settings_(std::move(settings)), tokens_(settings_.burst) {}

nlohmann::json event_book::make_event(const object_reference& about, event_type type, std::string_view reason,
                                      std::string_view action, std::string_view note, wall_time wall,
                                      const std::string& name) const {
  nlohmann::json regarding = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.key.name}};
  if (!about.key.ns.empty()) regarding["namespace"] = about.key.ns;
  if (!about.uid.empty()) regarding["uid"] = about.uid;
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata", {{"name", name}, {"namespace", about.key.ns.empty() ? "default" : about.key.ns}}},
          {"eventTime", rfc3339_micros(wall)},
          {"reportingController", "quartermaster.io/controller"},
          {"reportingInstance", text::utf8_clean(settings_.reporting_instance, 128)},
          {"type", type == event_type::normal ? "Normal" : "Warning"},
          {"reason", text::utf8_clean(reason, 128)},
          {"action", text::utf8_clean(action.empty() ? reason : action, 128)},
          {"note", text::utf8_clean(note, 1000)},
          {"regarding", std::move(regarding)}};
}

void event_book::record(const object_reference& about, event_type type, std::string_view reason,
                        std::string_view action, std::string_view note, milliseconds now, wall_time wall) {
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", about.kind, about.key.ns, about.key.name,
                                           about.uid, static_cast<int>(type), reason, action, note);
  if (const auto known = by_identity_.find(identity); known != by_identity_.end()) {
    entry& e = *known->second;
    if (now - e.last <= settings_.window) {
      ++e.count;
      e.last = now;
      e.last_wall = wall;
      entries_.splice(entries_.end(), entries_, known->second);
      if (e.created && !e.queued) push(known->second);
      return;
    }
    forget(known->second);
  }
  entry made;
  made.ticket = ++last_ticket_;
  made.identity = identity;
  // Unique over replicas and restarts, short enough for any object name.
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(wall.time_since_epoch()).count();
  made.key = {about.key.ns.empty() ? "default" : about.key.ns,
              fmt::format("{}.{:x}.{:x}", about.key.name.substr(0, 200), micros, made.ticket)};
  made.event = make_event(about, type, reason, action, note, wall, made.key.name);
  made.last = made.update_at = now;
  made.last_wall = wall;
  made.step = settings_.series_step;
  entries_.push_back(std::move(made));
  const auto position = std::prev(entries_.end());
  by_identity_.emplace(identity, position);
  by_ticket_.emplace(position->ticket, position);
  push(position);
  if (entries_.size() > settings_.known) forget(entries_.begin());
}

void event_book::push(entries::iterator match) {
  match->queued = true;
  queue_.push_back(match->ticket);
  if (queue_.size() <= settings_.queue) return;
  const auto oldest = by_ticket_.find(queue_.front());
  queue_.pop_front();
  ++dropped_;
  if (oldest == by_ticket_.end()) return;
  oldest->second->queued = false;
  if (!oldest->second->created) forget(oldest->second);
}

void event_book::forget(entries::iterator match) {
  if (match->queued) std::erase(queue_, match->ticket);
  by_ticket_.erase(match->ticket);
  by_identity_.erase(match->identity);
  entries_.erase(match);
}

double event_book::tokens(milliseconds now) const {
  const double since = std::chrono::duration<double>(now - filled_at_).count();
  return std::min(settings_.burst, tokens_ + since * settings_.per_second);
}

std::optional<event_write> event_book::next(milliseconds now) {
  if (tokens(now) < 1) return std::nullopt;
  // First in, first out, but a series whose time has not come does not hold up the others.
  for (auto position = queue_.begin(); position != queue_.end(); ++position) {
    const auto found = by_ticket_.find(*position);
    entry& e = *found->second;
    if (e.created && now < e.update_at) continue;
    queue_.erase(position);
    e.queued = false;
    tokens_ = tokens(now) - 1;
    filled_at_ = now;
    event_write out;
    out.key = e.key;
    out.ticket = e.ticket;
    e.update_at = now + e.step;
    e.step = std::min(e.step * 2, settings_.window);
    if (!e.created) {
      out.body = std::exchange(e.event, nullptr);
      e.created = true;
      return out;
    }
    out.action = event_write::kind::patch;
    out.body = {{"series", {{"count", e.count}, {"lastObservedTime", rfc3339_micros(e.last_wall)}}}};
    e.reported = e.count;
    return out;
  }
  return std::nullopt;
}

std::optional<milliseconds> event_book::next_due(milliseconds now) const {
  std::optional<milliseconds> due;
  for (const auto ticket : queue_) {
    const entry& e = *by_ticket_.at(ticket);
    const milliseconds time = e.created ? e.update_at : now;
    if (!due || time < *due) due = time;
  }
  const double missing = 1 - tokens(now);
  if (due && missing > 0)
    due = std::max(*due, now + milliseconds(static_cast<std::int64_t>(missing / settings_.per_second * 1000) + 1));
  return due;
}

void event_book::on_result(const event_write& event_write, bool ok, bool gone) {
  const auto found = by_ticket_.find(event_write.ticket);
  if (found == by_ticket_.end()) return;
  entry& e = *found->second;
  if (!ok) {
    if (!gone) ++dropped_;
    forget(found->second);
    return;
  }
  // It happened again while the write was under way.
  if (e.count > e.reported && !e.queued) push(found->second);
}

}  // namespace controller
