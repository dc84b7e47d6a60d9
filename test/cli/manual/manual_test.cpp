// The man page: it has what --help has, and roff reads it as it is meant. test/release gives it to mandoc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string manual() {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_program("quartermaster", {"man", "--date", "2026-01-31"}), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(manual, has_every_command_with_its_options) {
  const auto page = manual();
  EXPECT_THAT(page, HasSubstr(".TH QUARTERMASTER 1 \"2026-01-31\" \"quartermaster "));
  for (const auto* command : {"explain pod pod", "inspect nodes node", "lint files", "lint scheduler\\-config files",
                              "completion shell", "controller", "agent fix\\-runtime", "uninstall"})
    EXPECT_THAT(page, HasSubstr(std::string(".SS quartermaster ") + command + "\n"));
  EXPECT_THAT(page, Not(HasSubstr(".SS quartermaster man")));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItext|table|wide|json|yaml\\fR\n"));
  EXPECT_THAT(page, HasSubstr("(default: 15)"));
}

TEST(manual, refuses_what_is_no_date) {
  for (const auto* text : {"", "today", "2026-1-31", "2026-02-30", "2026-01-31\n.SH X", "31.01.2026"}) {
    testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
    EXPECT_EQ(run_program("quartermaster", {"man", "--date", text}), 2) << text;
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "") << text;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(words::english("usage.no_date", {{"name", "--date"}, {"value", text::shown(text)}})))
        << text;
  }
}

TEST(manual, has_exit_codes_variables_and_files) {
  const auto page = manual();
  EXPECT_THAT(page, AllOf(HasSubstr(".SH EXIT STATUS\n"), HasSubstr("\\fBKUBECONFIG\\fR"),
                          HasSubstr("\\fBQUARTERMASTER_LOG_LEVEL\\fR\nStands in for quartermaster controller"),
                          HasSubstr("/etc/pki/tls/certs/ca\\-bundle.crt")));
}

TEST(manual, has_examples_as_they_are_typed) {
  EXPECT_THAT(manual(), HasSubstr("  $ quartermaster explain pod trainer \\-n lab\n"));
}

}  // namespace
}  // namespace cli
