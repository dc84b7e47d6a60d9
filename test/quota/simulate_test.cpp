// A list of pods is placed one after the other on a copy of the book.
#include "quota/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quota/audit.hpp"
#include "small_world.hpp"

namespace {

TEST(simulate, each_pod_has_its_node_and_cards_or_its_reason_and_the_book_stays_as_it_was) {
  quota::ledger book;
  for (const char* name : {"a", "b"}) {
    quota::node on{.name = name, .serves = {}, .cards = {}, .counts = {}, .placement = {}};
    on.serves.modes = static_cast<std::uint16_t>(quota::mode::pgpu);
    on.cards.push_back({.uuid = on.name + "-0", .model = {}, .memory_mib = 8192});
    book.put(on);
  }
  const std::vector<quota::amount> one{{"nvidia.com/gpu", 1}};
  const std::vector<quota::limits> pod{one};
  const std::vector<std::string> nodes{"a", "gone", "b"};
  const std::vector<quota::asking> pods(3, {.containers = pod});
  const auto said = simulate(book, nodes, pods);
  EXPECT_EQ(said.fitting, 2U);
  EXPECT_FALSE(said.all());
  EXPECT_EQ(said.pods[0].node, 0U);
  EXPECT_EQ(said.pods[0].held.grants[0].card, "a-0");
  EXPECT_EQ(said.pods[1].node, 2U);
  EXPECT_FALSE(said.pods[2].node.has_value());
  EXPECT_EQ(said.pods[2].why.nodes, 3U);
  EXPECT_THAT(said.pods[2].text,
              testing::StartsWith("fits on 0 of 3 nodes: 2 too few free cards (container 0), 1 cards "
                                  "not known yet; nearest: node a"));
  EXPECT_EQ(book.size(), 0U);
}

TEST(simulate_property, a_pod_waits_only_where_the_model_finds_no_node_either) {
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  long placed = 0, waiting = 0;
  for (unsigned long number = 0; number < 300; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", scene " + std::to_string(number));
    small::world of{seed * 1'000'003 + number};
    of.add_node("a", {"hami"}, 1 + of.below(2));
    of.add_node("b", {"vgpu"}, 1 + of.below(3));
    of.add_node("c", {"pgpu"}, 1 + of.below(2));
    for (int i = of.below(4); i > 0; --i)
      of.run("before-" + std::to_string(i), of.make_pod(of.names[static_cast<std::size_t>(i) % 3], 1),
             of.names[static_cast<std::size_t>(i) % 3]);
    std::vector<small::pod> pods;
    for (int i = 0; i < 8; ++i)
      pods.push_back(of.make_pod(of.names[static_cast<std::size_t>(of.below(3))], 1 + of.below(2)));
    const std::vector<small::spoken> words{pods.begin(), pods.end()};
    std::vector<quota::asking> asking;
    for (const auto& one : words) asking.push_back({.containers = one.limits});
    const auto before = quota::snapshot_of(of.book);
    const auto said = quota::simulate(of.book, of.names, asking);
    ASSERT_EQ(quota::snapshot_of(of.book), before);
    auto model = of.model;
    std::size_t fitting = 0;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const bool can = std::ranges::any_of(of.names, [&](const auto& name) { return of.fits(model, pods[i], name); });
      ASSERT_EQ(said.pods[i].node.has_value(), can) << said.pods[i].text;
      if (!can) {
        ASSERT_EQ(said.pods[i].why.fitting, 0U);
        ASSERT_FALSE(said.pods[i].text.empty());
        ++waiting;
        continue;
      }
      ++placed, ++fitting;
      const auto now = small::world::told(said.pods[i].held);
      ASSERT_EQ(now.node, of.names[*said.pods[i].node]);
      ASSERT_TRUE(model.accepts(now.node, now.pieces, now.counts));
      model.pods["simulated-" + std::to_string(i)] = now;
    }
    ASSERT_EQ(said.fitting, fitting);
  }
  EXPECT_GT(placed, 300);
  EXPECT_GT(waiting, 100);
}

}  // namespace
