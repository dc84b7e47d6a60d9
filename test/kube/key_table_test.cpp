#include "kube/key_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/packed_map.hpp"

namespace kube {
namespace {

TEST(key_table, gives_a_qualified_name_one_number_and_others_none) {
  key_table table;
  const auto number = table.number_of("nvidia.com/gpu.product");
  EXPECT_NE(number, 0u);
  EXPECT_EQ(table.number_of(std::string("nvidia.com/gpu") + ".product"), number);
  EXPECT_EQ(table.name_of(number), "nvidia.com/gpu.product");
  EXPECT_EQ(table.number_of("plain"), 0u);
  EXPECT_EQ(table.number_of("a/" + std::string(key_table::longest, 'x')), 0u);
}

TEST(key_table, is_bounded_and_what_came_too_late_stays_without_a_number) {
  key_table table;
  for (std::size_t i = 0; i < key_table::cap; ++i) ASSERT_NE(table.number_of("x/" + std::to_string(i)), 0u);
  EXPECT_EQ(table.number_of("late/comer"), 0u);
  EXPECT_EQ(table.number_of("late/comer"), 0u);
  EXPECT_NE(table.number_of("x/17"), 0u);
  EXPECT_EQ(table.size(), key_table::cap);
}

TEST(packed_map, mixes_numbered_and_plain_keys_in_the_order_of_their_text) {
  std::vector<packed_map::entry> entries = {
      {"zone", "z"}, {"a.io/label", std::string_view()}, {"b.io/long", ""}, {"arch", "amd64"}};
  const std::string big(70'000, 'v');
  entries[2].second = big;
  const auto made = packed_map::of(entries);
  std::vector<std::string> keys;
  for (const auto [key, value] : made) keys.emplace_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"a.io/label", "arch", "b.io/long", "zone"}));
  EXPECT_EQ(made.find("b.io/long"), big);
  EXPECT_EQ(made.find("a.io/label"), "");
  EXPECT_EQ(made.find("a.io/none"), std::nullopt);
  EXPECT_EQ(made.size(), 4u);
}

}  // namespace
}  // namespace kube
