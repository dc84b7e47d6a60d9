#include "cli/explain/engine_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/extender/reasons.hpp"
#include "test/english.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::language;

/// The engine's own sentence in English, and a Chinese one that holds no English.
void expect_both(const std::string& chinese, const std::string& english, std::string_view engine) {
  EXPECT_EQ(english, engine);
  EXPECT_NE(chinese, "") << engine;
  EXPECT_TRUE(text::has_cjk(chinese)) << chinese;
  EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
}
template <class Fact>
void expect_words_of(const Fact& fact) {
  expect_both(words_of(fact, language::zh), words_of(fact, language::en), text_of(fact));
}

TEST(engine_words, golden_reasons_are_the_engines_own) {
  for (int i = 0; i <= static_cast<int>(quota::reason::changes_mode); ++i) {
    const auto reason = static_cast<quota::reason>(i);
    expect_words_of(reason);
    for (const auto* key : {"", "example.com/fpga"}) expect_words_of(quota::shortfall{reason, 0, 40, 10, key});
  }
}

TEST(engine_words, golden_refusals_are_the_engines_own) {
  for (int i = 0; i <= static_cast<int>(quota::wrong::too_many); ++i)
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{150}, std::int64_t{4} << 30, std::int64_t{1} << 50})
      for (const auto& [below, above] : {std::pair(-1, -1), {100, -1}, {-1, 200}, {100, 200}, {100, 100}})
        for (const auto& row : quota::resource_keys)
          for (const auto legal : {row.legal.words, std::string_view("multiples of aliyun.com/gpu-count"),
                                   std::string_view("1 (the plugin refuses more, because more shares are not more "
                                                    "compute)")})
            expect_words_of(quota::refusal{.kind = static_cast<quota::wrong>(i),
                                           .key = row.key,
                                           .value = value,
                                           .below = below,
                                           .above = above,
                                           .other = "example.com/other",
                                           .legal = legal});
}

TEST(engine_words, golden_limits_are_the_engines_own) {
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
          expect_words_of(limit);
        }
}

TEST(engine_words, golden_changes_and_answers_are_the_engines_own) {
  const auto pod = extender_test::pod("p", {extender_test::container("main", {{"tencent.com/vcuda-core", 20}})});
  const reconcilers::extender::declared_keys undeclared;
  const reconcilers::extender::pod_request request(pod, undeclared);
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
          expect_both(words_of(change, nodes, request, language::zh), words_of(change, nodes, request, language::en),
                      text_of(change, nodes, request));
          for (int i = 0; i <= static_cast<int>(quota::reason::changes_mode); ++i)
            for (const auto* key : {"", "a.b/c"}) {
              const quota::cause cause{static_cast<quota::reason>(i), key[0] == 0 ? 0 : -1, key, 2, i % 2 * 3, 1};
              quota::explanation answer{5, 0, {cause, cause}, {}, {}, {}};
              for (const bool has_change : {false, true}) {
                if (has_change) answer.of_pod = change, answer.of_node = more, answer.nearest = 0;
                expect_both(words_of(answer, nodes, request, language::zh),
                            words_of(answer, nodes, request, language::en), text_of(answer, nodes, request));
              }
            }
        }
}

}  // namespace
}  // namespace cli
