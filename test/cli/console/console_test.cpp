#include "cli/console/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "cli/program.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/words.hpp"

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
  const auto one_line = [](const std::string& text) {
    return Pair(2, AllOf(HasSubstr(text), ContainsRegex("^quartermaster: [^\n]+\n$")));
  };
  EXPECT_THAT(run({"--listen", "localhost"}),
              one_line(words::english("usage.not_an_address", {{"name", "--listen"}, {"value", "localhost"}})));
  EXPECT_THAT(run({"--metrics-address", "a:b"}),
              one_line(words::english("usage.not_an_address", {{"name", "--metrics-address"}, {"value", "a:b"}})));
  EXPECT_THAT(run({"--log-level", "loud"}), one_line("--log-level: loud"));
  EXPECT_THAT(run({"--host", "a:1"}), one_line(words::english("usage.console.host", {{"value", "a:1"}})));
  for (const auto* origin :
       {"portal.example.com", "https://a;script-src *", "https://a b", "https://a:", "https://", "*"})
    EXPECT_THAT(run({"--frame-ancestor", origin}),
                one_line(words::english("usage.console.origin", {{"value", origin}})))
        << origin;
  EXPECT_THAT(run({"--audience-only"}), one_line(words::english("usage.console.audience")));
  EXPECT_THAT(run({"--tls-key-file", "k"}),
              one_line(words::english("usage.together", {{"name", "--tls-cert-file"}, {"value", "--tls-key-file"}})));
  const auto together =
      words::english("usage.together", {{"name", "--view-address, --view-cert-file"}, {"value", "--view-key-file"}});
  EXPECT_THAT(run({"--view-address", ":8443"}), one_line(together));
  EXPECT_THAT(run({"--view-key-file", "k"}), one_line(together));
  const kube_test::scratch_folder folder;
  folder.write("no.crt", "text");
  const auto key = folder.path("later.key"), none = folder.path("none/tls.crt"), wrong = folder.path("no.crt");
  EXPECT_THAT(run({"--view-address", ":0", "--view-cert-file", none, "--view-key-file", key}),
              one_line(words::english("usage.console.no_folder", {{"name", "--view-cert-file"}, {"value", none}})));
  EXPECT_THAT(run({"--view-address", ":0", "--view-cert-file", wrong, "--view-key-file", key}),
              one_line(words::english(
                  "usage.console.not_pem",
                  {{"name", "--view-cert-file"}, {"value", wrong}, {"begin", "-----BEGIN CERTIFICATE-----"}})));
  EXPECT_THAT(run({"--prometheus-url", "http://p", "--prometheus-token-file", "t"}),
              one_line(words::english("usage.prometheus.token")));
}

TEST(console, an_address_that_someone_else_has_is_one_line_with_its_flag) {
  boost::asio::io_context loop;
  boost::asio::ip::tcp::acceptor other(loop, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const auto taken = "127.0.0.1:" + std::to_string(other.local_endpoint().port());
  const std::string reason = std::make_error_code(std::errc::address_in_use).message();
  EXPECT_THAT(run({"--listen", "127.0.0.1:0", "--metrics-address", taken}),
              Pair(1, "quartermaster: " +
                          words::english("usage.console.address",
                                         {{"name", "--metrics-address"}, {"value", taken}, {"problem", reason}}) +
                          "\n"));
}

}  // namespace
}  // namespace cli::console
