#include "cli/controller/preflight.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/kube/loop.hpp"
#include "test/reconcilers/recording_transport.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;
using reconcilers::recording_transport;

struct check_cluster_test : testing::Test {
  boost::asio::io_context loop;
  recording_transport transport;
  kube::client api{transport};

  kube::result<std::string> check(std::chrono::milliseconds patience) {
    return kube_test::run(loop, check_cluster(api, patience));
  }
};

TEST_F(check_cluster_test, an_API_server_that_is_busy_at_first_is_asked_again) {
  std::size_t refused = 0;
  transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (transport.sent.size() % 3 != 0) {
      ++refused;
      return recording_transport::refused(transport.sent.size() % 2 ? 500 : 429, "InternalError");
    }
    if (request.target == "/version") return recording_transport::answered(200, {{"gitVersion", "v1.37.2"}});
    return recording_transport::answered(200, nlohmann::json::object());
  };
  const auto version = check(60s / 60);
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, "v1.37.2");
  EXPECT_EQ(refused, 6U);
}

TEST_F(check_cluster_test, one_that_stays_so_is_said_when_patience_ends) {
  transport.answer = [](const kube::request&) { return recording_transport::refused(503, "ServiceUnavailable"); };
  const auto version = check(30ms);
  ASSERT_FALSE(version);
  EXPECT_GT(transport.sent.size(), 1U);
}

TEST_F(check_cluster_test, what_asking_again_does_not_mend_is_said_at_once) {
  transport.answer = [](const kube::request& request) -> kube::result<kube::response> {
    if (request.target == "/version") return recording_transport::answered(200, {{"gitVersion", "v1.37.2"}});
    return recording_transport::refused(404, "NotFound");
  };
  const auto version = check(1h);
  ASSERT_FALSE(version);
  EXPECT_THAT(version.error().message, testing::HasSubstr("install the chart"));
  EXPECT_EQ(transport.sent.size(), 2U);
}

}  // namespace
}  // namespace cli
