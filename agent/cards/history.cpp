#include "agent/cards/history.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <tuple>

#include "api/node_words.hpp"
#include "api/xid.hpp"

namespace agent::cards {
namespace {

constexpr std::string_view xid_prefix = "XID ";
constexpr std::string_view lost = "Lost", no_driver = "NoDriver", not_answering = "NotAnswering";

std::uint64_t xid_in(std::string_view defect) {
  std::uint64_t out = 0;
  if (defect.starts_with(xid_prefix))
    std::from_chars(defect.data() + xid_prefix.size(), defect.data() + defect.size(), out);
  return out;
}

std::string pair_of(const card& left, const card& right) { return left.uuid + " " + right.uuid; }

}  // namespace

void history::recall(const std::vector<card>& cards) {
  for (const auto& card : cards) {
    auto& kept = known_[card.uuid] = card;
    kept.defect.clear();
    if (const auto xid = xid_in(card.defect); xid != 0) xids_.emplace(card.uuid, xid);
    if (card.defect == lost) lost_.insert(card.uuid);
    for (std::size_t i = 0; i < card.links.size() && i < cards.size(); ++i)
      links_[pair_of(card, cards[i])] = card.links[i];
  }
}

void history::forget_defects() {
  xids_.clear();
  lost_.clear();
  back_.clear();
}

std::optional<std::chrono::milliseconds> history::due() const {
  std::optional<std::chrono::milliseconds> out;
  if (!back_.empty()) out = std::ranges::min(back_ | std::views::values) + steady;
  if (!fading_.empty()) {
    const auto gone = std::ranges::min(fading_ | std::views::values) + fading;
    out = std::min(out.value_or(gone), gone);
  }
  return out;
}

xid_note history::see(const std::string& uuid, std::uint64_t xid) {
  xid_note out{uuid, xid, false};
  if (api::class_of(xid) == api::xid_class::fatal) out.withdraws = xids_.emplace(uuid, xid).second;
  return out;
}

void history::keep_warnings(card& card, std::chrono::milliseconds now) {
  auto& kept = warnings_[card.uuid];
  for (auto position = kept.begin(); position != kept.end();) {
    const std::pair key(card.uuid, *position);
    const bool is_given = std::ranges::find(card.warnings, *position) != card.warnings.end();
    if (is_given || now - fading_.emplace(key, now).first->second >= fading) {
      fading_.erase(key);
      position = is_given ? std::next(position) : kept.erase(position);
    } else {
      ++position;
    }
  }
  kept.insert(card.warnings.begin(), card.warnings.end());
  card.warnings.assign(kept.begin(), kept.end());
}

inventory history::complete(inventory seen, std::chrono::milliseconds now) {
  for (const auto& card : seen.cards)
    for (std::size_t i = 0; i < card.links.size(); ++i) links_[pair_of(card, seen.cards[i])] = card.links[i];
  const bool is_driven = seen.problem.empty();
  if (!is_driven) seen.silent = static_cast<int>(known_.size());
  const auto answers = [&seen](const std::string& uuid) {
    return std::ranges::find(seen.cards, uuid, &card::uuid) != seen.cards.end();
  };
  const auto is_sick = [this](const std::string& uuid) { return xids_.contains(uuid) || lost_.contains(uuid); };
  std::vector<card> silent;
  for (const auto& [uuid, known] : known_)
    if (!answers(uuid)) silent.push_back(known);
  // Of more cards than the driver counts, no one can say which are lost and which were taken out.
  std::ranges::sort(silent, {}, [&](const card& card) { return std::tuple(!is_sick(card.uuid), card.uuid); });
  const auto sick = std::ranges::count_if(silent, is_sick, &card::uuid);
  const auto counted = std::max<std::ptrdiff_t>(seen.silent, sick);
  silent.resize(std::min(silent.size(), static_cast<std::size_t>(counted)));
  known_.clear();
  for (auto& card : seen.cards) {
    if (lost_.contains(card.uuid)) {
      const auto since = back_.emplace(card.uuid, now).first->second;
      if (now - since >= steady) {
        lost_.erase(card.uuid);
        back_.erase(card.uuid);
      }
    }
    auto& kept = known_[card.uuid] = card;
    kept.defect.clear();
    if (lost_.contains(card.uuid)) card.defect = lost;
    keep_warnings(card, now);
  }
  silent.resize(std::min(silent.size(), most_cards - std::min<std::size_t>(most_cards, seen.cards.size())));
  for (auto& card : silent) {
    back_.erase(card.uuid);
    known_[card.uuid] = card;
    card.warnings.clear();
    card.defect = is_driven || (seen.hangs && lost_.contains(card.uuid)) ? lost
                  : seen.hangs                                           ? not_answering
                                                                         : no_driver;
    if (is_driven) lost_.insert(card.uuid);
    seen.cards.push_back(card);
  }
  const auto is_unknown = [this](const std::string& uuid) { return !known_.contains(uuid); };
  std::erase_if(xids_, [&](const auto& entry) { return is_unknown(entry.first); });
  std::erase_if(lost_, is_unknown);
  std::erase_if(back_, [&](const auto& entry) { return is_unknown(entry.first); });
  std::erase_if(warnings_, [&](const auto& entry) { return is_unknown(entry.first); });
  std::erase_if(fading_, [&](const auto& entry) { return is_unknown(entry.first.first); });
  std::erase_if(links_, [&](const auto& entry) {
    const auto blank = entry.first.find(' ');
    return is_unknown(entry.first.substr(0, blank)) || is_unknown(entry.first.substr(blank + 1));
  });
  std::ranges::sort(seen.cards, {}, [](const card& card) { return std::tie(card.minor, card.uuid); });
  for (auto& card : seen.cards) {
    // A driver that hangs is the same one afterwards; a driver that is loaded again makes its cards begin again.
    if (const auto xid = xids_.find(card.uuid); (is_driven || seen.hangs) && xid != xids_.end())
      card.defect = std::string(xid_prefix) + std::to_string(xid->second);
    if (card.defect.empty() && without_mps_.contains(card.uuid)) card.defect = api::mps_failed;
    card.is_limited = limited_.contains(card.uuid);
    card.links.clear();
    for (const auto& other : seen.cards) {
      const auto link = links_.find(pair_of(card, other));
      card.links.push_back(link == links_.end() ? quota::link() : link->second);
    }
  }
  return seen;
}

}  // namespace agent::cards
