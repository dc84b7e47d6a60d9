// Limits of namespaces, by hand and against a list of pods that is added up from scratch each time.
#include "quota/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <random>
#include <set>

#include "test/quota/facts.hpp"
#include "test/rounds.hpp"

namespace quota {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

charge of(std::int64_t cores, std::int64_t mib, std::int64_t cards, const char* model = "") {
  return {.model = model, .amounts = {cores, mib, cards}};
}
tenant with(const char* name, const char* cohort, std::vector<tenant::limit> limits) {
  return {.name_space = name, .cohort = cohort, .limits = std::move(limits)};
}

class limited : public testing::Test {
 protected:
  std::string check(const char* name_space, const charge& charge, const char* uid = "new") const {
    const auto limit = allowances_.check(uid, name_space, {&charge, 1});
    return limit ? facts_of(*limit) : "allowed";
  }
  allowances allowances_;
};

TEST_F(limited, S14_a_namespace_has_cores_memory_and_cards_and_the_limit_that_refuses_is_named) {
  allowances_.put(with("a", "", {{.model = "", .nominal = {200, 8192, 3}, .borrowing = {}}}));
  allowances_.book("p", "a", {of(150, 4096, 2, "T4")});
  EXPECT_EQ(check("a", of(50, 4096, 1)), "allowed");
  EXPECT_EQ(check("a", of(51, 0, 0)), "nominal a cores 51 + 150 > 200");
  EXPECT_EQ(check("a", of(0, 4097, 0)), "nominal a memory 4097 + 4096 > 8192");
  EXPECT_EQ(check("a", of(0, 0, 2)), "nominal a cards 2 + 2 > 3");
  EXPECT_EQ(check("nobody", of(1'000'000, 0, 0)), "allowed");
  allowances_.remove("a");
  EXPECT_EQ(check("a", of(51, 0, 0)), "allowed");
}

TEST_F(limited, S48_a_model_has_a_limit_of_its_own) {
  allowances_.put(with("a", "", {{.model = "T4", .nominal = {std::nullopt, std::nullopt, 1}, .borrowing = {}}}));
  allowances_.book("p", "a", {of(100, 1, 1, "A10")});
  EXPECT_EQ(check("a", of(100, 1, 1, "T4")), "allowed");
  allowances_.book("q", "a", {of(100, 1, 1, "T4")});
  EXPECT_EQ(check("a", of(100, 1, 1, "T4")), "nominal a cards 1 + 1 > 1, model=T4");
  EXPECT_EQ(check("a", of(100, 1, 9, "A10")), "allowed");
}

TEST_F(limited, a_pod_that_is_booked_already_is_not_in_its_own_way) {
  allowances_.put(with("a", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  allowances_.book("p", "a", {of(100, 0, 1)});
  EXPECT_EQ(check("a", of(100, 0, 1), "p"), "allowed");
  EXPECT_EQ(check("a", of(1, 0, 1), "q"), "nominal a cores 1 + 100 > 100");
  allowances_.book("p", "a", {of(10, 0, 1)});
  EXPECT_EQ(allowances_.used("a", "").front(), 10);
  allowances_.release("p");
  allowances_.release("p");
  EXPECT_EQ(allowances_.used("a", "").front(), 0);
}

TEST_F(limited, pods_that_are_to_leave_are_left_out_of_the_namespace_and_of_the_cohort) {
  allowances_.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  allowances_.put(with("b", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  allowances_.put(with("c", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  allowances_.book("p", "a", {of(80, 0, 1)});
  allowances_.book("q", "b", {of(90, 0, 1)});
  allowances_.book("r", "c", {of(100, 0, 1)});
  const auto allowed = [&](const char* name_space, std::int64_t cores, const std::vector<std::string>& gone) {
    const auto charge = of(cores, 0, 1);
    return !allowances_.check("new", name_space, {&charge, 1}, gone);
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
  allowances_.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, 2}, .borrowing = {}}}));
  allowances_.put(with("b", "red", {{.model = "", .nominal = {200, std::nullopt, 2}, .borrowing = {}}}));
  allowances_.put(with("c", "", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  const auto red = allowances_.version_of("a"), alone = allowances_.version_of("c");
  EXPECT_EQ(allowances_.version_of("b"), red);
  allowances_.book("p", "a", {of(150, 0, 1)});
  EXPECT_NE(allowances_.version_of("b"), red);
  EXPECT_EQ(allowances_.version_of("c"), alone);
  const auto all = allowances_.standings_together("b");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("a"), allowances_.standings("a"));
  EXPECT_EQ(all.at("b"), allowances_.standings("b"));
  EXPECT_EQ(all.at("b").at(0).lent, 50);
  EXPECT_EQ(allowances_.standings_together("c").size(), 1u);
  const auto before = allowances_.version_of("b");
  allowances_.remove("a");
  EXPECT_NE(allowances_.version_of("b"), before);
  EXPECT_EQ(allowances_.standings("b").at(0).lent, 0);
}

TEST_F(limited, S14_what_one_does_not_use_the_others_of_its_cohort_may_and_who_lent_what_is_said) {
  allowances_.put(with("a", "red", {{.model = "", .nominal = {100, std::nullopt, std::nullopt}, .borrowing = {}}}));
  allowances_.put(with(
      "b", "red",
      {{.model = "", .nominal = {200, std::nullopt, std::nullopt}, .borrowing = {50, std::nullopt, std::nullopt}}}));
  allowances_.put(with(
      "c", "red",
      {{.model = "", .nominal = {300, std::nullopt, std::nullopt}, .borrowing = {0, std::nullopt, std::nullopt}}}));
  allowances_.put(with("d", "blue", {{.model = "", .nominal = {900, std::nullopt, std::nullopt}, .borrowing = {}}}));
  EXPECT_EQ(check("c", of(301, 0, 1)), "borrowing c cores 301 + 0 > 300, cohort=red");
  EXPECT_EQ(check("a", of(600, 0, 1)), "allowed");
  EXPECT_EQ(check("a", of(601, 0, 1)), "cohort a cores 601 + 0 > 600, cohort=red");
  allowances_.book("p", "a", {of(350, 0, 1)});
  allowances_.book("q", "b", {of(100, 0, 1)});
  EXPECT_THAT(allowances_.loans("red"), ElementsAre(loan{"a", "b", "", resource::cores, 100},  //
                                                    loan{"a", "c", "", resource::cores, 150}));
  EXPECT_THAT(allowances_.standings("a"), ElementsAre(standing{"", resource::cores, 100, 350, 250, 0}));
  EXPECT_THAT(allowances_.standings("c"), ElementsAre(standing{"", resource::cores, 300, 0, 0, 150}));
  EXPECT_THAT(allowances_.loans("blue"), IsEmpty());
  // Within its own nominal, and still refused: the others have it.
  EXPECT_EQ(check("c", of(200, 0, 1)), "cohort c cores 200 + 450 > 600, cohort=red");
  allowances_.release("p");
  EXPECT_EQ(check("c", of(200, 0, 1)), "allowed");
  EXPECT_EQ(check("b", of(151, 0, 1)), "borrowing b cores 151 + 100 > 250, cohort=red");
}

TEST_F(limited, S48_a_pool_a_priority_and_an_isolation_have_limits_of_their_own) {
  const bounds one_card{std::nullopt, std::nullopt, 1};
  allowances_.put(with("a", "",
                       {{.model = "", .nominal = one_card, .only = {.pool = "red"}},
                        {.model = "", .nominal = one_card, .only = {.priority_from = 1000}},
                        {.model = "T4", .nominal = one_card, .only = {.priority_from = -5, .priority_to = 5}},
                        {.model = "", .nominal = one_card, .only = {.isolated = isolation::soft}}}));
  auto charge = of(10, 10, 1, "T4");
  charge.pool = "red";
  charge.priority = 2000;
  charge.isolated = isolation::mps;
  allowances_.book("p", "a", {charge});
  EXPECT_EQ(check("a", charge, "p"), "allowed");
  EXPECT_EQ(check("a", charge), "nominal a cards 1 + 1 > 1, pool=red");
  charge.pool = "blue";
  EXPECT_EQ(check("a", charge), "nominal a cards 1 + 1 > 1, from=1000");
  charge.priority = 5;
  EXPECT_EQ(check("a", charge), "allowed");
  allowances_.book("q", "a", {charge});
  EXPECT_EQ(check("a", charge), "nominal a cards 1 + 1 > 1, model=T4, from=-5, to=5");
  charge.priority = 6;
  EXPECT_EQ(check("a", charge), "allowed");
  charge.isolated = isolation::soft;
  allowances_.book("r", "a", {charge});
  EXPECT_EQ(check("a", charge), "nominal a cards 1 + 1 > 1, isolated=soft");
  EXPECT_EQ(allowances_.used("a", "T4", {.pool = "blue"})[2], 2);
  EXPECT_THAT(allowances_.standings("a")[0], (standing{"", resource::cards, 1, 1, 0, 0, {.pool = "red"}}));
}

TEST_F(limited, a_namespace_may_demand_isolation) {
  auto tenant = with("a", "", {});
  tenant.at_least = isolation::mps;
  allowances_.put(tenant);
  auto charge = of(10, 10, 1, "T4");
  EXPECT_EQ(check("a", charge), "allowed");
  charge.isolated = isolation::soft;
  EXPECT_EQ(check("a", charge), "isolation a soft < mps");
  charge.isolated = isolation::exclusive;
  EXPECT_EQ(check("a", charge), "allowed");
  EXPECT_EQ(isolation_of({.whole = true, .node_mode = mode::vgpu}), isolation::exclusive);
  EXPECT_EQ(isolation_of({.node_mode = mode::vgpu}), isolation::soft);
  EXPECT_EQ(isolation_of({.node_mode = mode::mps}), isolation::mps);
  EXPECT_EQ(isolation_of({.node_mode = mode::share}), isolation::none);
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
  const node_inventory node{.name = "n",
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
  EXPECT_THAT(charges_of(held, &node), ElementsAre(of(20, 100, 1), of(100, 8192 + most, 2, "T4")));
  EXPECT_THAT(charges_of(held, nullptr), ElementsAre(of(120, 100 + most, 3)));
}

TEST(limits, before_a_node_is_chosen_the_charge_is_what_is_known) {
  demand demand;
  demand.add(need{.cards = 2, .whole = true});
  demand.add(need{.cards = 3, .cores = 10, .memory_mib = 1000});
  demand.add(need{.cards = 1, .cores = 5, .memory_percent = 50});
  EXPECT_EQ(charges_of(demand), std::vector{of(235, 3000, 6)});
  demand.clear();
  demand.add(need{.cards = 1'000'000'000, .cores = 100, .memory_mib = INT64_MAX});
  EXPECT_GT(charges_of(demand).at(0).amounts[1], 0);
}

// ---- against a list
// -----------------------------------------------------------------------------------------------------

struct held_pod {
  std::string name_space;
  holding held;
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

  long one(const holding& holding, const traits& like, const row_key& row, int unit) const {
    long sum = 0;
    const auto& only = row.only;
    for (const auto& part : holding.grants) {
      const auto& card = cards.at(part.card);
      if (!row.model.empty() && card.model != row.model) continue;
      if (!only.pool.empty() && pools.at(holding.node) != only.pool) continue;
      if (only.priority_from && like.priority < *only.priority_from) continue;
      if (only.priority_to && like.priority > *only.priority_to) continue;
      if (only.isolated && *only.isolated != (part.whole ? isolation::exclusive : *like.isolated)) continue;
      sum += unit == 2    ? 1
             : unit == 1  ? (part.whole ? card.memory_mib : part.memory_mib)
             : part.whole ? 100
                          : part.cores;
    }
    return sum;
  }
  long used(const std::string& name, const row_key& row, int unit, const std::string& but = "") const {
    long sum = 0;
    for (const auto& [uid, pod] : pods)
      if (pod.name_space == name && uid != but) sum += one(pod.held, pod.like, row, unit);
    return sum;
  }
  std::optional<long> nominal(const std::string& name, const row_key& row, int unit) const {
    for (const auto& limit : tenants.at(name).limits)
      if (limit.model == row.model && limit.only == row.only) return limit.nominal[static_cast<std::size_t>(unit)];
    return {};
  }
  /// Nominal less use, of all of the cohort that have a nominal.
  std::map<std::string, long> spare(const std::string& cohort, const row_key& row, int unit,
                                    const std::string& but = "") const {
    std::map<std::string, long> out;
    for (const auto& [name, tenant] : tenants)
      if (const auto has = nominal(name, row, unit); has && tenant.cohort == cohort)
        out[name] = *has - used(name, row, unit, but);
    return out;
  }
  bool allowed(const std::string& uid, const std::string& name, const holding& holding, const traits& like) const {
    if (!tenants.contains(name)) return true;
    const auto& tenant = tenants.at(name);
    for (const auto& part : holding.grants)
      if (tenant.at_least && (part.whole ? isolation::exclusive : *like.isolated) < *tenant.at_least) return false;
    for (const auto& row : tenant.limits)
      for (int unit = 0; unit < 3; ++unit) {
        const row_key key{row.model, row.only};
        const long wanted = one(holding, like, key, unit);
        const auto has = row.nominal[static_cast<std::size_t>(unit)];
        if (!has || wanted == 0) continue;
        const long own = used(name, key, unit, uid) + wanted - *has;
        const auto more = row.borrowing[static_cast<std::size_t>(unit)];
        long left = -wanted;
        for (const auto& [other, free] : spare(tenant.cohort, key, unit, uid)) left += free;
        if (tenant.cohort.empty() ? own > 0 : left < 0 || (more && own > *more)) return false;
      }
    return true;
  }
};

class life {
 public:
  life(unsigned long seed, bool strict) : random_(seed), strict_(strict) {
    for (int n = 0; n < 3; ++n) {
      node_inventory node{.name = "n" + std::to_string(n), .serves = {}, .cards = {}, .counts = {}, .placement = {}};
      for (int i = 0; i < 4; ++i) {
        node.cards.push_back({.uuid = node.name + "-" + std::to_string(i),
                              .model = below(2) == 0 ? "T4" : "A10",
                              .memory_mib = 1000 * (1 + below(4))});
        plain_.cards[node.cards.back().uuid] = node.cards.back();
      }
      node.pool = plain_.pools[node.name] = n == 0 ? "" : "blue";
      book_.put(node);
      nodes_.push_back(node);
    }
    for (const auto* name : {"a", "b", "c", "d"}) put(name);
  }

  void step() {
    const int roll = below(100);
    if (roll < 60)
      arrive();
    else if (roll < 90)
      leave();
    else if (!strict_ && roll < 95)
      put(std::string(1, static_cast<char>('a' + below(4))));
    compare(allowances_);
    if (roll == 99) {
      allowances anew = allowances_;
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
  std::optional<std::int64_t> bound(int limit) {
    return below(4) == 0 ? std::nullopt : std::optional<std::int64_t>{below(limit)};
  }

  void put(const std::string& name) {
    tenant tenant{.name_space = name, .cohort = name == "d" ? "" : "red", .limits = {}};
    for (const auto& [model, only] : rows) {
      if (below(4) == 0) continue;
      tenant.limits.push_back({.model = model,
                               .nominal = {bound(400), bound(8000), bound(8)},
                               .borrowing = {bound(300), bound(5000), bound(5)},
                               .only = only});
    }
    if (below(4) == 0) tenant.at_least = below(2) == 0 ? isolation::soft : isolation::mps;
    allowances_.put(tenant);
    plain_.tenants[name] = tenant;
  }

  void arrive() {
    const std::string name(1, static_cast<char>('a' + below(5)));  // e is no tenant
    const auto& node = nodes_[static_cast<std::size_t>(below(3))];
    holding holding{.node = node.name, .grants = {}, .counts = {}};
    for (int i = 1 + below(3); i > 0; --i)
      holding.grants.push_back({.whole = below(3) == 0,
                                .cores = below(60),
                                .memory_mib = below(1500),
                                .card = node.cards[static_cast<std::size_t>(below(4))].uuid});
    std::string uid = "pod-" + std::to_string(++made_);
    if (!plain_.pods.empty() && below(5) == 0) uid = plain_.pods.begin()->first;  // asked again, for something else
    const traits like{.priority = below(3), .isolated = static_cast<isolation>(below(3))};
    const auto charges = charges_of(holding, &node, like);
    const auto no = allowances_.check(uid, name, charges);
    ASSERT_EQ(!no, plain_.allowed(uid, name, holding, like)) << (no ? facts_of(*no) : "allowed");
    if (no) {
      ++refused;
    }
    if (no && no->rule != exceeded_limit::kind::isolation) {
      ASSERT_GT(no->requested, no->limit - no->used) << facts_of(*no);
      const int unit = static_cast<int>(no->unit);
      ASSERT_EQ(no->requested, plain_.one(holding, like, {no->model, no->only}, unit));
      if (no->rule != exceeded_limit::kind::cohort)
        ASSERT_EQ(no->used, plain_.used(name, {no->model, no->only}, unit, uid));
    }
    if (plain_.pods.contains(uid)) return;
    // What the API has is booked whatever the limits say.
    const bool truth = !strict_ && below(10) == 0;
    if (no && !truth) return;
    if (book_.assume(uid, holding, 1) != booked::done) return;
    ++allowed;
    allowances_.book(uid, name, charges);
    plain_.pods[uid] = {name, holding, like};
  }

  void leave() {
    if (plain_.pods.empty()) return;
    auto position = plain_.pods.begin();
    std::advance(position, below(static_cast<int>(plain_.pods.size())));
    ASSERT_TRUE(book_.release(position->first));
    allowances_.release(position->first);
    plain_.pods.erase(position);
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
        std::map<std::string, long> borrowed, loaned;
        long all = 0, free = 0, taken = 0, total = 0;
        for (const auto& loan : loans) {
          if (loan.model != row.model || loan.only != row.only || static_cast<int>(loan.unit) != i) continue;
          ASSERT_GT(loan.amount, 0);
          borrowed[loan.borrower] += loan.amount;
          loaned[loan.lender] += loan.amount;
          total += loan.amount;
        }
        for (const auto& [name, left] : spare) {
          all += left;
          (left > 0 ? free : taken) += std::labs(left);
          ASSERT_LE(borrowed[name], std::max(-left, 0L));
          ASSERT_LE(loaned[name], std::max(left, 0L));
        }
        ASSERT_EQ(total, std::min(free, taken));
        ASSERT_EQ(borrowed.size() + loaned.size(), 2 * spare.size()) << "a loan of someone without a nominal";
        lent += total > 0 ? 1 : 0;
        if (strict_) ASSERT_GE(all, 0) << "the cohort has more than its nominal";
        for (const auto& [name, left] : spare)
          for (const auto& entry : got.standings(name))
            if (entry.model == row.model && entry.only == row.only && static_cast<int>(entry.unit) == i)
              ASSERT_EQ(entry, (standing{row.model, entry.unit, *plain_.nominal(name, row, i),
                                         plain_.used(name, row, i), borrowed[name], loaned[name], row.only}));
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
  allowances allowances_;
  ledger book_;
  plain plain_;
  std::vector<node_inventory> nodes_;
  int made_ = 0;
};

TEST(limits_property, S14_S48_limits_hold_beside_a_list_that_is_added_up_anew) {
  const char* const text = std::getenv("QM_SEED");
  const auto seed = text == nullptr ? 1UL : std::strtoul(text, nullptr, 10);
  const auto lives = test::rounds(4UL, 60UL);
  unsigned long allowed = 0, refused = 0, lent = 0;
  for (unsigned long number = 0; number < lives; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", life " + std::to_string(number));
    life life{seed * 1'000'003 + number, number % 2 == 0};
    for (int i = 0; i < 100; ++i) {
      life.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    allowed += life.allowed, refused += life.refused, lent += life.lent;
  }
  EXPECT_GT(allowed, 5 * lives);
  EXPECT_GT(refused, 5 * lives);
  EXPECT_GT(lent, 5 * lives);
}

}  // namespace
}  // namespace quota
