// Limits of namespaces, by hand and beside a list of pods that is added up anew each time.
#include "quota/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <random>
#include <set>

namespace quota {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

charge of(std::int64_t cores, std::int64_t mib, std::int64_t cards, const char* model = "") {
  return {.model = model, .of = {cores, mib, cards}};
}
tenant with(const char* name, const char* cohort, std::vector<tenant::limit> limits) {
  return {.name_space = name, .cohort = cohort, .limits = std::move(limits)};
}

class limited : public testing::Test {
 protected:
  std::string check(const char* name_space, const charge& what, const char* uid = "new") const {
    const auto no = it.check(uid, name_space, {&what, 1});
    return no ? text_of(*no) : "allowed";
  }
  allowances it;
};

TEST_F(limited, S14_a_namespace_has_cores_memory_and_cards_and_the_limit_that_refuses_is_named) {
  it.put(with("a", "", {{.model = "", .nominal = {200, 8192, 3}, .borrowing = {}}}));
  it.book("p", "a", {of(150, 4096, 2, "T4")});
  EXPECT_EQ(check("a", of(50, 4096, 1)), "allowed");
  EXPECT_EQ(check("a", of(51, 0, 0)), "namespace a may use 200 cores, uses 150, asks for 51");
  EXPECT_EQ(check("a", of(0, 4097, 0)), "namespace a may use 8192 MiB of card memory, uses 4096, asks for 4097");
  EXPECT_EQ(check("a", of(0, 0, 2)), "namespace a may use 3 cards, uses 2, asks for 2");
  EXPECT_EQ(check("nobody", of(1'000'000, 0, 0)), "allowed");
  it.remove("a");
  EXPECT_EQ(check("a", of(51, 0, 0)), "allowed");
}

TEST_F(limited, S48_a_model_has_a_limit_of_its_own) {
  it.put(with("a", "", {{.model = "T4", .nominal = {std::nullopt, std::nullopt, 1}, .borrowing = {}}}));
  it.book("p", "a", {of(100, 1, 1, "A10")});
  EXPECT_EQ(check("a", of(100, 1, 1, "T4")), "allowed");
  it.book("q", "a", {of(100, 1, 1, "T4")});
  EXPECT_EQ(check("a", of(100, 1, 1, "T4")), "namespace a may use 1 cards of model T4, uses 1, asks for 1");
  EXPECT_EQ(check("a", of(100, 1, 9, "A10")), "allowed");
}

TEST_F(limited, a_pod_that_is_booked_already_is_not_in_its_own_way) {
  it.put(with("a", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  it.book("p", "a", {of(100, 0, 1)});
  EXPECT_EQ(check("a", of(100, 0, 1), "p"), "allowed");
  EXPECT_EQ(check("a", of(1, 0, 1), "q"), "namespace a may use 100 cores, uses 100, asks for 1");
  it.book("p", "a", {of(10, 0, 1)});
  EXPECT_EQ(it.used("a", "").front(), 10);
  it.release("p");
  it.release("p");
  EXPECT_EQ(it.used("a", "").front(), 0);
}

TEST_F(limited, pods_that_are_to_leave_are_left_out_of_the_namespace_and_of_the_cohort) {
  it.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  it.put(with("b", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  it.put(with("c", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  it.book("p", "a", {of(80, 0, 1)});
  it.book("q", "b", {of(90, 0, 1)});
  it.book("r", "c", {of(100, 0, 1)});
  const auto allowed = [&](const char* name_space, std::int64_t cores, const std::vector<std::string>& gone) {
    const auto one = of(cores, 0, 1);
    return !it.check("new", name_space, {&one, 1}, gone);
  };
  EXPECT_FALSE(allowed("a", 60, {}));
  EXPECT_FALSE(allowed("a", 60, {"r", "nobody"}));
  EXPECT_TRUE(allowed("a", 110, {"p"}));
  EXPECT_FALSE(allowed("a", 111, {"p"}));
  EXPECT_TRUE(allowed("a", 120, {"q"})) << "lent by b";
  EXPECT_TRUE(allowed("a", 200, {"p", "q"}));
  EXPECT_TRUE(allowed("c", 100, {"r"}));
  EXPECT_FALSE(allowed("c", 100, {"p", "q"}));
}

TEST_F(limited, what_stands_is_the_same_for_one_and_for_all_of_its_cohort_and_has_a_version) {
  it.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, 2}, .borrowing = {}}}));
  it.put(with("b", "red", {{.model = "", .nominal = {200, std::nullopt, 2}, .borrowing = {}}}));
  it.put(with("c", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  const auto red = it.version_of("a"), alone = it.version_of("c");
  EXPECT_EQ(it.version_of("b"), red);
  it.book("p", "a", {of(150, 0, 1)});
  EXPECT_NE(it.version_of("b"), red);
  EXPECT_EQ(it.version_of("c"), alone);
  const auto all = it.standings_together("b");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("a"), it.standings("a"));
  EXPECT_EQ(all.at("b"), it.standings("b"));
  EXPECT_EQ(all.at("b").at(0).lent, 50);
  EXPECT_EQ(it.standings_together("c").size(), 1u);
  const auto before = it.version_of("b");
  it.remove("a");
  EXPECT_NE(it.version_of("b"), before);
  EXPECT_EQ(it.standings("b").at(0).lent, 0);
}

TEST_F(limited, S14_what_one_does_not_use_the_others_of_its_cohort_may_and_who_lent_what_is_said) {
  it.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  it.put(with(
      "b", "red",
      {{.model = "", .nominal = {200, std::nullopt, std::nullopt}, .borrowing = {50, std::nullopt, std::nullopt}}}));
  it.put(with(
      "c", "red",
      {{.model = "", .nominal = {300, std::nullopt, std::nullopt}, .borrowing = {0, std::nullopt, std::nullopt}}}));
  it.put(with("d", "blue", {{.model = "", .nominal = {900, std::nullopt, std::nullopt}, .borrowing = {}}}));
  EXPECT_EQ(check("c", of(301, 0, 1)), "namespace c may use 300 cores with what it may borrow, uses 0, asks for 301");
  EXPECT_EQ(check("a", of(600, 0, 1)), "allowed");
  EXPECT_EQ(check("a", of(601, 0, 1)), "cohort red of namespace a may use 600 cores, uses 0, asks for 601");
  it.book("p", "a", {of(350, 0, 1)});
  it.book("q", "b", {of(100, 0, 1)});
  EXPECT_THAT(it.loans("red"), ElementsAre(loan{"a", "b", "", resource::cores, 100},  //
                                           loan{"a", "c", "", resource::cores, 150}));
  EXPECT_THAT(it.standings("a"), ElementsAre(standing{"", resource::cores, 100, 350, 250, 0}));
  EXPECT_THAT(it.standings("c"), ElementsAre(standing{"", resource::cores, 300, 0, 0, 150}));
  EXPECT_THAT(it.loans("blue"), IsEmpty());
  // Within its own nominal, and still refused: the others have it.
  EXPECT_EQ(check("c", of(200, 0, 1)), "cohort red of namespace c may use 600 cores, uses 450, asks for 200");
  it.release("p");
  EXPECT_EQ(check("c", of(200, 0, 1)), "allowed");
  EXPECT_EQ(check("b", of(151, 0, 1)), "namespace b may use 250 cores with what it may borrow, uses 100, asks for 151");
}

TEST_F(limited, S48_a_pool_a_priority_and_an_isolation_have_limits_of_their_own) {
  const bounds one_card{std::nullopt, std::nullopt, 1};
  it.put(with("a", "",
              {{.model = "", .nominal = one_card, .only = {.pool = "red"}},
               {.model = "", .nominal = one_card, .only = {.priority_from = 1000}},
               {.model = "T4", .nominal = one_card, .only = {.priority_from = -5, .priority_to = 5}},
               {.model = "", .nominal = one_card, .only = {.isolated = isolation::soft}}}));
  auto one = of(10, 10, 1, "T4");
  one.pool = "red";
  one.priority = 2000;
  one.isolated = isolation::mps;
  it.book("p", "a", {one});
  EXPECT_EQ(check("a", one, "p"), "allowed");
  EXPECT_EQ(check("a", one), "namespace a may use 1 cards in pool red, uses 1, asks for 1");
  one.pool = "blue";
  EXPECT_EQ(check("a", one), "namespace a may use 1 cards for priorities from 1000, uses 1, asks for 1");
  one.priority = 5;
  EXPECT_EQ(check("a", one), "allowed");
  it.book("q", "a", {one});
  EXPECT_EQ(check("a", one), "namespace a may use 1 cards of model T4 for priorities from -5 to 5, uses 1, asks for 1");
  one.priority = 6;
  EXPECT_EQ(check("a", one), "allowed");
  one.isolated = isolation::soft;
  it.book("r", "a", {one});
  EXPECT_EQ(check("a", one), "namespace a may use 1 cards with isolation soft, uses 1, asks for 1");
  EXPECT_EQ(it.used("a", "T4", {.pool = "blue"})[2], 2);
  EXPECT_THAT(it.standings("a")[0], (standing{"", resource::cards, 1, 1, 0, 0, {.pool = "red"}}));
}

TEST_F(limited, a_namespace_may_demand_isolation) {
  auto who = with("a", "", {});
  who.at_least = isolation::mps;
  it.put(who);
  auto one = of(10, 10, 1, "T4");
  EXPECT_EQ(check("a", one), "allowed");
  one.isolated = isolation::soft;
  EXPECT_EQ(check("a", one), "namespace a demands isolation mps or better, the pod would have soft");
  one.isolated = isolation::exclusive;
  EXPECT_EQ(check("a", one), "allowed");
  EXPECT_EQ(isolation_of({.whole = true, .by = mode::vgpu}), isolation::exclusive);
  EXPECT_EQ(isolation_of({.by = mode::vgpu}), isolation::soft);
  EXPECT_EQ(isolation_of({.by = mode::mps}), isolation::mps);
  EXPECT_EQ(isolation_of({.by = mode::share}), isolation::none);
  const holding both{.node = "n",
                     .grants = {{.whole = true, .card = "A"}, {.cores = 20, .memory_mib = 100, .card = "B"}},
                     .counts = {}};
  const auto charges = charges_of(both, nullptr, {.priority = 7, .isolated = isolation::soft});
  ASSERT_EQ(charges.size(), 2U);
  EXPECT_EQ(charges[0].isolated, isolation::soft);
  EXPECT_EQ(charges[1].isolated, isolation::exclusive);
  EXPECT_EQ(charges[1].priority, 7);
}

TEST(limits, a_whole_card_is_charged_with_all_its_memory_and_a_card_nobody_knows_without_a_model) {
  const node on{.name = "n",
                .serves = {},
                .cards = {{.uuid = "A", .model = "T4", .memory_mib = 8192}},
                .counts = {},
                .placement = {}};
  const holding held{.node = "n",
                     .grants = {{.whole = true, .card = "A"},
                                {.cores = 20, .memory_mib = 100, .card = "gone"},
                                {.cores = -5, .memory_mib = INT64_MAX, .card = "A"}},
                     .counts = {}};
  const auto most = std::int64_t{1} << 40;
  EXPECT_THAT(charges_of(held, &on), ElementsAre(of(20, 100, 1), of(100, 8192 + most, 2, "T4")));
  EXPECT_THAT(charges_of(held, nullptr), ElementsAre(of(120, 100 + most, 3)));
}

TEST(limits, before_a_node_is_chosen_the_charge_is_what_is_known) {
  demand what;
  what.add(need{.cards = 2, .whole = true});
  what.add(need{.cards = 3, .cores = 10, .memory_mib = 1000});
  what.add(need{.cards = 1, .cores = 5, .memory_percent = 50});
  EXPECT_EQ(charges_of(what), std::vector{of(235, 3000, 6)});
  what.clear();
  what.add(need{.cards = 1'000'000'000, .cores = 100, .memory_mib = INT64_MAX});
  EXPECT_GT(charges_of(what).at(0).of[1], 0);
}

// ---- beside a list
// -----------------------------------------------------------------------------------------------------

struct held_pod {
  std::string name_space;
  holding what;
  traits like;
};

/// One row of limits, as the list sees it.
struct row_key {
  std::string model;
  scope only;
};

class plain {
 public:
  std::map<std::string, held_pod> pods;
  std::map<std::string, tenant> tenants;
  std::map<std::string, card> cards;
  std::map<std::string, std::string> pools;  // by node

  long one(const holding& of, const traits& like, const row_key& row, int which) const {
    long sum = 0;
    const auto& only = row.only;
    for (const auto& part : of.grants) {
      const auto& on = cards.at(part.card);
      if (!row.model.empty() && on.model != row.model) continue;
      if (!only.pool.empty() && pools.at(of.node) != only.pool) continue;
      if (only.priority_from && like.priority < *only.priority_from) continue;
      if (only.priority_to && like.priority > *only.priority_to) continue;
      if (only.isolated && *only.isolated != (part.whole ? isolation::exclusive : *like.isolated)) continue;
      sum += which == 2   ? 1
             : which == 1 ? (part.whole ? on.memory_mib : part.memory_mib)
             : part.whole ? 100
                          : part.cores;
    }
    return sum;
  }
  long used(const std::string& name, const row_key& row, int which, const std::string& but = "") const {
    long sum = 0;
    for (const auto& [uid, pod] : pods)
      if (pod.name_space == name && uid != but) sum += one(pod.what, pod.like, row, which);
    return sum;
  }
  std::optional<long> nominal(const std::string& name, const row_key& row, int which) const {
    for (const auto& limit : tenants.at(name).limits)
      if (limit.model == row.model && limit.only == row.only) return limit.nominal[static_cast<std::size_t>(which)];
    return {};
  }
  /// Nominal less use, of all of the cohort that have a nominal.
  std::map<std::string, long> spare(const std::string& cohort, const row_key& row, int which,
                                    const std::string& but = "") const {
    std::map<std::string, long> out;
    for (const auto& [name, who] : tenants)
      if (const auto has = nominal(name, row, which); has && who.cohort == cohort)
        out[name] = *has - used(name, row, which, but);
    return out;
  }
  bool allowed(const std::string& uid, const std::string& name, const holding& what, const traits& like) const {
    if (!tenants.contains(name)) return true;
    const auto& who = tenants.at(name);
    for (const auto& part : what.grants)
      if (who.at_least && (part.whole ? isolation::exclusive : *like.isolated) < *who.at_least) return false;
    for (const auto& row : who.limits)
      for (int which = 0; which < 3; ++which) {
        const row_key key{row.model, row.only};
        const long asked = one(what, like, key, which);
        const auto has = row.nominal[static_cast<std::size_t>(which)];
        if (!has || asked == 0) continue;
        const long own = used(name, key, which, uid) + asked - *has;
        const auto more = row.borrowing[static_cast<std::size_t>(which)];
        long left = -asked;
        for (const auto& [other, free] : spare(who.cohort, key, which, uid)) left += free;
        if (who.cohort.empty() ? own > 0 : left < 0 || (more && own > *more)) return false;
      }
    return true;
  }
};

class life {
 public:
  life(unsigned long seed, bool strict) : random_(seed), strict_(strict) {
    for (int n = 0; n < 3; ++n) {
      node of{.name = "n" + std::to_string(n), .serves = {}, .cards = {}, .counts = {}, .placement = {}};
      for (int i = 0; i < 4; ++i) {
        of.cards.push_back({.uuid = of.name + "-" + std::to_string(i),
                            .model = below(2) == 0 ? "T4" : "A10",
                            .memory_mib = 1000 * (1 + below(4))});
        plain_.cards[of.cards.back().uuid] = of.cards.back();
      }
      of.pool = plain_.pools[of.name] = n == 0 ? "" : "blue";
      book_.put(of);
      nodes_.push_back(of);
    }
    for (const auto* name : {"a", "b", "c", "d"}) put(name);
  }

  void step() {
    const int what = below(100);
    if (what < 60)
      arrive();
    else if (what < 90)
      leave();
    else if (!strict_ && what < 95)
      put(std::string(1, static_cast<char>('a' + below(4))));
    compare(it_);
    if (what == 99) {
      allowances anew = it_;
      anew.book("stale", "a", {of(1, 1, 1)});
      anew.recount(
          book_, [&](const std::string& uid) { return plain_.pods.at(uid).name_space; },
          [&](const std::string& uid) { return plain_.pods.at(uid).like; });
      compare(anew);
    }
  }

  long allowed = 0, refused = 0, lent = 0;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned long>(n)); }
  std::optional<std::int64_t> bound(int of) {
    return below(4) == 0 ? std::nullopt : std::optional<std::int64_t>{below(of)};
  }

  void put(const std::string& name) {
    tenant who{.name_space = name, .cohort = name == "d" ? "" : "red", .limits = {}};
    for (const auto& [model, only] : rows) {
      if (below(4) == 0) continue;
      who.limits.push_back({.model = model,
                            .nominal = {bound(400), bound(8000), bound(8)},
                            .borrowing = {bound(300), bound(5000), bound(5)},
                            .only = only});
    }
    if (below(4) == 0) who.at_least = below(2) == 0 ? isolation::soft : isolation::mps;
    it_.put(who);
    plain_.tenants[name] = who;
  }

  void arrive() {
    const std::string name(1, static_cast<char>('a' + below(5)));  // e is no tenant
    const auto& on = nodes_[static_cast<std::size_t>(below(3))];
    holding what{.node = on.name, .grants = {}, .counts = {}};
    for (int i = 1 + below(3); i > 0; --i)
      what.grants.push_back({.whole = below(3) == 0,
                             .cores = below(60),
                             .memory_mib = below(1500),
                             .card = on.cards[static_cast<std::size_t>(below(4))].uuid});
    std::string uid = "pod-" + std::to_string(++made_);
    if (!plain_.pods.empty() && below(5) == 0) uid = plain_.pods.begin()->first;  // asked again, for something else
    const traits like{.priority = below(3), .isolated = static_cast<isolation>(below(3))};
    const auto charges = charges_of(what, &on, like);
    const auto no = it_.check(uid, name, charges);
    ASSERT_EQ(!no, plain_.allowed(uid, name, what, like)) << (no ? text_of(*no) : "allowed");
    if (no) {
      ++refused;
    }
    if (no && no->what != exceeded::kind::isolation) {
      ASSERT_GT(no->asked, no->limit - no->used) << text_of(*no);
      const int which = static_cast<int>(no->of);
      ASSERT_EQ(no->asked, plain_.one(what, like, {no->model, no->only}, which));
      if (no->what != exceeded::kind::cohort) ASSERT_EQ(no->used, plain_.used(name, {no->model, no->only}, which, uid));
    }
    if (plain_.pods.contains(uid)) return;
    // What the API has is booked whatever the limits say.
    const bool truth = !strict_ && below(10) == 0;
    if (no && !truth) return;
    if (book_.assume(uid, what, 1) != booked::done) return;
    ++allowed;
    it_.book(uid, name, charges);
    plain_.pods[uid] = {name, what, like};
  }

  void leave() {
    if (plain_.pods.empty()) return;
    auto at = plain_.pods.begin();
    std::advance(at, below(static_cast<int>(plain_.pods.size())));
    ASSERT_TRUE(book_.release(at->first));
    it_.release(at->first);
    plain_.pods.erase(at);
  }

  void compare(const allowances& got) {
    for (const auto* name : {"a", "b", "c", "d", "e"})
      for (const auto* model : {"", "T4", "A10"})
        for (int i = 0; i < 3; ++i)
          ASSERT_EQ(got.used(name, model)[static_cast<std::size_t>(i)], plain_.used(name, {model, {}}, i));
    const auto loans = got.loans("red");
    for (const auto& row : rows)
      for (int i = 0; i < 3; ++i) {
        const auto spare = plain_.spare("red", row, i);
        std::map<std::string, long> borrowed, given;
        long all = 0, free = 0, taken = 0, total = 0;
        for (const auto& one : loans) {
          if (one.model != row.model || one.only != row.only || static_cast<int>(one.of) != i) continue;
          ASSERT_GT(one.amount, 0);
          borrowed[one.borrower] += one.amount;
          given[one.lender] += one.amount;
          total += one.amount;
        }
        for (const auto& [name, left] : spare) {
          all += left;
          (left > 0 ? free : taken) += std::labs(left);
          ASSERT_LE(borrowed[name], std::max(-left, 0L));
          ASSERT_LE(given[name], std::max(left, 0L));
        }
        ASSERT_EQ(total, std::min(free, taken));
        ASSERT_EQ(borrowed.size() + given.size(), 2 * spare.size()) << "a loan of somebody without a nominal";
        lent += total > 0 ? 1 : 0;
        if (strict_) ASSERT_GE(all, 0) << "the cohort has more than its nominal";
        for (const auto& [name, left] : spare)
          for (const auto& one : got.standings(name))
            if (one.model == row.model && one.only == row.only && static_cast<int>(one.of) == i)
              ASSERT_EQ(one, (standing{row.model, one.of, *plain_.nominal(name, row, i), plain_.used(name, row, i),
                                       std::max(-left, 0L), given[name], row.only}));
      }
  }

  const std::vector<row_key> rows{{"", {}},
                                  {"T4", {}},
                                  {"", {.pool = "blue"}},
                                  {"", {.priority_from = 1}},
                                  {"T4", {.priority_to = 1, .isolated = isolation::soft}},
                                  {"", {.isolated = isolation::exclusive}}};
  std::mt19937_64 random_;
  bool strict_;
  allowances it_;
  ledger book_;
  plain plain_;
  std::vector<node> nodes_;
  int made_ = 0;
};

TEST(limits_property, S14_S48_limits_hold_beside_a_list_that_is_added_up_anew) {
  const char* const text = std::getenv("QM_SEED");
  const auto seed = text == nullptr ? 1UL : std::strtoul(text, nullptr, 10);
  long allowed = 0, refused = 0, lent = 0;
  for (unsigned long number = 0; number < 60; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", life " + std::to_string(number));
    life one{seed * 1'000'003 + number, number % 2 == 0};
    for (int i = 0; i < 100; ++i) {
      one.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    allowed += one.allowed, refused += one.refused, lent += one.lent;
  }
  EXPECT_GT(allowed, 300);
  EXPECT_GT(refused, 300);
  EXPECT_GT(lent, 300);
}

}  // namespace
}  // namespace quota
