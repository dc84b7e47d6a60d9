#include "quota/usage.hpp"

#include <algorithm>
#include <utility>

namespace quota {
namespace {

card_time times(std::int64_t cores, std::int64_t memory_mib, seconds length) {
  return {cores * length, memory_mib * length};
}

card_time at_least_zero(const card_time& time) {
  return {std::max<std::int64_t>(time.core_seconds, 0), std::max<std::int64_t>(time.memory_mib_seconds, 0)};
}

const usage_key& other_key() {
  static const usage_key key{.model = "other", .mode = "other", .organization = "other", .priority = 0};
  return key;
}

}  // namespace

void add(usage_rows& rows, const usage_key& key, const card_time& time) {
  if (time.zero()) return;
  const auto match = rows.find(key);
  if (match != rows.end()) {
    match->second += time;
    return;
  }
  // The last place is kept for all others.
  const auto limit = rows.contains(other_key()) ? max_usage_rows : max_usage_rows - 1;
  rows[rows.size() < limit ? key : other_key()] += time;
}

model_time& model_time::operator+=(const model_time& more) {
  capacity += more.capacity;
  parts += more.parts;
  idle += more.idle;
  unhealthy += more.unhealthy;
  unattributed += more.unattributed;
  beyond += more.beyond;
  return *this;
}

void usage_book::put_card(std::string_view name, const usage_card& card, seconds time) {
  auto match = cards_.find(name);
  if (match == cards_.end()) match = cards_.emplace(std::string(name), timeline()).first;
  auto& states = match->second.states;
  const auto* model = &*models_.insert(card.model).first;
  const auto same = [&](const state& is) {
    return is.there && is.model == model && is.cores == card.cores && is.memory_mib == card.memory_mib &&
           is.healthy == card.healthy;
  };
  if (!states.empty() && same(states.back())) return;
  // Two changes in one second: the later one counts.
  time = std::max(time, states.empty() ? settled_ : std::max(settled_, states.back().begin));
  if (!states.empty() && states.back().begin == time) states.pop_back();
  states.push_back({time, model, card.cores, card.memory_mib, card.healthy, true});
}

void usage_book::remove_card(std::string_view name, seconds time) {
  const auto match = cards_.find(name);
  if (match == cards_.end() || match->second.states.empty() || !match->second.states.back().there) return;
  auto& states = match->second.states;
  auto last = states.back();
  last.begin = std::max({time, last.begin, settled_});
  last.there = false;
  if (states.back().begin == last.begin) states.pop_back();
  states.push_back(last);
}

std::vector<usage_book::part> usage_book::parts_of(const usage_holder& holder) {
  std::vector<part> out;
  for (const auto& entry : holder.parts) {
    const auto* owner =
        &*labels_.insert({holder.name_space, {"", entry.mode, holder.organization, holder.priority}}).first;
    out.push_back({&cards_[entry.card], entry.cores, entry.memory_mib, owner});
  }
  return out;
}

void usage_book::hold(std::string_view pod, const usage_holder& holder, seconds begin, seconds now) {
  auto parts = parts_of(holder);
  begin = std::max(std::min(begin, now), settled_);
  if (const auto match = holdings_.find(pod); match != holdings_.end()) {
    if (match->second.parts == parts) return;
    // It is known better now, or has changed: from now on it is so, and what is not settled stays as it was.
    begin = std::max({now, match->second.begin, settled_});
    close(match->second, begin);
    holdings_.erase(match);
  }
  const auto number = ++last_number_;
  for (const auto& part : parts)
    part.card->stretches.push_back({begin, open, part.cores, part.memory_mib, number, part.owner});
  holdings_.emplace(std::string(pod), holding{number, begin, std::move(parts)});
}

/// Its open stretches end; one that would end before it begins is nothing.
void usage_book::close(const holding& held, seconds time) {
  for (const auto& part : held.parts)
    for (auto& stretch : part.card->stretches) {
      if (stretch.holding != held.number) continue;
      stretch.end = std::max(time, stretch.begin);
      stretch.holding = 0;
    }
}

bool usage_book::release(std::string_view pod, seconds time) {
  const auto match = holdings_.find(pod);
  if (match == holdings_.end()) return false;
  close(match->second, std::max(time, settled_));
  holdings_.erase(match);
  return true;
}

bool usage_book::lose(std::string_view pod, seconds sure, seconds time) {
  const auto match = holdings_.find(pod);
  if (match == holdings_.end()) return false;
  const auto begin = std::max({sure, match->second.begin, settled_});
  close(match->second, begin);
  if (time > begin)
    for (const auto& part : match->second.parts)
      part.card->stretches.push_back({begin, time, part.cores, part.memory_mib, 0, nullptr});
  holdings_.erase(match);
  return true;
}

void usage_book::resume(seconds until) {
  if (until <= settled_) return;
  settling_.reset();
  settled_ = until;
  for (auto& [name, line] : cards_) forget(line);
  drop_unused();
}

/// What ended before the time that is settled. Of the states, the one that counts at that time stays.
void usage_book::forget(timeline& line) const {
  std::erase_if(line.stretches, [&](const stretch& stretch) { return stretch.end <= settled_; });
  const auto next = std::ranges::find_if(line.states, [&](const state& state) { return state.begin > settled_; });
  if (next - line.states.begin() > 1) line.states.erase(line.states.begin(), next - 1);
}

void usage_book::drop_unused() {
  std::erase_if(cards_, [&](const auto& entry) {
    const auto& line = entry.second;
    const bool there = !line.states.empty() && (line.states.size() > 1 || line.states.front().there);
    return !there && line.stretches.empty();
  });
}

/// One card, piece by piece: within a piece nothing changes.
void usage_book::settle(const timeline& line, seconds begin, seconds end, sums& out) const {
  std::vector<seconds> edges{begin, end};
  const auto edge = [&](seconds time) {
    if (time > begin && time < end) edges.push_back(time);
  };
  edge(start_);
  for (const auto& state : line.states) edge(state.begin);
  for (const auto& stretch : line.stretches) {
    edge(stretch.begin);
    edge(stretch.end);
  }
  std::ranges::sort(edges);
  edges.erase(std::ranges::unique(edges).begin(), edges.end());
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const auto moment = edges[i], length = edges[i + 1] - moment;
    const state* is = nullptr;
    for (const auto& state : line.states)
      if (!is || state.begin <= moment) is = &state;
    card_time parts, lost;
    for (const auto& stretch : line.stretches) {
      if (stretch.begin > moment || stretch.end <= moment) continue;
      const auto time = times(stretch.cores, stretch.memory_mib, length);
      (stretch.owner ? parts : lost) += time;
      if (!stretch.owner) continue;
      auto key = stretch.owner->key;
      if (is) key.model = *is->model;
      add(out.namespaces[stretch.owner->name_space], key, time);
    }
    const bool there = is && is->there && is->begin <= std::max(moment, start_);
    model_time row;
    if (there) row.capacity = times(is->cores, is->memory_mib, length);
    row.parts = parts;
    row.unattributed = lost;
    // The rest of the card, for cores and memory each by itself.
    const auto rest = row.capacity - parts - lost;
    row.beyond = at_least_zero(card_time() - rest);
    const auto left = at_least_zero(rest);
    if (moment < start_)
      row.unattributed += left;
    else if (there && !is->healthy)
      row.unhealthy = left;
    else
      row.idle = left;
    if (!row.capacity.zero() || !parts.zero() || !lost.zero()) out.models[is ? *is->model : std::string()] += row;
  }
}

void usage_book::begin_settling(seconds until) {
  auto& next = settling_.emplace(settling{{settled_, {}}, {}});
  if (until <= settled_) return;
  next.waiting.reserve(cards_.size());
  for (auto& [name, line] : cards_) next.waiting.push_back(&line);
  settled_ = until;
}

bool usage_book::settle_some(std::size_t count) {
  auto& waiting = settling_->waiting;
  for (; count > 0 && !waiting.empty(); --count) {
    settle(*waiting.back(), settling_->done.begin, settled_, settling_->done.amounts);
    forget(*waiting.back());
    waiting.pop_back();
  }
  return !waiting.empty();
}

usage_book::settlement usage_book::take_settled() {
  settle_some(settling_->waiting.size());
  auto out = std::move(settling_->done);
  settling_.reset();
  drop_unused();
  return out;
}

usage_book::sums usage_book::settle(seconds until) {
  begin_settling(until);
  return take_settled().amounts;
}

}  // namespace quota
