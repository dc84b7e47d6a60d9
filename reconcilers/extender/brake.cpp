#include "reconcilers/extender/brake.hpp"

#include <algorithm>
#include <charconv>

#include "text/list.hpp"

namespace reconcilers::extender {
namespace {

constexpr std::size_t most_named = 5;

std::size_t sick_cards(const api::accelerator_node* node) {
  if (!node) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(node->cards, [](const api::reported_card& card) { return !card.healthy(); }));
}

bool reports(const api::accelerator_node* node) { return node && !node->cards.empty(); }

}  // namespace

std::size_t brake::allowed() const {
  std::size_t number = 0;
  const auto* const last = max_withdrawn_.data() + max_withdrawn_.size();
  const auto [end, failed] = std::from_chars(max_withdrawn_.data(), last, number);
  if (failed == std::errc::result_out_of_range) return reporting_;
  if (failed != std::errc()) return 0;  // below zero
  if (end == last || *end != '%' || number == 0) return number;
  // With one place, one stolen token could hold back the truth about all other nodes.
  return std::max<std::size_t>((reporting_ * std::min<std::size_t>(number, 100) + 99) / 100, 2);
}

bool brake::holds_back(const std::string& node) const {
  const auto match = sick_.find(node);
  return match != sick_.end() && held_.contains({match->second.since, node});
}

std::vector<std::string> brake::held_nodes(std::size_t most) const {
  std::vector<std::string> out;
  for (const auto& [since, node] : held_) {
    if (out.size() == most) break;
    out.push_back(node);
  }
  return out;
}

std::vector<std::string> brake::allow(std::string_view max_withdrawn) {
  max_withdrawn_ = max_withdrawn;
  return settle();
}

std::vector<std::string> brake::take(const api::accelerator_node* before, const api::accelerator_node* after) {
  reporting_ += reports(after) ? 1 : 0;
  reporting_ -= reports(before) ? 1 : 0;
  const auto& name = (after ? after : before)->key.name;
  if (const auto match = sick_.find(name); match != sick_.end()) {
    const entry place{match->second.since, name};
    withdrawn_.erase(place);
    if (held_.erase(place) > 0) held_cards_ -= match->second.cards;
    sick_.erase(match);
  }
  if (const auto cards = sick_cards(after); cards > 0) {
    sick_[name] = {after->cards_healthy_since, cards};
    held_.insert({after->cards_healthy_since, name});
    held_cards_ += cards;
  }
  auto moved = settle();
  std::erase(moved, name);
  return moved;
}

void brake::shift(std::set<entry>& source, std::set<entry>::iterator position, std::set<entry>& target,
                  std::vector<std::string>& moved) {
  const auto cards = sick_.at(position->second).cards;
  if (&target == &held_)
    held_cards_ += cards;
  else
    held_cards_ -= cards;
  moved.push_back(position->second);
  target.insert(source.extract(position));
}

/// The first nodes, in the order of their time, are those that are believed.
std::vector<std::string> brake::settle() {
  std::vector<std::string> moved;
  const auto most = allowed();
  while (!held_.empty() && (withdrawn_.size() < most || (!withdrawn_.empty() && *held_.begin() < *withdrawn_.rbegin())))
    shift(held_, held_.begin(), withdrawn_, moved);
  while (withdrawn_.size() > most) shift(withdrawn_, std::prev(withdrawn_.end()), held_, moved);
  // A node that went and came back counts as before.
  std::ranges::sort(moved);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < moved.size();) {
    auto end = i;
    while (end < moved.size() && moved[end] == moved[i]) ++end;
    if ((end - i) % 2 == 1) out.push_back(moved[i]);
    i = end;
  }
  return out;
}

controller::condition held_back_condition(const brake& brake, std::int64_t generation) {
  controller::condition out;
  out.type = withdrawals_held_back;
  out.generation = generation;
  out.status = "False";
  out.reason = "BelowLimit";
  out.message = {"status.health.none_held"};
  if (brake.held() == 0) return out;
  out.status = "True";
  out.reason = "TooManySickNodes";
  text::phrase others;
  if (brake.held() > most_named) others = {"status.health.others"};
  out.message = {"status.health.held",
                 {{"sick", text::counted_phrase(brake.sick(), "status.nodes")},
                  {"reporting", std::to_string(brake.reporting())},
                  {"allowed", std::to_string(brake.allowed())},
                  {"cards", text::counted_phrase(brake.held_cards(), "status.health.cards")},
                  {"held", text::counted_phrase(brake.held(), "status.nodes")},
                  {"list", text::joined(brake.held_nodes(most_named))},
                  {"others", others}}};
  return out;
}

}  // namespace reconcilers::extender
