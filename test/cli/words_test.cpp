// Every code that people are shown words for has them in both languages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/disk/folder.hpp"
#include "agent/static_pod/health.hpp"
#include "cli/chargeback/chargeback.hpp"
#include "cli/lint/lint_finding.hpp"
#include "controller/coded_message.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/cuda/verdict.hpp"
#include "reconcilers/declarations/evaluate.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "reconcilers/nodes/preflight.hpp"
#include "reconcilers/verify/verify.hpp"
#include "scheduler_config/judge/finding.hpp"
#include "test/english.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::language;

/// The words of a key in both languages: some, and no English sentence among the Chinese ones.
void expect_words(const std::string& key) {
  for (const auto locale : {language::en, language::zh}) EXPECT_NE(text::pattern_of(key, locale), "") << key;
  const auto chinese = text::pattern_of(key, language::zh);
  EXPECT_FALSE(words::has_english_sentence(chinese)) << key << ": " << chinese;
}

/// "TABLE.CODE.PART" of each of these codes.
template <class Code>
void expect_table(const std::string& table, std::size_t count, std::initializer_list<const char*> parts) {
  for (std::size_t i = 0; i < count; ++i)
    for (const auto* part : parts)
      expect_words(table + "." + std::string(to_string(static_cast<Code>(i))) + "." + part);
}

TEST(words_of_codes, know_an_english_sentence) {
  EXPECT_TRUE(words::has_english_sentence("节点：no pod comes here"));
  EXPECT_TRUE(words::has_english_sentence("the node is not ready"));
  EXPECT_FALSE(words::has_english_sentence("请执行 kubectl get pods in them all，然后重试"));
  EXPECT_FALSE(words::has_english_sentence("见 \"who owns the policy here\""));
  EXPECT_FALSE(words::has_english_sentence("它会提示“it must be an integer”"));
  EXPECT_FALSE(words::has_english_sentence("nvidia.com/gpu 和 spec.modules 的 MIG true or false"));
}

TEST(words_of_codes, are_no_English_sentences_in_Chinese) {
  for (const auto& entry : text::catalogue()) {
    const auto chinese = entry.words[static_cast<std::size_t>(language::zh)];
    EXPECT_FALSE(words::has_english_sentence(chinese)) << entry.key << ": " << chinese;
  }
}

TEST(words_of_codes, are_there_for_every_finding) {
  expect_table<reconcilers::declarations::error_code>("declaration", reconcilers::declarations::code_count,
                                                      {"wrong", "remedy"});
  expect_table<scheduler_config::code>("scheduler_config", scheduler_config::code_count, {"wrong", "remedy"});
  for (std::size_t i = 0; i < lint_code_count; ++i) {
    const auto code = static_cast<lint_code>(i);
    if (code == lint_code::compatibility) continue;  // in the words of reconcilers/cuda
    const bool is_objection = code >= lint_code::resource_forbidden && code <= lint_code::not_offered;
    for (const auto* part : {"wrong", "remedy"})  // of an objection `objection` says what is wrong
      if (part != std::string_view("wrong") || !is_objection)
        expect_words("lint." + std::string(to_string(code)) + "." + part);
  }
}

/// Every key below a prefix is one of these, and each of these is there.
void expect_exactly(const std::string& prefix, const std::set<std::string, std::less<>>& names) {
  for (const auto& name : names) expect_words(prefix + name);
  for (const auto& entry : text::catalogue())
    if (entry.key.starts_with(prefix)) EXPECT_TRUE(names.contains(entry.key.substr(prefix.size()))) << entry.key;
}

TEST(words_of_codes, are_there_for_every_term_of_the_judge_of_scheduler_files) {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < scheduler_config::term_count; ++i)
    names.emplace(to_string(static_cast<scheduler_config::term>(i)));
  EXPECT_EQ(names.size(), scheduler_config::term_count);
  expect_exactly("scheduler_term.", names);
}

TEST(words_of_codes, are_there_for_every_objection) {
  using reconcilers::declarations::objection_kind;
  for (int i = 0; i <= static_cast<int>(objection_kind::not_offered); ++i)
    for (const std::int64_t nearest : {0, 100}) {
      const reconcilers::declarations::objection objection{
          static_cast<objection_kind>(i), "container main", "a.b/c", 7, "d.e/f", nearest, "x/y"};
      const auto chinese = text_of(objection, language::zh);
      EXPECT_NE(text_of(objection), "") << i;
      EXPECT_NE(chinese, "") << i;
      EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
    }
}

TEST(words_of_codes, are_there_for_every_check_of_a_node) {
  for (const auto& entry : api::checks())
    for (int state = 0; state <= static_cast<int>(api::check_state::not_needed); ++state) {
      reconcilers::preflight_row row;
      row.name = entry.name;
      row.state = static_cast<api::check_state>(state);
      const auto chinese = text_of(row, language::zh) + remedy_of(row, language::zh);
      EXPECT_NE(text_of(row, language::en), "") << entry.name;
      EXPECT_NE(chinese, "") << entry.name;
      EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
    }
}

/// A row of this cause with a value for all that its words are about.
api::check_row filled_row(api::check_cause cause) {
  api::check_row out{"cdi", api::check_state::failed, "OWN TEXT", "OWN REMEDY"};
  out.cause = to_string(cause);
  for (const auto* part : {".found", ".remedy"})
    for (const auto& name :
         text::placeholders_of(text::pattern_of("preflight_cause." + out.cause + part, language::en)))
      out.parameters[std::string(name)] = name == "advice"    ? "fix_runtime"
                                          : name == "problem" ? "twice"
                                                              : "V-" + std::string(name);
  if (out.parameters.contains("problem")) out.parameters["value"] = "V-value";
  return out;
}

TEST(words_of_codes, are_there_for_every_cause_of_a_row_of_the_agent) {
  for (std::size_t i = 1; i < api::check_cause_count; ++i) {
    const auto row = filled_row(static_cast<api::check_cause>(i));
    const auto key = "preflight_cause." + row.cause;
    EXPECT_LE(row.cause.size(), 63U) << row.cause << ": the type refuses it";
    EXPECT_LE(row.parameters.size(), api::most_check_parameters) << row.cause;
    const bool has_found = !text::pattern_of(key + ".found", language::en).empty();
    const bool has_remedy = !text::pattern_of(key + ".remedy", language::en).empty();
    EXPECT_TRUE(has_found || has_remedy) << key;
    for (const auto locale : {language::en, language::zh}) {
      const auto found = found_text(row, locale), remedy = remedy_text(row, locale);
      EXPECT_EQ(found == "OWN TEXT", !has_found) << key << ": " << found;
      EXPECT_EQ(remedy == "OWN REMEDY", !has_remedy) << key << ": " << remedy;
      for (const auto& [name, value] : row.parameters)
        if (name != "advice" && name != "problem")
          EXPECT_TRUE((found + remedy).contains(value)) << key << " does not say " << name;
      if (locale == language::zh) {
        EXPECT_FALSE(words::has_english_sentence(found)) << key << ": " << found;
        EXPECT_FALSE(words::has_english_sentence(remedy)) << key << ": " << remedy;
      }
    }
  }
}

TEST(words_of_codes, are_there_for_every_advice_of_a_row_of_the_agent) {
  for (std::size_t i = 0; i < api::check_advice_count; ++i)
    expect_words("preflight_advice." + std::string(to_string(static_cast<api::check_advice>(i))) + ".remedy");
}

TEST(words_of_codes, are_of_a_cause_or_an_advice_that_the_agent_can_give) {
  std::set<std::string, std::less<>> codes;
  for (std::size_t i = 1; i < api::check_cause_count; ++i)
    codes.insert("preflight_cause." + std::string(to_string(static_cast<api::check_cause>(i))));
  for (std::size_t i = 0; i < api::check_advice_count; ++i)
    codes.insert("preflight_advice." + std::string(to_string(static_cast<api::check_advice>(i))));
  for (const auto& entry : text::catalogue())
    if (entry.key.starts_with("preflight_"))
      EXPECT_TRUE(codes.contains(entry.key.substr(0, entry.key.rfind('.')))) << entry.key;
}

/// A phrase of this key with a value for all that its words are about in either language.
text::phrase filled_phrase(const std::string& key) {
  text::phrase out{key};
  std::set<std::string_view> names;
  for (const auto locale : {language::en, language::zh})
    for (const auto name : text::placeholders_of(text::pattern_of(key, locale))) names.insert(name);
  for (const auto name : names) out.arguments.push_back({name, "V-" + std::string(name)});
  return out;
}

/// Messages that go through objects of the API, files or other processes next to their code.
constexpr std::array<std::string_view, 9> message_tables{
    "status.", "list.", "intent.", "nvml.", "disk.", "static_pod.", "fix_runtime.", "transport.", "snapshot."};

/// What the operator and the agents write next to its code, as a reader says it.
TEST(words_of_codes, are_there_for_every_message_in_a_status) {
  std::map<std::string_view, std::size_t> count;
  for (const auto& entry : text::catalogue()) {
    const std::string key(entry.key);
    const auto* table =
        std::ranges::find_if(message_tables, [&](std::string_view prefix) { return key.starts_with(prefix); });
    if (table == message_tables.end()) continue;
    ++count[*table];
    expect_words(key);
    EXPECT_LE(key.size(), 316U) << key << ": the type refuses it";
    const auto phrase = filled_phrase(key);
    nlohmann::json object;
    controller::set_message(object, phrase);
    EXPECT_EQ(object["cause"], key);
    for (const auto locale : {language::en, language::zh}) {
      const auto sentence = words_of(controller::message_of(object), locale);
      EXPECT_EQ(sentence, words_of(phrase, locale));
      for (const auto& argument : phrase.arguments)
        EXPECT_TRUE(sentence.contains(argument.values[0])) << key << " does not say " << argument.name;
    }
    object["cause"] = "of_a_later_version";
    EXPECT_EQ(words_of(controller::message_of(object), language::zh), object["message"].get<std::string>());
  }
  for (const auto table : message_tables) EXPECT_GT(count[table], 1U) << table;
  EXPECT_GT(count["status."], 100U);
}

/// What libraries, the kernel, kubelets and API servers say is English: Chinese words quote it.
TEST(words_of_codes, golden_ones_quote_what_others_say) {
  constexpr std::string_view foreign = "no such file or directory";
  const std::set<std::pair<std::string, std::string>> of_kubelets{{"status.rollout.not_ready_cause", "cause"},
                                                                  {"status.runtimes.too_long_because", "cause"},
                                                                  {"status.node.not_ready_because", "cause"},
                                                                  {"status.agent.not_ready_because", "cause"},
                                                                  {"verify.plugin_not_ready.wrong", "other"},
                                                                  {"explain.obstacle.scheduler_says", "text"},
                                                                  {"explain.obstacle.node_says", "text"},
                                                                  {"explain.obstacle.container_waits", "text"},
                                                                  {"cuda.xid.fatal", "name"},
                                                                  {"cuda.xid.application", "name"},
                                                                  {"cuda.xid.notice", "name"}};
  std::size_t count = 0;
  for (const auto& entry : text::catalogue()) {
    const std::string key(entry.key);
    auto phrase = filled_phrase(key);
    for (auto& argument : phrase.arguments) {
      const bool is_foreign = argument.name == "error" || argument.name == "warning" ||
                              (argument.name == "detail" && key.starts_with("transport.")) ||
                              of_kubelets.contains({key, argument.name});
      if (!is_foreign) continue;
      argument = {argument.name, std::string(foreign)};
      ++count;
    }
    const auto chinese = words_of(phrase, language::zh);
    EXPECT_FALSE(words::has_english_sentence(chinese)) << key << ": " << chinese;
  }
  EXPECT_GT(count, 40U);
}

/// A sentence of code in English alone would reach a Chinese reader through these types: none of them is a text.
TEST(words_of_codes, are_what_parts_return_that_find_something_out) {
  static_assert(std::is_same_v<decltype(reconcilers::holder::stays), text::phrase>);
  static_assert(std::is_same_v<decltype(reconcilers::holder::refused), text::phrase>);
  static_assert(std::is_same_v<decltype(reconcilers::container_runtime::fix_pod::answer), text::phrase>);
  static_assert(std::is_same_v<decltype(reconcilers::modules::invalid_policy::message), text::phrase>);
  static_assert(std::is_same_v<decltype(agent::static_pod::status_row::reason), text::phrase>);
  static_assert(std::is_same_v<agent::disk::error, text::phrase>);
  static_assert(std::is_same_v<decltype(chargeback::discrepancy), text::phrase>);
}

TEST(words_of_codes, golden_titles_of_modules_are_those_of_the_catalogue) {
  std::set<std::string, std::less<>> names;
  for (const auto& module : reconcilers::modules::catalogue()) {
    names.emplace(module.name);
    EXPECT_EQ(text::message("module_title." + std::string(module.name), language::en), module.title);
  }
  expect_exactly("module_title.", names);
}

/// Of each key and each name on a pod: what is allowed, and each is a key.
TEST(words_of_codes, are_there_for_every_legal_amount) {
  std::set<std::string, std::less<>> names{"one_or_more"};
  for (const auto& row : quota::resource_keys)
    for (const auto words : {row.legal.words, row.on_pod.words}) {
      if (words.empty()) continue;
      constexpr std::string_view prefix = "engine.legal.";
      ASSERT_TRUE(words.starts_with(prefix)) << row.key;
      names.emplace(words.substr(prefix.size()));
    }
  expect_exactly("engine.legal.", names);
}

TEST(words_of_codes, are_there_for_every_step_of_verify) {
  namespace verify = reconcilers::verify;
  for (int i = 0; i <= static_cast<int>(verify::stage::allocation); ++i) {
    const auto stage = static_cast<verify::stage>(i);
    EXPECT_NE(name_of(stage, language::en), "") << i;
    EXPECT_NE(name_of(stage, language::zh), "") << i;
    for (const auto* value : {"", "1", "None", "x"})
      for (const auto* other : {"", "y"})
        for (const auto locale : {language::en, language::zh}) {
          const auto sentence =
              text_of(verify::step{stage, verify::outcome::good, verify::stage_code::none, value, other, {}}, locale);
          EXPECT_FALSE(locale == language::zh && words::has_english_sentence(sentence)) << sentence;
          if (*value != 0 && *other != 0) EXPECT_NE(sentence, "") << to_string(stage);
        }
  }
  for (int i = 0; i <= static_cast<int>(verify::outcome::skipped); ++i)
    expect_words("verify_table.outcome." + std::string(to_string(static_cast<verify::outcome>(i))));
  for (std::size_t i = 1; i < verify::code_count; ++i) {
    const auto code = static_cast<verify::stage_code>(i);
    if (code == verify::stage_code::preflight_failed) continue;  // its row says it
    for (const auto* part : {"wrong", "remedy"}) expect_words("verify." + std::string(to_string(code)) + "." + part);
  }
}

TEST(words_of_codes, are_there_for_every_verdict_on_cuda) {
  namespace cuda = reconcilers::cuda;
  for (int i = 0; i <= static_cast<int>(cuda::outcome::unknown); ++i)
    for (const auto locale : {language::en, language::zh})
      EXPECT_NE(title_of(static_cast<cuda::outcome>(i), locale), "") << i;
  for (int i = 0; i <= static_cast<int>(cuda::rule::nothing_known); ++i) {
    std::string name(name_of(static_cast<cuda::rule>(i)));
    std::ranges::replace(name, '-', '_');
    expect_words("cuda.rule." + name);
  }
}

}  // namespace
}  // namespace cli
