// A server that is no API server, whatever it answers with status 200: one line that names the server, the path, what
// came and the file where the server stands.

#include "cli/cluster/foreign_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "test/cli/cluster/served_program.hpp"
#include "test/english.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using cli_test::reply_of, cli_test::served_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto html = "<!DOCTYPE html><html><body>Sign in\x1b[2J</body></html>";

/// Every verb that asks a cluster first of all, and of a verb that goes on without it, what it says.
const std::vector<std::vector<std::string>>& asking_verbs() {
  static const std::vector<std::vector<std::string>> out{
      {"inspect", "nodes"}, {"inspect", "resources"}, {"inspect", "--save", "-"}, {"verify"},
      {"top", "nodes"},     {"explain", "pod", "p"},  {"report", "capacity"},     {"uninstall", "--check"}};
  return out;
}

void expect_one_line(const served_program& program, const std::vector<std::string>& words) {
  EXPECT_EQ(std::ranges::count(program.err, '\n'), 1) << words.front() << ": " << program.err;
  EXPECT_THAT(program.err,
              AllOf(HasSubstr(program.url()), HasSubstr(program.path("kubeconfig")), Not(HasSubstr("\x1b")),
                    Not(HasSubstr("json.exception")), Not(HasSubstr("internal error"))))
      << words.front();
}

TEST(foreign_server, a_page_is_named_with_its_type_and_how_it_begins) {
  served_program program([](const auto&) { return reply_of("text/html; charset=utf-8", html); });
  for (const auto& words : asking_verbs()) {
    EXPECT_EQ(program.run(words), 1) << words.front();
    EXPECT_THAT(program.err, AllOf(HasSubstr("/api"), HasSubstr("200"), HasSubstr("text/html; charset=utf-8"),
                                   HasSubstr("<!DOCTYPE html><html><body>Sign in\\u{1b}")))
        << words.front();
    expect_one_line(program, words);
  }
}

TEST(foreign_server, a_page_with_403_says_nothing_of_rights) {
  served_program program([](const auto&) { return reply_of("text/html", html, 403); });
  for (const auto& words : asking_verbs()) {
    EXPECT_EQ(program.run(words), 1) << words.front();
    EXPECT_THAT(program.err, Not(HasSubstr("administrator"))) << words.front();
    expect_one_line(program, words);
  }
}

TEST(foreign_server, nothing_and_JSON_of_another_kind_are_named_too) {
  std::size_t count = 0;  // in short: each body to a third of the verbs
  for (const std::string body :
       {"", "{}", "[1]", "7", "null", R"({"items":7})", R"({"kind":9,"metadata":{"name":[]}})",
        R"({"kind":"List","metadata":[],"items":{}})", R"({"kind":"List","items":[{)", "{\"a\":\"\xff\"}"}) {
    served_program program([&](const auto&) { return reply_of("application/json", body); });
    for (const auto& words : asking_verbs()) {
      if (count++ % test::rounds(3U, 1U) != 0) continue;
      EXPECT_EQ(program.run(words), 1) << words.front() << " " << body << program.out;
      expect_one_line(program, words);
    }
  }
}

TEST(foreign_server, golden_words_are_chinese_where_that_is_asked_for) {
  served_program program([](const auto&) { return reply_of("application/json", "{}"); });
  EXPECT_EQ(program.run({"inspect", "nodes", "--lang", "zh"}), 1);
  EXPECT_FALSE(words::has_english_sentence(program.err)) << program.err;
}

TEST(foreign_server, one_that_is_no_Prometheus_is_not_a_Prometheus_without_series) {
  served_program program([](const kube_test::seen_request& seen) {
    return seen.target.starts_with("/api/v1/query") ? reply_of("text/html", html) : cli_test::empty_cluster(seen);
  });
  EXPECT_EQ(program.run({"report", "capacity", "--prometheus-url", program.url(), "--prometheus-ca-file",
                         program.path("ca.crt")}),
            1);
  const auto problem = words::english("report.unreadable");
  EXPECT_EQ(
      program.err,
      "quartermaster: " + words::english("report.prometheus", {{"url", program.url()}, {"problem", problem}}) + "\n");
}

TEST(foreign_server, an_API_server_without_anything_is_none) {
  served_program program(&cli_test::empty_cluster);
  EXPECT_EQ(program.run({"inspect", "nodes"}), 0) << program.err;
}

TEST(lists, one_whose_next_page_is_always_the_same_has_an_end) {
  served_program program([](const kube_test::seen_request& seen) {
    if (seen.target.starts_with("/api/v1/nodes")) return cli_test::protobuf_reply(cli_test::list_body({}, "again"));
    return cli_test::empty_cluster(seen);
  });
  EXPECT_EQ(program.run({"inspect", "nodes"}), 1);
  EXPECT_THAT(program.err, AllOf(HasSubstr("list nodes"), HasSubstr("same next page")));
  served_program saved([](const kube_test::seen_request& seen) {
    if (!seen.target.starts_with("/api/v1/nodes")) return cli_test::empty_cluster(seen);
    return reply_of("application/json",
                    R"({"kind":"List","metadata":{"resourceVersion":"1","continue":"again"},"items":[]})");
  });
  EXPECT_EQ(saved.run({"inspect", "--save", saved.path("now.json")}), 1);
  EXPECT_THAT(saved.err, HasSubstr("same next page"));
  EXPECT_FALSE(std::filesystem::exists(saved.path("now.json")));
}

}  // namespace
}  // namespace cli
