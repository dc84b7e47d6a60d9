#include "kube/packed_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace {

using kube::packed_map;

static_assert(std::forward_iterator<packed_map::iterator>);

TEST(packed_map, finds_what_was_put_in) {
  const auto map = packed_map::of({{"b", "2"}, {"a", "1"}, {"", "empty key"}, {"c", ""}});
  EXPECT_EQ(map.size(), 4u);
  EXPECT_EQ(map.find("a"), "1");
  EXPECT_EQ(map.find("b"), "2");
  EXPECT_EQ(map.find(""), "empty key");
  EXPECT_EQ(map.find("c"), "");
  EXPECT_EQ(map.find("bb"), std::nullopt);
  EXPECT_EQ(map.value_or("zz", "other"), "other");
}

TEST(packed_map, keeps_the_last_of_two_entries_with_one_key) {
  const auto map = packed_map::of({{"b", "1"}, {"a", "x"}, {"b", "2"}, {"a", "y"}, {"b", "3"}});
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.find("b"), "3");
  EXPECT_EQ(map.find("a"), "y");
}

TEST(packed_map, is_equal_whatever_the_order_of_the_entries) {
  EXPECT_EQ(packed_map::of({{"a", "1"}, {"b", "2"}}), packed_map::of({{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(packed_map::of({{"a", "12"}, {"b", ""}}), packed_map::of({{"a", "1"}, {"b", "2"}}));
}

TEST(packed_map, is_empty_without_entries) {
  const packed_map map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.begin(), map.end());
  EXPECT_FALSE(map.contains(""));
  EXPECT_EQ(map, packed_map::of({}));
}

TEST(packed_map, agrees_with_an_ordered_map_on_random_entries) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::string, std::string>> texts(random() % 60);
    for (auto& [key, value] : texts) {
      key = (random() % 2 ? "a/" : "") + std::string(random() % 4, static_cast<char>('a' + random() % 3));
      value = std::to_string(random());
    }
    std::map<std::string_view, std::string_view> model;
    std::vector<packed_map::entry> entries;
    for (const auto& [key, value] : texts) {
      model[key] = value;
      entries.emplace_back(key, value);
    }
    const auto map = packed_map::of(std::span(entries));
    EXPECT_TRUE(std::ranges::equal(
        map, model, [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
    for (const auto& [key, value] : model) EXPECT_EQ(map.find(key), value) << key;
    for (const auto* absent : {"a/bbbb", "bbbb", "ca", "a/ca"}) EXPECT_FALSE(map.contains(absent)) << absent;
  }
}

}  // namespace
