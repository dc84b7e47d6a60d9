#include "cli/console/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.hpp"

namespace cli::console {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Pair;

std::string url_of(const std::string& listen, const std::string& certificate = "") {
  console_options options;
  options.listen = listen;
  options.tls_certificate_file = certificate;
  return page_url(options, 8888);
}

TEST(console, the_printed_link_leads_to_what_listens) {
  EXPECT_EQ(url_of("127.0.0.1:0"), "http://127.0.0.1:8888/console/");
  EXPECT_EQ(url_of("localhost:8888"), "http://127.0.0.1:8888/console/");
  EXPECT_EQ(url_of("127.0.0.2:8888"), "http://127.0.0.2:8888/console/");
  EXPECT_EQ(url_of("[::1]:8888"), "http://[::1]:8888/console/");
  EXPECT_EQ(url_of("127.0.0.1:8888", "tls.crt"), "https://127.0.0.1:8888/console/");
}

std::pair<int, std::string> run(std::vector<std::string> words) {
  words.insert(words.begin(), "console");
  testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
  const int rc = run_program("quartermaster", std::move(words));
  testing::internal::GetCapturedStdout();
  return {rc, testing::internal::GetCapturedStderr()};
}

TEST(console, wrong_words_are_one_line) {
  const auto one_line = [](const char* text) {
    return Pair(2, AllOf(HasSubstr(text), ContainsRegex("^quartermaster: [^\n]+\n$")));
  };
  EXPECT_THAT(run({"--listen", "localhost"}), one_line("--listen: address \"localhost\": not host:port"));
  EXPECT_THAT(run({"--metrics-address", "a:b"}), one_line("--metrics-address: address \"a:b\": not a port"));
  EXPECT_THAT(run({"--log-level", "loud"}), one_line("--log-level: loud"));
  EXPECT_THAT(run({"--host", "a:1"}), one_line("--host a:1: a name without port"));
  for (const auto* origin :
       {"portal.example.com", "https://a;script-src *", "https://a b", "https://a:", "https://", "*"})
    EXPECT_THAT(run({"--frame-ancestor", origin}), one_line("an origin such as https://portal.example.com")) << origin;
  EXPECT_THAT(run({"--audience-only"}), one_line("--audience-only: on a loopback address"));
  EXPECT_THAT(run({"--tls-key-file", "k"}), one_line("--tls-cert-file and --tls-key-file come together"));
  EXPECT_THAT(run({"--view-address", ":8443"}), one_line("--view-address, --view-cert-file and --view-key-file come"));
  EXPECT_THAT(run({"--view-key-file", "k"}), one_line("--view-address, --view-cert-file and --view-key-file come"));
  EXPECT_THAT(run({"--prometheus-url", "http://p", "--prometheus-token-file", "t"}), one_line("over https:// only"));
}

}  // namespace
}  // namespace cli::console
