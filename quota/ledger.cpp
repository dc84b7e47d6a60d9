#include "quota/ledger.hpp"

#include <algorithm>

namespace quota {
namespace {

constexpr std::size_t no_position = SIZE_MAX;
constexpr std::int64_t max_amount = std::int64_t{1} << 40;

std::size_t card_at(const node_inventory& node, std::string_view uuid) {
  for (std::size_t i = 0; i < node.cards.size() && i < max_cards; ++i)
    if (node.cards[i].uuid == uuid) return i;
  return no_position;
}

std::size_t key_at(const node_inventory& node, std::string_view key) {
  const auto match = std::ranges::find(node.counts, key, &count::key);
  return match == node.counts.end() ? no_position : static_cast<std::size_t>(match - node.counts.begin());
}

void apply(card_use& card_use, const grant& grant, std::int32_t sign) {
  if (grant.whole) {
    card_use.wholes += sign;
    return;
  }
  // What the API says may be forged: no part of a card is negative, and no sum overflows.
  card_use.sharers += sign;
  card_use.cores += sign * std::clamp(grant.cores, 0, whole_card);
  card_use.memory_mib += sign * std::clamp(grant.memory_mib, std::int64_t{0}, max_amount);
}

}  // namespace

bool apply(const node_inventory& node, const holding& holding, int sign, std::span<card_use> used,
           std::span<std::int64_t> counts_used) {
  bool complete = true;
  for (const grant& grant : holding.grants) {
    const auto position = card_at(node, grant.card);
    if (position == no_position)
      complete = false;
    else
      apply(used[position], grant, sign);
  }
  for (const count& count : holding.counts) {
    const auto position = key_at(node, count.key);
    if (position == no_position)
      complete = false;
    else
      counts_used[position] += sign * std::clamp(count.amount, std::int64_t{0}, max_amount);
  }
  return complete;
}

ledger::ledger(const ledger& other) : books_(other.books_), entries_(other.entries_) {
  for (auto& [name, book] : books_) book.holders.clear();
  for (const auto& [uid, entry] : entries_) books_.find(entry.held.node)->second.holders.push_back(&entry);
}

booked ledger::trial(const book& book, const holding& holding) {
  // One pod has few grants, so what they add up to on one card is found by going over them again. Those without cores
  // go first: they need a card that other pods have left cores of, whatever the other grants of their own pod take.
  const auto earlier = [&](std::size_t a, std::size_t b) {
    const bool late_a = holding.grants[a].cores > 0, late_b = holding.grants[b].cores > 0;
    return late_a != late_b ? late_b : a < b;
  };
  for (std::size_t i = 0; i < holding.grants.size(); ++i) {
    const grant& grant = holding.grants[i];
    const auto position = card_at(book.inventory, grant.card);
    if (position == no_position || !book.inventory.cards[position].usable()) return booked::no_card;
    auto now = book.used[position];
    for (std::size_t j = 0; j < holding.grants.size(); ++j)
      if (earlier(j, i) && holding.grants[j].card == grant.card) apply(now, holding.grants[j], 1);
    const auto& card = book.inventory.cards[position];
    const bool sane = grant.cores >= 0 && grant.cores <= whole_card && grant.memory_mib >= 0;
    if (grant.whole ? !admits_whole(card, now) : !sane || !admits_share(card, now, grant.cores, grant.memory_mib))
      return booked::over_commit;
  }
  for (const count& entry : holding.counts) {
    const auto position = key_at(book.inventory, entry.key);
    if (position == no_position) return booked::no_card;
    std::int64_t left = book.inventory.counts[position].amount - book.counts_used[position];
    for (const count& same : holding.counts)
      if (same.key == entry.key) left -= std::clamp(same.amount, std::int64_t{0}, max_amount);
    if (entry.amount < 0 || left < 0) return booked::over_commit;
  }
  return booked::done;
}

void ledger::recount(book& book) {
  book.used.assign(std::min(book.inventory.cards.size(), max_cards), {});
  book.counts_used.assign(book.inventory.counts.size(), 0);
  for (const entry* holder : book.holders) apply(book.inventory, holder->held, 1, book.used, book.counts_used);
}

std::size_t ledger::count_over_given(const book& book) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < book.used.size(); ++i)
    found += quota::beyond(book.inventory.cards[i], book.used[i]) ? 1 : 0;
  for (std::size_t i = 0; i < book.counts_used.size(); ++i)
    found += book.counts_used[i] > book.inventory.counts[i].amount ? 1 : 0;
  return found;
}

void ledger::put(node_inventory node) {
  auto& book = books_[node.name];
  if (book.reported && book.inventory == node) return;
  book.reported = true;
  book.inventory = std::move(node);
  recount(book);
}

void ledger::remove(std::string_view name) {
  const auto match = books_.find(name);
  if (match == books_.end()) return;
  if (match->second.holders.empty()) {
    books_.erase(match);
    return;
  }
  match->second.reported = false;
  match->second.inventory = {};
  recount(match->second);
}

std::optional<node_view> ledger::view(std::string_view name) const {
  const auto match = books_.find(name);
  if (match == books_.end() || !match->second.reported) return {};
  return node_view{&match->second.inventory, match->second.used, match->second.counts_used};
}

void ledger::insert(std::string_view pod_uid, const holding& holding, bool confirmed, std::int64_t until_ms) {
  const auto position = entries_.insert_or_assign(std::string{pod_uid}, entry{holding, confirmed, until_ms}).first;
  auto& book = books_[holding.node];
  book.holders.push_back(&position->second);
  apply(book.inventory, holding, 1, book.used, book.counts_used);
}

void ledger::erase(by_name<entry>::iterator match) {
  const auto book_at = books_.find(match->second.held.node);
  auto& book = book_at->second;
  apply(book.inventory, match->second.held, -1, book.used, book.counts_used);
  std::erase(book.holders, &match->second);
  entries_.erase(match);
  if (!book.reported && book.holders.empty()) books_.erase(book_at);
}

booked ledger::assume(std::string_view pod_uid, const holding& holding, std::int64_t until_ms) {
  if (const auto match = entries_.find(pod_uid); match != entries_.end()) {
    if (match->second.held != holding) return booked::elsewhere;
    if (!match->second.confirmed) match->second.until_ms = std::max(match->second.until_ms, until_ms);
    return booked::already;
  }
  const auto position = books_.find(holding.node);
  if (position == books_.end() || !position->second.reported) return booked::no_node;
  const auto verdict = trial(position->second, holding);
  if (verdict != booked::done) return verdict;
  insert(pod_uid, holding, false, until_ms);
  return verdict;
}

bool ledger::confirm(std::string_view pod_uid) {
  const auto match = entries_.find(pod_uid);
  if (match == entries_.end()) return false;
  match->second.confirmed = true;
  match->second.until_ms = 0;
  return true;
}

booked ledger::record(std::string_view pod_uid, const holding& holding) {
  if (const auto match = entries_.find(pod_uid); match != entries_.end()) {
    if (match->second.held == holding) {
      const bool news = !match->second.confirmed;
      confirm(pod_uid);
      return news ? booked::done : booked::already;
    }
    erase(match);
  }
  insert(pod_uid, holding, true, 0);
  const auto& book = books_.find(holding.node)->second;
  if (!book.reported) return booked::no_node;
  for (const grant& grant : holding.grants)
    if (card_at(book.inventory, grant.card) == no_position) return booked::no_card;
  for (const count& count : holding.counts)
    if (key_at(book.inventory, count.key) == no_position) return booked::no_card;
  return count_over_given(book) > 0 ? booked::over_given : booked::done;
}

void ledger::restore(std::string_view pod_uid, const entry& entry) {
  release(pod_uid);
  insert(pod_uid, entry.held, entry.confirmed, entry.until_ms);
}

bool ledger::release(std::string_view pod_uid) {
  const auto match = entries_.find(pod_uid);
  if (match == entries_.end()) return false;
  erase(match);
  return true;
}

std::vector<std::string> ledger::expire(std::int64_t now_ms) {
  std::vector<std::string> gone;
  for (const auto& [uid, entry] : entries_)
    if (!entry.confirmed && entry.until_ms <= now_ms) gone.push_back(uid);
  for (const auto& uid : gone) release(uid);
  return gone;
}

const ledger::entry* ledger::find(std::string_view pod_uid) const {
  const auto match = entries_.find(pod_uid);
  return match == entries_.end() ? nullptr : &match->second;
}

std::size_t ledger::over_given(std::string_view name) const {
  const auto match = books_.find(name);
  return match == books_.end() || !match->second.reported ? 0 : count_over_given(match->second);
}

}  // namespace quota
