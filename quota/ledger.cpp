#include "quota/ledger.hpp"

#include <algorithm>

namespace quota {
namespace {

constexpr std::size_t nowhere = SIZE_MAX;
constexpr std::int64_t most = std::int64_t{1} << 40;

std::size_t card_at(const node& of, std::string_view uuid) {
  for (std::size_t i = 0; i < of.cards.size() && i < max_cards; ++i)
    if (of.cards[i].uuid == uuid) return i;
  return nowhere;
}

std::size_t key_at(const node& of, std::string_view key) {
  const auto at = std::ranges::find(of.counts, key, &count::key);
  return at == of.counts.end() ? nowhere : static_cast<std::size_t>(at - of.counts.begin());
}

void apply(card_use& to, const grant& one, std::int32_t sign) {
  if (one.whole) {
    to.wholes += sign;
    return;
  }
  // What the API says may be forged: no part of a card is negative, and no sum overflows.
  to.sharers += sign;
  to.cores += sign * std::clamp(one.cores, 0, whole_card);
  to.memory_mib += sign * std::clamp(one.memory_mib, std::int64_t{0}, most);
}

}  // namespace

bool apply(const node& on, const holding& what, int sign, std::span<card_use> used,
           std::span<std::int64_t> counts_used) {
  bool all = true;
  for (const grant& one : what.grants) {
    const auto at = card_at(on, one.card);
    if (at == nowhere)
      all = false;
    else
      apply(used[at], one, sign);
  }
  for (const count& one : what.counts) {
    const auto at = key_at(on, one.key);
    if (at == nowhere)
      all = false;
    else
      counts_used[at] += sign * std::clamp(one.amount, std::int64_t{0}, most);
  }
  return all;
}

ledger::ledger(const ledger& other) : books_(other.books_), entries_(other.entries_) {
  for (auto& [name, one] : books_) one.holders.clear();
  for (const auto& [uid, one] : entries_) books_.find(one.held.node)->second.holders.push_back(&one);
}

booked ledger::trial(const book& on, const holding& what) {
  // One pod has few grants, so what they add up to on one card is found by going over them again. Those without cores
  // go in first: what they need left is what others hold, not what their own pod takes beside them.
  const auto earlier = [&](std::size_t a, std::size_t b) {
    const bool late_a = what.grants[a].cores > 0, late_b = what.grants[b].cores > 0;
    return late_a != late_b ? late_b : a < b;
  };
  for (std::size_t i = 0; i < what.grants.size(); ++i) {
    const grant& one = what.grants[i];
    const auto at = card_at(on.what, one.card);
    if (at == nowhere || !on.what.cards[at].usable()) return booked::no_card;
    auto now = on.used[at];
    for (std::size_t j = 0; j < what.grants.size(); ++j)
      if (earlier(j, i) && what.grants[j].card == one.card) apply(now, what.grants[j], 1);
    const auto& card = on.what.cards[at];
    const bool sane = one.cores >= 0 && one.cores <= whole_card && one.memory_mib >= 0;
    if (one.whole ? !admits_whole(card, now) : !sane || !admits_share(card, now, one.cores, one.memory_mib))
      return booked::over_commit;
  }
  for (const count& one : what.counts) {
    const auto at = key_at(on.what, one.key);
    if (at == nowhere) return booked::no_card;
    std::int64_t left = on.what.counts[at].amount - on.counts_used[at];
    for (const count& same : what.counts)
      if (same.key == one.key) left -= std::clamp(same.amount, std::int64_t{0}, most);
    if (one.amount < 0 || left < 0) return booked::over_commit;
  }
  return booked::done;
}

void ledger::recount(book& on) {
  on.used.assign(std::min(on.what.cards.size(), max_cards), {});
  on.counts_used.assign(on.what.counts.size(), 0);
  for (const entry* one : on.holders) apply(on.what, one->held, 1, on.used, on.counts_used);
}

std::size_t ledger::beyond(const book& on) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < on.used.size(); ++i) found += quota::beyond(on.what.cards[i], on.used[i]) ? 1 : 0;
  for (std::size_t i = 0; i < on.counts_used.size(); ++i) found += on.counts_used[i] > on.what.counts[i].amount ? 1 : 0;
  return found;
}

void ledger::put(node what) {
  auto& on = books_[what.name];
  if (on.reported && on.what == what) return;
  on.reported = true;
  on.what = std::move(what);
  recount(on);
}

void ledger::remove(std::string_view name) {
  const auto at = books_.find(name);
  if (at == books_.end()) return;
  if (at->second.holders.empty()) {
    books_.erase(at);
    return;
  }
  at->second.reported = false;
  at->second.what = {};
  recount(at->second);
}

std::optional<node_view> ledger::view(std::string_view name) const {
  const auto at = books_.find(name);
  if (at == books_.end() || !at->second.reported) return {};
  return node_view{&at->second.what, at->second.used, at->second.counts_used};
}

void ledger::insert(std::string_view pod_uid, const holding& what, bool confirmed, std::int64_t until_ms) {
  const auto at = entries_.insert_or_assign(std::string{pod_uid}, entry{what, confirmed, until_ms}).first;
  auto& on = books_[what.node];
  on.holders.push_back(&at->second);
  apply(on.what, what, 1, on.used, on.counts_used);
}

void ledger::erase(by_name<entry>::iterator at) {
  const auto book_at = books_.find(at->second.held.node);
  auto& on = book_at->second;
  apply(on.what, at->second.held, -1, on.used, on.counts_used);
  std::erase(on.holders, &at->second);
  entries_.erase(at);
  if (!on.reported && on.holders.empty()) books_.erase(book_at);
}

booked ledger::assume(std::string_view pod_uid, const holding& what, std::int64_t until_ms) {
  if (const auto at = entries_.find(pod_uid); at != entries_.end()) {
    if (at->second.held != what) return booked::elsewhere;
    if (!at->second.confirmed) at->second.until_ms = std::max(at->second.until_ms, until_ms);
    return booked::already;
  }
  const auto on = books_.find(what.node);
  if (on == books_.end() || !on->second.reported) return booked::no_node;
  const auto may = trial(on->second, what);
  if (may != booked::done) return may;
  insert(pod_uid, what, false, until_ms);
  return may;
}

bool ledger::confirm(std::string_view pod_uid) {
  const auto at = entries_.find(pod_uid);
  if (at == entries_.end()) return false;
  at->second.confirmed = true;
  at->second.until_ms = 0;
  return true;
}

booked ledger::record(std::string_view pod_uid, const holding& what) {
  if (const auto at = entries_.find(pod_uid); at != entries_.end()) {
    if (at->second.held == what) {
      const bool news = !at->second.confirmed;
      confirm(pod_uid);
      return news ? booked::done : booked::already;
    }
    erase(at);
  }
  insert(pod_uid, what, true, 0);
  const auto& on = books_.find(what.node)->second;
  if (!on.reported) return booked::no_node;
  for (const grant& one : what.grants)
    if (card_at(on.what, one.card) == nowhere) return booked::no_card;
  for (const count& one : what.counts)
    if (key_at(on.what, one.key) == nowhere) return booked::no_card;
  return beyond(on) > 0 ? booked::over_given : booked::done;
}

void ledger::restore(std::string_view pod_uid, const entry& what) {
  release(pod_uid);
  insert(pod_uid, what.held, what.confirmed, what.until_ms);
}

bool ledger::release(std::string_view pod_uid) {
  const auto at = entries_.find(pod_uid);
  if (at == entries_.end()) return false;
  erase(at);
  return true;
}

std::vector<std::string> ledger::expire(std::int64_t now_ms) {
  std::vector<std::string> gone;
  for (const auto& [uid, one] : entries_)
    if (!one.confirmed && one.until_ms <= now_ms) gone.push_back(uid);
  for (const auto& uid : gone) release(uid);
  return gone;
}

const ledger::entry* ledger::find(std::string_view pod_uid) const {
  const auto at = entries_.find(pod_uid);
  return at == entries_.end() ? nullptr : &at->second;
}

std::size_t ledger::over_given(std::string_view name) const {
  const auto at = books_.find(name);
  return at == books_.end() || !at->second.reported ? 0 : beyond(at->second);
}

}  // namespace quota
