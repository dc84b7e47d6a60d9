// The command line as a whole: what a person sees who types too little, too much, or the singular.
#include "cli/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/log.hpp"

namespace cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct said {
  int rc = 0;
  std::string out, err;
};

said call(std::vector<std::string> words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  said got;
  got.rc = run_program("quartermaster", std::move(words));
  got.out = testing::internal::GetCapturedStdout();
  got.err = testing::internal::GetCapturedStderr();
  return got;
}

TEST(program, a_verb_prints_nothing_of_the_operators_log) {
  EXPECT_EQ(call({"version"}).rc, 0);
  testing::internal::CaptureStderr();
  controller::log::warn("more is given out than the node has", {{"node", "a"}});
  controller::log::error("as bad as it gets");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(program, without_a_verb_it_lists_them) {
  const auto all = call({});
  EXPECT_EQ(all.rc, 2);
  for (const auto* verb : {"  explain ", "  inspect ", "  verify ", "  uninstall "})
    EXPECT_THAT(all.err, HasSubstr(verb));
  const auto below = call({"inspect"});
  EXPECT_EQ(below.rc, 2);
  EXPECT_THAT(below.err, AllOf(HasSubstr("`quartermaster inspect`"), HasSubstr("  nodes "), HasSubstr("  resources ")));
  EXPECT_THAT(call({"render"}).err, AllOf(HasSubstr("  declaration "), HasSubstr("  scheduler-config ")));
}

TEST(program, what_is_too_much_is_said_as_it_was_typed) {
  const auto got = call({"explain", "error", "999", "--colour", "red"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr("it does not take: --colour"));
  EXPECT_THAT(got.err, Not(HasSubstr("red --colour")));
  EXPECT_THAT(call({"inspect", "cards"}).err, HasSubstr("no verb 'cards'; there are "));
}

TEST(program, what_is_missing_is_still_named) {
  const auto got = call({"explain", "compat"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr("--cuda"));
}

}  // namespace
}  // namespace cli
