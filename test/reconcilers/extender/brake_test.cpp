#include "reconcilers/extender/brake.hpp"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "test/facts_in.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using reconcilers::extender::brake;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A node whose first `sick` of `cards` cards have a fatal XID since `since`.
api::accelerator_node report_of(const std::string& name, int cards, int sick, const std::string& since = "t") {
  api::accelerator_node out;
  out.key.name = name;
  out.resource_version = next_version();
  for (int i = 0; i < cards; ++i) {
    api::reported_card card;
    card.uuid = "GPU-" + name + "-" + std::to_string(i);
    card.index = i;
    card.health = i < sick ? "XID 79" : "Healthy";
    out.cards.push_back(std::move(card));
  }
  if (sick > 0) out.cards_healthy_since = since;
  return out;
}

/// Reports as they come and go, by node.
struct fleet {
  extender_test::brake brake;
  std::map<std::string, api::accelerator_node> reports;

  explicit fleet(const std::string& limit) : brake(limit) {}
  std::vector<std::string> put(const api::accelerator_node& report) {
    const auto before = reports.find(report.key.name);
    const auto out = brake.take(before == reports.end() ? nullptr : &before->second, &report);
    reports[report.key.name] = report;
    return out;
  }
  std::vector<std::string> held() const {
    std::vector<std::string> out;
    for (const auto& [name, report] : reports)
      if (brake.holds_back(name)) out.push_back(name);
    return out;
  }
};

TEST(brake, believes_a_share_of_the_nodes_and_at_least_two) {
  fleet fleet("20%");
  for (int i = 0; i < 4; ++i) fleet.put(report_of("node-" + std::to_string(i), 8, 0));
  EXPECT_EQ(fleet.brake.allowed(), 2U);
  fleet.put(report_of("node-0", 8, 8, "t0"));
  fleet.put(report_of("node-1", 8, 1, "t1"));
  EXPECT_THAT(fleet.held(), IsEmpty()) << "a whole node and a card of another";
  fleet.put(report_of("node-2", 8, 3, "t2"));
  EXPECT_THAT(fleet.held(), ElementsAre("node-2"));
  EXPECT_EQ(fleet.brake.held_cards(), 3U);
  EXPECT_THAT(fleet.put(report_of("node-0", 8, 0)), ElementsAre("node-2")) << "its turn has come";
  EXPECT_THAT(fleet.held(), IsEmpty());
  EXPECT_EQ(fleet.brake.held_cards(), 0U);
}

TEST(brake, takes_a_number_and_none) {
  fleet fleet("1");
  fleet.put(report_of("a", 1, 1, "t1"));
  fleet.put(report_of("b", 1, 1, "t2"));
  EXPECT_THAT(fleet.held(), ElementsAre("b"));
  EXPECT_THAT(fleet.brake.allow("0"), ElementsAre("a"));
  EXPECT_THAT(fleet.held(), ElementsAre("a", "b"));
  EXPECT_THAT(fleet.brake.allow("100%"), ElementsAre("a", "b"));
  EXPECT_THAT(fleet.brake.allow("-1"), ElementsAre("a", "b")) << "no number at all is no licence to withdraw a fleet";
  EXPECT_THAT(fleet.brake.allow("99999999999999999999999"), ElementsAre("a", "b"));
  EXPECT_THAT(fleet.brake.allow("99999999999999999999999%"), testing::IsEmpty());
}

/// A stolen token speaks for one node: it may invent 64 sick cards, and the truth about others still counts.
TEST(brake, gives_one_place_to_a_node_that_lies) {
  fleet fleet("20%");
  for (int i = 0; i < 10; ++i) fleet.put(report_of("node-" + std::to_string(i), 8, 0));
  fleet.put(report_of("node-9", 64, 64, ""));
  EXPECT_EQ(fleet.brake.allowed(), 2U) << "64 invented cards make the fleet no larger";
  fleet.put(report_of("node-3", 8, 1, "t"));
  EXPECT_FALSE(fleet.brake.holds_back("node-3"));
}

/// A new driver that reports XIDs everywhere.
TEST(brake, keeps_a_fleet_alive_whose_driver_went_mad) {
  fleet fleet("20%");
  for (int i = 0; i < 5'000; ++i) fleet.put(report_of("node-" + std::to_string(i), 8, 0));
  for (int i = 0; i < 5'000; ++i) fleet.put(report_of("node-" + std::to_string(i), 8, 8, "t"));
  EXPECT_EQ(fleet.held().size(), 4'000U);
  const auto condition = held_back_condition(fleet.brake, 7);
  EXPECT_EQ(condition.type, "WithdrawalsHeldBack");
  EXPECT_EQ(condition.status, "True");
  EXPECT_THAT(words::line_of(condition.message),
              HasSubstr("status.health.held{sick=status.nodes.many{number=5000},reporting=5000,allowed=1000,"
                        "cards=status.health.cards.many{number=32000},held=status.nodes.many{number=4000},"));
}

/// What it says follows from the reports alone: not from the order in which they came, and not from its past.
TEST(brake, says_the_same_after_a_restart) {
  std::mt19937 random(7);
  fleet fleet("30%");
  for (int step = 0; step < 5'000; ++step) {
    const auto name = "node-" + std::to_string(random() % 30);
    const auto sick = static_cast<int>(random() % 3);
    const auto moved = fleet.put(report_of(name, random() % 5 == 0 ? 0 : 4, sick, "t" + std::to_string(random() % 9)));
    brake fresh("30%");
    std::vector<std::string> names;
    for (const auto& [other, report] : fleet.reports) names.push_back(other);
    std::ranges::shuffle(names, random);
    for (const auto& other : names) fresh.take(nullptr, &fleet.reports.at(other));
    for (const auto& other : names) ASSERT_EQ(fresh.holds_back(other), fleet.brake.holds_back(other)) << other;
    ASSERT_EQ(fresh.held_cards(), fleet.brake.held_cards());
    ASSERT_EQ(fresh.held() + std::min(fresh.sick(), fresh.allowed()), fresh.sick());
  }
}

/// It names exactly those nodes that count otherwise now, so that no one has to look at the fleet.
TEST(brake, names_the_nodes_that_change) {
  std::mt19937 random(8);
  fleet fleet("3");
  for (int step = 0; step < 5'000; ++step) {
    const auto before = fleet.held();
    const auto name = "node-" + std::to_string(random() % 12);
    const auto sick = static_cast<int>(random() % 2);
    auto moved = fleet.put(report_of(name, 2, sick, "t" + std::to_string(random() % 9)));
    std::vector<std::string> changed;
    std::ranges::set_symmetric_difference(before, fleet.held(), std::back_inserter(changed));
    std::erase(changed, name);
    std::ranges::sort(moved);
    ASSERT_EQ(moved, changed);
  }
}

struct held_ledger : rig {
  reconcilers::accelerator_policy policy;
  int rooms = 0, reports = 0;

  held_ledger() {
    policy.key.name = "default";
    policy.resource_version = next_version();
    known.policies.put(policy);
    for (const auto* name : {"a", "b", "c"}) {
      known.nodes.put(vgpu_node(name, 2));
      known.cards.put(report_of(name, 2, 0));
    }
    book.on_room([this] { ++rooms; });
    book.on_brake([this] { ++reports; });
  }
  bool usable(const std::string& name, std::size_t card) const {
    return book.book().view(name)->inventory->cards[card].usable();
  }
};

TEST_F(held_ledger, gives_out_cards_that_are_held_back) {
  known.cards.put(report_of("a", 2, 1, "t1"));
  known.cards.put(report_of("b", 2, 1, "t2"));
  EXPECT_FALSE(usable("a", 0));
  EXPECT_FALSE(usable("b", 0));
  EXPECT_EQ(reports, 0);
  known.cards.put(report_of("c", 2, 2, "t3"));
  EXPECT_TRUE(usable("c", 0)) << "two nodes of three may be out of use";
  EXPECT_EQ(reports, 1);
  EXPECT_EQ(rooms, 0);
  known.cards.put(report_of("a", 2, 0));
  EXPECT_TRUE(usable("a", 0));
  EXPECT_FALSE(usable("c", 0)) << "its turn has come";
  EXPECT_EQ(rooms, 1) << "pods that wait are looked at again";
}

TEST_F(held_ledger, follows_the_policy) {
  for (const auto* name : {"a", "b", "c"}) known.cards.put(report_of(name, 2, 1, std::string("t") + name));
  policy.health.max_withdrawn = "100%";
  policy.resource_version = next_version();
  known.policies.put(policy);
  EXPECT_FALSE(usable("c", 0));
  policy.health.max_withdrawn = "0";
  policy.resource_version = next_version();
  known.policies.put(policy);
  EXPECT_TRUE(usable("a", 0));
}

TEST_F(held_ledger, still_leaves_alone_what_a_person_has_cordoned) {
  policy.health.max_withdrawn = "0";
  policy.resource_version = next_version();
  known.policies.put(policy);
  known.cards.put(report_of("a", 2, 2, "t"));
  auto node = vgpu_node("a", 2);
  node.annotations = packed({{"quartermaster.io/cordon", "GPU-a-0"}});
  node.resource_version = next_version();
  known.nodes.put(node);
  EXPECT_FALSE(usable("a", 0));
  EXPECT_TRUE(usable("a", 1));
}

TEST(policy, has_a_limit_for_withdrawals) {
  const auto limit = [](const std::string& spec) {
    const auto made =
        reconcilers::accelerator_policy::decode(R"({"metadata": {"name": "default"}, "spec": )" + spec + "}");
    return made ? made->health.max_withdrawn : made.error().message;
  };
  EXPECT_EQ(limit("{}"), "20%");
  EXPECT_EQ(limit(R"({"health": {"maxWithdrawn": "50%"}})"), "50%");
  EXPECT_EQ(limit(R"({"health": {"maxWithdrawn": 3}})"), "3");
}

}  // namespace
}  // namespace extender_test
