#include "controller/work_queue.hpp"

#include <algorithm>
#include <utility>

namespace controller {

work_queue::work_queue(settings settings, std::function<double()> jitter)
    : settings_(settings), jitter_(std::move(jitter)) {}

void work_queue::add(const key& key, milliseconds due, int priority) {
  const auto [position, is_new] = entries_.try_emplace(key);
  entry& e = position->second;
  if (is_new) e.name = &position->first;
  switch (e.status) {
    case state::idle:
      enqueue(e, due, priority);
      break;
    case state::processing:
      e.due = e.dirty ? std::min(e.due, due) : due;
      e.priority = e.dirty ? std::max(e.priority, priority) : priority;
      e.dirty = true;
      break;
    case state::delayed:
      if (due >= e.due && priority <= e.priority) break;
      delayed_.erase(&e);
      enqueue(e, std::min(e.due, due), std::max(e.priority, priority));
      break;
    case state::ready:
      // It keeps its place among its equals; only a higher priority moves it.
      if (priority <= e.priority) break;
      ready_.erase(&e);
      e.priority = priority;
      ready_.insert(&e);
      break;
  }
}

void work_queue::enqueue(entry& e, milliseconds due, int priority) {
  e.due = due;
  e.priority = priority;
  e.order = ++order_;
  e.status = state::delayed;
  e.dirty = false;
  delayed_.insert(&e);
}

void work_queue::promote(milliseconds now) {
  while (!delayed_.empty() && (*delayed_.begin())->due <= now) {
    entry* const e = delayed_.extract(delayed_.begin()).value();
    e->status = state::ready;
    e->order = ++order_;  // first come first served counts from the moment it was due
    ready_.insert(e);
  }
}

std::optional<work_queue::key> work_queue::take(milliseconds now) {
  promote(now);
  if (ready_.empty()) return std::nullopt;
  entry* const e = ready_.extract(ready_.begin()).value();
  e->status = state::processing;
  ++processing_;
  last_wait_ = now - e->due;
  return *e->name;
}

void work_queue::end(entry& e) {
  --processing_;
  e.status = state::idle;
  if (e.dirty) enqueue(e, e.due, e.priority);
}

void work_queue::done(const key& key) {
  const auto match = entries_.find(key);
  if (match == entries_.end() || match->second.status != state::processing) return;
  end(match->second);
  drop_if_idle(match->second);
}

milliseconds work_queue::failed(const key& key, milliseconds now, milliseconds at_least) {
  const auto match = entries_.find(key);
  if (match == entries_.end() || match->second.status != state::processing) return milliseconds(0);
  entry& e = match->second;
  const unsigned doublings = std::min(e.failures++, 30U);
  const auto full = std::min<std::int64_t>(settings_.first_delay.count() << doublings, settings_.max_delay.count());
  const milliseconds jittered(full - static_cast<std::int64_t>(static_cast<double>(full) * jitter_() / 5));
  const milliseconds delay = std::max({jittered, at_least, milliseconds(1)});
  end(e);
  add(key, now + delay);
  return delay;
}

void work_queue::forget(const key& key) {
  const auto match = entries_.find(key);
  if (match == entries_.end()) return;
  match->second.failures = 0;
  drop_if_idle(match->second);
}

void work_queue::drop_if_idle(const entry& e) {
  if (e.status == state::idle && e.failures == 0) entries_.erase(entries_.find(*e.name));
}

std::optional<milliseconds> work_queue::next_due() const {
  if (!ready_.empty()) return (*ready_.begin())->due;
  if (!delayed_.empty()) return (*delayed_.begin())->due;
  return std::nullopt;
}

std::size_t work_queue::depth(milliseconds now) {
  promote(now);
  return ready_.size();
}

unsigned work_queue::failures(const key& key) const {
  const auto match = entries_.find(key);
  return match == entries_.end() ? 0 : match->second.failures;
}

}  // namespace controller
