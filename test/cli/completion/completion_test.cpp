// What shells learn about a half-typed command.
#include "cli/completion/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.hpp"

namespace cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string completed(std::vector<std::string> words, const std::string& called = "quartermaster") {
  if (called == "quartermaster") words.insert(words.begin(), completion_request);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_program(called, std::move(words)), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(completion, verbs_come_with_what_they_do_and_hidden_ones_do_not_come) {
  EXPECT_THAT(completed({"exp"}), AllOf(StartsWith("explain\tSay why a pod waits"), EndsWith("\n:4\n")));
  EXPECT_THAT(completed({""}), AllOf(HasSubstr("inspect\t"), HasSubstr("version\t"), Not(HasSubstr("man\t"))));
  EXPECT_EQ(completed({"explain", "alert", "QuartermasterNodeS"}), "QuartermasterNodeStuck\n:4\n");
  EXPECT_THAT(completed({"explain", ""}), AllOf(HasSubstr("pod\t"), HasSubstr("error\t"), Not(HasSubstr("inspect\t"))));
}

TEST(completion, no_word_and_an_unknown_word_are_no_error) {
  EXPECT_THAT(completed({}), HasSubstr("inspect\t"));
  EXPECT_EQ(completed({"inspect", "nodes", "--colour", ""}), ":4\n");
  EXPECT_EQ(completed({"zzz"}), ":4\n");
}

TEST(completion, options_are_those_of_the_verb) {
  const auto found = completed({"inspect", "nodes", "--"});
  EXPECT_THAT(found, AllOf(HasSubstr("--lang\t"), HasSubstr("--output\t"), HasSubstr("--help\t")));
  EXPECT_THAT(found, Not(HasSubstr("--lease-duration")));
  EXPECT_THAT(completed({"controller", "--lease-d"}), StartsWith("--lease-duration\tSeconds"));
}

TEST(completion, values_follow_their_option_in_both_forms) {
  EXPECT_EQ(completed({"inspect", "nodes", "--lang", ""}), "en\nzh\n:4\n");
  EXPECT_EQ(completed({"inspect", "nodes", "--lang=z"}), "--lang=zh\n:4\n");
  EXPECT_EQ(completed({"verify", "-o", "j"}), "json\n:4\n");
  EXPECT_EQ(completed({"completion", "f"}), "fish\n:4\n");
  EXPECT_EQ(completed({"agent", "fix-runtime", "--runtime", "c"}), "containerd\ncrio\n:4\n");
}

TEST(completion, files_fit_where_a_file_is_asked_for_and_nowhere_else) {
  EXPECT_EQ(completed({"verify", "--kubeconfig", ""}), ":0\n");
  EXPECT_EQ(completed({"simulate", "--file=pod"}), ":0\n");
  EXPECT_THAT(completed({"lint", ""}), AllOf(HasSubstr("scheduler-config\t"), EndsWith(":0\n")));
  EXPECT_EQ(completed({"lint", "--", ""}), ":0\n");
  EXPECT_EQ(completed({"verify", "--context", ""}), ":4\n");
  EXPECT_THAT(completed({"inspect", ""}), EndsWith(":4\n"));
}

TEST(completion, a_value_is_no_verb) {
  EXPECT_THAT(completed({"verify", "--context", "explain", "--al"}), StartsWith("--allocate"));
}

// kubectl starts a program of this name with the words that follow `kubectl quartermaster`.
TEST(completion, kubectl_asks_by_the_name_of_the_program) {
  EXPECT_THAT(completed({"ver"}, "/usr/local/bin/kubectl_complete-quartermaster"),
              AllOf(StartsWith("verify\t"), HasSubstr("version\t"), EndsWith(":4\n")));
}

}  // namespace
}  // namespace cli
