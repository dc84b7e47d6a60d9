// The time of cards against a model that counts every second by itself. QM_USAGE_SCHEDULES for the long form, QM_SEED
// to repeat one.
#include "quota/usage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "small_world.hpp"
#include "test/rounds.hpp"

namespace {

using quota::card_time, quota::model_rows, quota::seconds, quota::usage_book, quota::usage_card, quota::usage_holder,
    quota::usage_key, quota::usage_rows;

usage_card t4(bool healthy = true) { return {"T4", 100, 15360, healthy}; }
usage_holder share(std::string name_space, std::string card, std::int64_t cores, std::int64_t memory) {
  return {std::move(name_space), "", 0, {{std::move(card), "vGPU", cores, memory}}};
}

card_time sum(const usage_rows& rows) {
  card_time out;
  for (const auto& [key, time] : rows) out += time;
  return out;
}

TEST(usage, sums_of_edited_numbers_stay_at_the_largest) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((card_time{most, least} + card_time{1, -1}), (card_time{most, least}));
  EXPECT_EQ((card_time{most, least} + card_time{-1, 1}), (card_time{most - 1, least + 1}));
}

TEST(usage, a_share_and_the_rest_of_its_card) {
  usage_book book(1000);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.hold("p", share("team", "a", 30, 2048), 1010, 1010);
  book.release("p", 1070);
  const auto sums = book.settle(1100);
  const usage_key key{"T4", "vGPU", "", 0};
  EXPECT_EQ(sums.namespaces.at("team"), (usage_rows{{key, {30 * 60, 2048 * 60}}}));
  const auto& row = sums.models.at("T4");
  EXPECT_EQ(row.capacity, (card_time{100 * 100, 15360 * 100}));
  EXPECT_EQ(row.parts, (card_time{30 * 60, 2048 * 60}));
  EXPECT_EQ(row.idle, row.capacity - row.parts);
  EXPECT_TRUE(row.unhealthy.zero());
  EXPECT_TRUE(row.unattributed.zero());
  EXPECT_TRUE(row.beyond.zero());
}

TEST(usage, a_stretch_that_is_settled_is_not_settled_again) {
  usage_book book(0);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.hold("p", share("team", "a", 10, 1), 1000, 1000);
  EXPECT_EQ(sum(book.settle(1060).namespaces.at("team")).core_seconds, 600);
  EXPECT_TRUE(book.settle(1060).models.empty());
  EXPECT_TRUE(book.settle(900).models.empty());
  EXPECT_EQ(sum(book.settle(1061).namespaces.at("team")).core_seconds, 10);
}

TEST(usage, steps_of_settling_are_of_one_moment) {
  usage_book book(1000);
  book.resume(1000);
  const std::vector<std::string> cards{"a", "b", "c"};
  for (const auto& card : cards) {
    book.put_card(card, t4(), 1000);
    book.hold("on-" + card, share("team", card, 10, 1), 1000, 1000);
  }
  book.begin_settling(1060);
  EXPECT_EQ(book.settled(), 1060);
  EXPECT_TRUE(book.settle_some(1));
  for (const auto& card : cards) {  // one is summed up, two are not: all of this is later
    EXPECT_TRUE(book.release("on-" + card, 1050));
    book.hold("next-" + card, share("other", card, 50, 1), 1040, 1061);
    book.put_card(card, t4(false), 1055);
    book.put_card("new-" + card, t4(), 1059);
  }
  EXPECT_TRUE(book.settle_some(1));
  EXPECT_FALSE(book.settle_some(7));
  const auto first = book.take_settled();
  EXPECT_FALSE(book.is_settling());
  EXPECT_EQ(first.begin, 1000);
  EXPECT_EQ(sum(first.amounts.namespaces.at("team")).core_seconds, 3 * 10 * 60);
  EXPECT_FALSE(first.amounts.namespaces.contains("other"));
  EXPECT_EQ(first.amounts.models.at("T4").capacity.core_seconds, 3 * 100 * 60);
  EXPECT_TRUE(first.amounts.models.at("T4").unhealthy.zero());
  const auto second = book.settle(1070);
  EXPECT_FALSE(second.namespaces.contains("team"));
  EXPECT_EQ(sum(second.namespaces.at("other")).core_seconds, 3 * 50 * 10);
  EXPECT_EQ(second.models.at("T4").capacity.core_seconds, 6 * 100 * 10);
}

TEST(usage, a_gap_before_the_start_is_unattributed_but_for_pods_that_are_still_there) {
  usage_book book(2000);
  book.put_card("a", t4(), 2000);
  book.hold("old", share("team", "a", 40, 1000), 1500, 2000);   // since before the last checkpoint
  book.hold("late", share("team", "a", 10, 1000), 1950, 2000);  // came in the gap
  book.resume(1900);
  const auto sums = book.settle(2100);
  EXPECT_EQ(sum(sums.namespaces.at("team")).core_seconds, 40 * 200 + 10 * 150);
  const auto& row = sums.models.at("T4");
  EXPECT_EQ(row.capacity.core_seconds, 100 * 200);
  EXPECT_EQ(row.unattributed.core_seconds, 60 * 100 - 10 * 50);
  EXPECT_EQ(row.idle.core_seconds, 50 * 100);
  EXPECT_TRUE(row.adds_up());
}

TEST(usage, a_pod_that_vanished_is_attributed_while_it_was_seen) {
  usage_book book(1000);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.hold("p", share("team", "a", 50, 100), 1000, 1000);
  EXPECT_TRUE(book.lose("p", 1030, 1050));
  EXPECT_FALSE(book.lose("p", 1030, 1050));
  const auto sums = book.settle(1100);
  EXPECT_EQ(sum(sums.namespaces.at("team")).core_seconds, 50 * 30);
  const auto& row = sums.models.at("T4");
  EXPECT_EQ(row.unattributed.core_seconds, 50 * 20);
  EXPECT_EQ(row.idle.core_seconds, 100 * 100 - 50 * 50);
}

TEST(usage, a_sick_card_with_a_holder_is_held_and_without_one_unhealthy) {
  usage_book book(1000);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.hold("p", share("team", "a", 25, 0), 1000, 1000);
  book.put_card("a", t4(false), 1010);
  book.release("p", 1020);
  book.put_card("a", t4(), 1030);
  const auto sums = book.settle(1040);
  const auto& row = sums.models.at("T4");
  EXPECT_EQ(row.parts.core_seconds, 25 * 20);
  EXPECT_EQ(row.unhealthy.core_seconds, 75 * 10 + 100 * 10);
  EXPECT_EQ(row.idle.core_seconds, 75 * 10 + 100 * 10);
}

TEST(usage, what_goes_beyond_a_card_has_its_own_column) {
  usage_book book(1000);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.hold("p", share("team", "a", 80, 10000), 1000, 1000);
  book.hold("q", share("other", "a", 80, 1000), 1000, 1000);
  const auto row = book.settle(1010).models.at("T4");
  EXPECT_EQ(row.beyond, (card_time{600, 0}));
  EXPECT_EQ(row.idle, (card_time{0, 4360 * 10}));
  EXPECT_TRUE(row.adds_up());
}

TEST(usage, a_card_that_is_gone_has_no_capacity) {
  usage_book book(1000);
  book.resume(1000);
  book.put_card("a", t4(), 1000);
  book.remove_card("a", 1010);
  EXPECT_EQ(book.settle(1020).models.at("T4").capacity.core_seconds, 100 * 10);
  EXPECT_EQ(book.cards(), 0U);
  EXPECT_TRUE(book.settle(1030).models.empty());
  book.put_card("a", t4(), 1040);
  EXPECT_EQ(book.settle(1050).models.at("T4").capacity.core_seconds, 100 * 10);
}

TEST(usage, rows_are_bounded_and_nothing_is_lost) {
  usage_rows rows;
  for (int i = 0; i < 1000; ++i) quota::add(rows, {"T4", "vGPU", "org" + std::to_string(i), 0}, {1, 2});
  EXPECT_EQ(rows.size(), quota::max_usage_rows);
  EXPECT_EQ(sum(rows), (card_time{1000, 2000}));
  EXPECT_EQ(rows.at({"other", "other", "other", 0}), (card_time{745, 1490}));
}

/// The same world, a second at a time. What it gets is what really happened, and what an operator can have seen of
/// it.
class second_by_second {
 public:
  struct hold_of_pod {
    usage_holder holder;
    std::string pod;
    seconds begin, end, lost_until;  // lost_until > end: it vanished unseen
  };
  struct card_phase {
    std::string name;
    usage_card card;
    bool there;
    seconds begin;
  };
  std::vector<hold_of_pod> holds;
  std::vector<card_phase> phases;  // by time

  usage_book::sums sums(seconds begin, seconds end, seconds start) const {
    usage_book::sums out;
    for (auto now = begin; now < end; ++now) {
      std::map<std::string, const card_phase*> cards, first;
      for (const auto& phase : phases) {
        first.try_emplace(phase.name, &phase);
        if (phase.begin <= std::max(now, start)) cards[phase.name] = &phase;
      }
      const auto phase_of = [&](const std::string& name) {
        if (cards.contains(name)) return cards.at(name);
        return first.contains(name) ? first.at(name) : nullptr;
      };
      std::map<std::string, card_time> parts, lost;
      for (const auto& held : holds) {
        if (now < held.begin || now >= std::max(held.end, held.lost_until)) continue;
        for (const auto& part : held.holder.parts) {
          const card_time time{part.cores, part.memory_mib};
          if (now >= held.end) {
            lost[part.card] += time;
            continue;
          }
          parts[part.card] += time;
          const auto* phase = phase_of(part.card);
          quota::add(out.namespaces[held.holder.name_space],
                     {phase ? phase->card.model : "", part.mode, held.holder.organization, held.holder.priority}, time);
        }
      }
      std::set<std::string> names;
      for (const auto& [name, phase] : cards) names.insert(name);
      for (const auto& [name, time] : parts) names.insert(name);
      for (const auto& [name, time] : lost) names.insert(name);
      for (const auto& name : names) {
        const auto* phase = phase_of(name);
        const bool there = phase && phase->there && cards.contains(name);
        quota::model_time row;
        if (there) row.capacity = {phase->card.cores, phase->card.memory_mib};
        row.parts = parts[name];
        row.unattributed = lost[name];
        const auto one_column = [&](std::int64_t card_time::* column) {
          const auto rest = row.capacity.*column - row.parts.*column - row.unattributed.*column;
          if (rest < 0)
            row.beyond.*column = -rest;
          else if (now < start)
            row.unattributed.*column += rest;
          else if (there && !phase->card.healthy)
            row.unhealthy.*column = rest;
          else
            row.idle.*column = rest;
        };
        one_column(&card_time::core_seconds);
        one_column(&card_time::memory_mib_seconds);
        if (!row.capacity.zero() || !row.parts.zero() || !row.unattributed.zero())
          out.models[phase ? phase->card.model : ""] += row;
      }
    }
    return out;
  }
};

void add(usage_book::sums& total, const usage_book::sums& more) {
  for (const auto& [name_space, rows] : more.namespaces)
    for (const auto& [key, time] : rows) quota::add(total.namespaces[name_space], key, time);
  for (const auto& [model, row] : more.models) total.models[model] += row;
}

/// One operator after another: each begins with what is there, takes up where the last checkpoint was, and is killed.
class schedule {
 public:
  explicit schedule(unsigned long seed) : random_(seed), card_count_(1 + below(4)) {
    for (int i = 0; i < card_count_; ++i) all_cards_[card_name(i)] = {i % 2 ? "A100" : "T4", 100, 1000 + i, true};
    cards_ = all_cards_;
  }

  void run() {
    for (int lives = 1 + below(4); lives > 0; --lives) live();
    EXPECT_EQ(written_.namespaces, expected_.namespaces);
    ASSERT_EQ(written_.models.size(), expected_.models.size());
    for (const auto& [model, row] : expected_.models) {
      EXPECT_EQ(written_.models.at(model), row) << model;
      EXPECT_TRUE(row.adds_up()) << model;
      card_time parts;
      for (const auto& [name_space, rows] : written_.namespaces)
        for (const auto& [key, time] : rows)
          if (key.model == model) parts += time;
      EXPECT_EQ(parts, written_.models.at(model).parts) << model;
    }
  }

 private:
  static constexpr auto open = std::numeric_limits<seconds>::max();
  struct live_pod {
    usage_holder holder;
    seconds begin;
  };

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  static std::string card_name(int index) { return "card" + std::to_string(index); }

  void live() {
    start_ = now_;
    book_.emplace(start_);
    model_ = {};
    for (const auto& [name, card] : cards_) put_card(name, true);
    for (const auto& [pod, live] : pods_) begin_hold(pod, live);
    if (committed_ == 0) committed_ = start_;
    book_->resume(committed_);
    settled_ = committed_;
    bool alive = true;
    for (int steps = below(40); steps > 0 && alive; --steps) {
      now_ += below(6);
      const int roll = below(100);
      if (roll < 75)
        change(roll);
      else
        alive = checkpoint();
    }
    now_ += below(50);  // the operator is gone, and pods go meanwhile without a trace
    while (!pods_.empty() && below(3) == 0) pods_.erase(pods_.begin());
  }
  void change(int roll) {
    if (roll < 35)
      come();
    else if (roll < 60 && !pods_.empty())
      leave();
    else
      change_card();
  }
  void put_card(const std::string& name, bool there) {
    if (there)
      book_->put_card(name, cards_.at(name), now_);
    else
      book_->remove_card(name, now_);
    std::erase_if(model_.phases, [&](const auto& phase) { return phase.name == name && phase.begin == now_; });
    model_.phases.push_back({name, cards_.at(name), there, now_});
  }
  void begin_hold(const std::string& pod, const live_pod& live) {
    book_->hold(pod, live.holder, live.begin, now_);
    model_.holds.push_back({live.holder, pod, live.begin, open, 0});
  }
  /// A pod comes; its binding was up to two seconds ago.
  void come() {
    live_pod live{{"team" + std::to_string(below(2)), below(3) ? "" : "org", below(2), {}}, 0};
    live.begin = std::max(now_ - below(3), settled_);
    for (int parts = 1 + below(2), i = 0; i < parts && i < card_count_; ++i)
      if (cards_.contains(card_name(i)))
        live.holder.parts.push_back({card_name(i), below(2) ? "vGPU" : "pGPU", below(80), below(600)});
    const auto pod = "pod" + std::to_string(++pod_number_);
    begin_hold(pod, live);
    pods_.emplace(pod, live);
  }
  /// One ends, a moment ago, or unseen.
  void leave() {
    const auto gone = std::next(pods_.begin(), below(static_cast<int>(pods_.size())));
    const auto time = std::max({now_ - below(3), settled_, gone->second.begin});
    const bool is_lost = below(3) == 0;
    EXPECT_TRUE(is_lost ? book_->lose(gone->first, time, now_) : book_->release(gone->first, time));
    for (auto& held : model_.holds)
      if (held.pod == gone->first && held.end == open) {
        held.end = std::max(time, held.begin);
        held.lost_until = is_lost ? now_ : 0;
      }
    pods_.erase(gone);
  }
  /// A card falls sick, is well again, comes or goes.
  void change_card() {
    const auto name = card_name(below(card_count_));
    if (cards_.contains(name) && below(3) == 0) {
      put_card(name, false);
      cards_.erase(name);
      return;
    }
    if (cards_.contains(name))
      cards_[name].healthy = !cards_[name].healthy;
    else
      cards_[name] = all_cards_.at(name);
    put_card(name, true);
  }
  /// In steps, and the world goes on between two of them. False: killed in the middle of it, so that it does not count.
  bool checkpoint() {
    book_->begin_settling(now_);
    settled_ = std::max(settled_, now_);
    while (book_->settle_some(1) && below(8) > 0) {
      now_ += below(3);
      change(below(75));
    }
    const auto sums = book_->take_settled().amounts;
    for (const auto& [model, row] : sums.models) EXPECT_TRUE(row.adds_up()) << model;
    if (below(4) == 0) return false;
    add(written_, sums);
    add(expected_, model_.sums(committed_, settled_, start_));
    committed_ = settled_;
    return true;
  }

  std::mt19937_64 random_;
  int card_count_, pod_number_ = 0;
  std::map<std::string, usage_card> all_cards_, cards_;  // all, and those that are there
  std::map<std::string, live_pod> pods_;
  usage_book::sums written_, expected_;
  seconds now_ = 10'000, committed_ = 0, start_ = 0, settled_ = 0;
  std::optional<usage_book> book_;
  second_by_second model_;
};

void run_schedule(unsigned long seed) {
  SCOPED_TRACE("QM_SEED=" + std::to_string(seed));
  schedule(seed).run();
}

TEST(usage, S40_random_schedules_agree_with_a_model_that_counts_every_second) {
  const auto seed = small::number_from("QM_SEED", 0);
  if (seed > 0) return run_schedule(static_cast<unsigned long>(seed));
  const auto schedules = small::number_from("QM_USAGE_SCHEDULES", test::rounds(100, 400));
  ASSERT_GT(schedules, 0) << "QM_USAGE_SCHEDULES is no number from 1 on";
  for (long i = 1; i <= schedules && !testing::Test::HasFailure(); ++i) run_schedule(static_cast<unsigned long>(i));
}

}  // namespace
