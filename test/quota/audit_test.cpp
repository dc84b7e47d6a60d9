// A book beside what the API says.
#include "quota/audit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_world.hpp"

namespace {

using quota::difference;
using kind = quota::difference::kind;
using testing::ElementsAre;
using testing::IsEmpty;

quota::node two_cards() {
  quota::node on{.name = "n", .serves = {}, .cards = {}, .counts = {{"example.com/fpga", 1}}, .placement = {}};
  for (int i = 0; i < 2; ++i) on.cards.push_back({.uuid = std::to_string(i), .model = {}, .memory_mib = 8192});
  return on;
}
quota::holding share(const char* card, std::int32_t cores) {
  return {.node = "n", .grants = {{.cores = cores, .memory_mib = 256, .card = card}}, .counts = {}};
}
quota::holding whole(const char* card, std::int64_t mib = 0) {
  return {.node = "n", .grants = {{.whole = true, .cores = 100, .memory_mib = mib, .card = card}}, .counts = {}};
}

TEST(audit, every_kind_of_difference_is_told_with_its_pod_and_node) {
  quota::ledger book, api;
  book.put(two_cards());
  api.put(two_cards());
  book.record("same", share("0", 10));
  api.record("same", share("0", 10));
  book.record("gone", share("0", 10));
  book.assume("on its way", share("0", 10), 5);
  api.record("new", share("0", 10));
  book.record("moved", share("0", 10));
  api.record("moved", share("1", 10));
  EXPECT_THAT(compare(book, api),
              ElementsAre(difference{kind::missing, "new", "n", {}}, difference{kind::extra, "gone", "n", {}},
                          difference{kind::different, "moved", "n", {}}));
  EXPECT_EQ(text_of(compare(book, api)[2]), "pod moved on node n holds other cards or amounts than the book says");
  api.record("hog", whole("0"));
  api.record("fpgas", {.node = "n", .grants = {}, .counts = {{"example.com/fpga", 2}}});
  const auto all = compare(api, api);
  EXPECT_THAT(all, ElementsAre(difference{kind::over_given, {}, "n", "0"},
                               difference{kind::over_given, {}, "n", "example.com/fpga"}));
  EXPECT_EQ(text_of(all[0]), "more of 0 on node n is given out than it has");
}

TEST(audit, what_books_the_same_is_no_difference) {
  quota::ledger book, api;
  book.put(two_cards());
  api.put(two_cards());
  auto two = share("0", 10);
  two.grants.push_back({.container = 1, .cores = 20, .burst_cores = 50, .memory_mib = 512, .card = "1"});
  book.assume("two", two, 1);
  std::ranges::reverse(two.grants);
  two.grants[0].burst_cores = 0;
  api.record("two", two);
  EXPECT_THAT(compare(book, api), IsEmpty());
  quota::ledger wholes, other;
  wholes.record("w", whole("0", 8192));
  other.record("w", whole("0"));
  EXPECT_THAT(compare(wholes, other), IsEmpty());
}

TEST(audit, a_book_made_of_its_snapshot_says_the_same_and_a_copy_lives_on_by_itself) {
  for (unsigned long seed = 1; seed <= 200; ++seed) {
    small::world of{seed};
    of.add_node("a", {"hami"}, 3);
    of.add_node("b", {"pgpu"}, 3);
    for (int i = 0; i < 10; ++i) {
      const auto& name = of.names[static_cast<std::size_t>(of.below(2))];
      const auto uid = "p" + std::to_string(i);
      if (of.run(uid, of.make_pod(name, 1), name) && of.below(2) == 0) ASSERT_TRUE(of.book.confirm(uid));
    }
    if (of.below(3) == 0) of.book.remove("a");
    const auto picture = quota::snapshot_of(of.book);
    auto again = quota::book_of(picture);
    ASSERT_EQ(quota::snapshot_of(again), picture);
    quota::ledger copy{of.book};
    ASSERT_THAT(compare(copy, of.book), compare(of.book, of.book));
    copy.expire(10);
    again.expire(10);
    ASSERT_EQ(quota::snapshot_of(copy), quota::snapshot_of(again));
    for (const auto& [uid, one] : picture.pods) copy.release(uid);
    for (const auto& name : of.names)
      if (const auto view = copy.view(name))
        for (const auto& used : view->used) ASSERT_EQ(used, quota::card_use{});
    ASSERT_EQ(quota::snapshot_of(of.book), picture);
  }
}

}  // namespace
