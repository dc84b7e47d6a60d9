#include "api/engine_words.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "test/english.hpp"
#include "text/text.hpp"

namespace api {
namespace {

using text::language;

/// Every sentence of the engine in both languages. The Chinese one holds no English.
class golden_engine_words : public testing::Test {
 protected:
  template <class... Facts>
  void add(const Facts&... facts) {
    const std::string english(words_of(facts..., language::en)), chinese(words_of(facts..., language::zh));
    EXPECT_TRUE(text::has_cjk(chinese)) << chinese;
    EXPECT_FALSE(text::has_cjk(english)) << english;
    EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
    if (is_kept_) sentences_.insert(english + "\n  " + chinese + "\n");
  }
  /// As test/golden/engine has them; QM_GOLDEN=write takes over what is made now.
  void expect_golden(const std::string& name) const {
    std::string text;
    for (const auto& sentence : sentences_) text += sentence;
    const auto path = "test/golden/engine/" + name + ".txt";
    if (const auto* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
      std::ofstream(path) << text;
    std::stringstream kept;
    kept << std::ifstream(path).rdbuf();
    EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
  }

  bool is_kept_ = true;  ///< what follows goes into the file; else it is looked at alone

 private:
  std::set<std::string> sentences_;
};

TEST_F(golden_engine_words, say_reasons_and_their_numbers) {
  for (int i = 0; i <= static_cast<int>(quota::reason::changes_mode); ++i) {
    const auto reason = static_cast<quota::reason>(i);
    add(reason);
    for (const auto* key : {"", "example.com/fpga"}) add(quota::shortfall{reason, 0, 40, 10, key});
  }
  expect_golden("reasons");
}

TEST_F(golden_engine_words, say_refusals_and_what_is_allowed) {
  for (int i = 0; i <= static_cast<int>(quota::wrong::too_many); ++i)
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{150}, std::int64_t{4} << 30, std::int64_t{1} << 50})
      for (const auto& [below, above] : {std::pair(-1, -1), {100, -1}, {-1, 200}, {100, 200}, {100, 100}})
        for (const auto& row : quota::resource_keys)
          for (const auto legal : {quota::legal_amounts::of_key, quota::legal_amounts::multiples_of_count,
                                   quota::legal_amounts::one_share, quota::legal_amounts::one_card}) {
            is_kept_ = &row == quota::resource_keys || (below == 100 && above == 200 && value == 150);
            add(quota::refusal{.kind = static_cast<quota::wrong>(i),
                               .key = row.key,
                               .value = value,
                               .below = below,
                               .above = above,
                               .other = "example.com/other",
                               .legal = legal});
          }
  expect_golden("refusals");
}

TEST_F(golden_engine_words, say_limits_and_what_they_are_of) {
  for (int rule = 0; rule <= static_cast<int>(quota::exceeded_limit::kind::pool); ++rule)
    for (const auto unit : quota::resources)
      for (const auto* model : {"", "T4"})
        for (int scope = 0; scope < 16; ++scope) {
          quota::exceeded_limit limit{
              static_cast<quota::exceeded_limit::kind>(rule), unit, "lab", model, "all", 2, 1, 3, {}};
          if (scope & 1) limit.only.pool = "fast";
          if (scope & 2) limit.only.isolated = quota::isolation::mps;
          if (scope & 4) limit.only.priority_from = 5;
          if (scope & 8) limit.only.priority_to = 9;
          is_kept_ = unit == quota::resource::cores || scope == 0;
          add(limit);
        }
  expect_golden("limits");
}

TEST_F(golden_engine_words, say_changes_and_whole_answers) {
  const std::array<std::string_view, 1> names{"main"};
  std::vector<quota::node_inventory> inventories(5);
  for (std::size_t i = 0; i < inventories.size(); ++i) {
    inventories[i].name = "n" + std::to_string(i);
    inventories[i].changes_mode = i > 0;
    inventories[i].cards.resize(1);
    inventories[i].cards[0].uuid = "GPU-a";
  }
  std::vector<quota::node_view> nodes;
  for (const auto& inventory : inventories) nodes.push_back({&inventory, {}, {}});
  quota::change more;
  more.action = quota::change::kind::add_card;
  for (int kind = 0; kind <= static_cast<int>(quota::change::kind::add_card); ++kind)
    for (const auto amount : {10, 30})
      for (const auto card : {std::optional<std::uint16_t>(), std::optional<std::uint16_t>(0)})
        for (const std::uint16_t container : {0, 7}) {
          const quota::change change{
              static_cast<quota::change::kind>(kind), container, 0, "a.b/c", 20, amount, 0, card};
          is_kept_ = true;
          add(change, nodes, names);
          is_kept_ = kind == 0 && amount == 10 && card && container == 0;
          for (int i = 0; i <= static_cast<int>(quota::reason::changes_mode); ++i)
            for (const auto* key : {"", "a.b/c"}) {
              const quota::cause cause{static_cast<quota::reason>(i), key[0] == 0 ? 0 : -1, key, 2, i % 2 * 3, 1};
              quota::explanation answer{5, 0, {cause, cause}, {}, {}, {}};
              for (const bool has_change : {false, true}) {
                if (has_change) answer.of_pod = change, answer.of_node = more, answer.nearest = 0;
                add(answer, nodes, names);
              }
            }
        }
  is_kept_ = true;
  for (const auto reason : {quota::reason::whole_cards, quota::reason::memory, quota::reason::cards,
                            quota::reason::counted, quota::reason::together}) {
    const bool is_counted = reason == quota::reason::counted, is_of_pod = reason == quota::reason::together;
    quota::cause cause{reason, is_counted || is_of_pod ? -1 : 0, is_counted ? "a.b/c" : "", 2, 9, 8, true};
    if (is_of_pod) cause.needed = cause.available = 0;
    add(quota::explanation{5, 0, {cause}, {}, {}, {}}, nodes, names);
  }
  const quota::refusal bytes{
      .kind = quota::wrong::not_legal, .key = "nvidia.com/gpumem", .value = std::int64_t{4} << 30},
      mixed{.kind = quota::wrong::mixed, .key = "nvidia.com/gpu", .value = 1, .other = "tencent.com/vcuda-core"};
  quota::cause refused{quota::reason::refused, 0, "nvidia.com/gpumem", 2};
  refused.refused = bytes;
  add(quota::explanation{5, 0, {refused}, {}, {}, {}, {{bytes}, {mixed, true}}}, nodes, names);
  expect_golden("answers");
}

}  // namespace
}  // namespace api
