#include "controller/metrics_access.hpp"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <array>

#include "test/controller/reviewing_server.hpp"
#include "test/controller/rig.hpp"
#include "test/words.hpp"

namespace controller_test {
namespace {

using namespace std::chrono_literals;
using controller::http_response;
using testing::HasSubstr;
using testing::Not;

struct metrics_access : rig {
  reviewing_server api;
  controller::token_settings settings = controller::metrics_tokens();
  controller::milliseconds now{1'000'000};
  std::unique_ptr<controller::metrics_access> access;

  metrics_access() {
    metrics.make_gauge("namespaces_of_others", "Is on the page.");
    const std::string prometheus = "system:serviceaccount:monitoring:prometheus";
    api.persons = {{"scraper", prometheus}, {"next", prometheus}, {"pod", "system:serviceaccount:team-a:default"}};
    api.rights[prometheus] = {{"/metrics", ""}};
  }
  boost::asio::awaitable<http_response> request(const std::string& authorization, const std::string& address) {
    if (!access) access = std::make_unique<controller::metrics_access>(api, settings, [this] { return now; });
    controller::http_request out;
    out.method = "GET";
    out.path = "/metrics";
    out.fields.authorization = authorization;
    out.caller_address = address;
    return access->answer(std::move(out), metrics);
  }
  http_response get(const std::string& token, const std::string& address = "192.0.2.1") {
    return kube_test::run(loop.context(), request("Bearer " + token, address));
  }
  static std::string field_of(const http_response& response, const std::string& name) {
    for (const auto& [key, value] : response.fields)
      if (key == name) return value;
    return "";
  }
};

TEST_F(metrics_access, the_page_is_for_those_alone_who_may_get_it) {
  for (const auto* header : {"", "Bearer", "Bearer ", "Basic scraper", "Bearer scraper\n"}) {
    const auto answer = kube_test::run(loop.context(), request(header, "192.0.2.1"));
    EXPECT_EQ(answer.status, 401) << header;
    EXPECT_EQ(field_of(answer, "WWW-Authenticate"), "Bearer");
  }
  EXPECT_EQ(get(std::string(20'000, 'x')).status, 401);
  EXPECT_EQ(api.token_reviews, 0) << "that is no token";
  EXPECT_EQ(get("made-up").status, 401);
  const auto refused = get("pod");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body, words::english("access.no_metrics",
                                         {{"name", "system:serviceaccount:team-a:default"}, {"path", "/metrics"}}) +
                              "\n");
  const auto page = get("scraper");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("namespaces_of_others"));
  EXPECT_EQ(page.content_type, controller::registry::content_type);
  for (const auto& name : {"made-up", "scraper"}) EXPECT_FALSE(log.contains(name)) << "a token stands in no log";
}

TEST_F(metrics_access, yes_is_known_for_a_minute_and_no_for_ten_seconds) {
  for (int second = 0; second < 60; ++second, now += 1s) EXPECT_EQ(get("scraper").status, 200);
  EXPECT_EQ(api.token_reviews, 1);
  EXPECT_EQ(api.access_reviews, 1);
  api.rights.clear();
  EXPECT_EQ(get("scraper").status, 403) << "a right that is taken away is gone";
  now += 9s;
  EXPECT_EQ(get("scraper").status, 403);
  EXPECT_EQ(api.token_reviews, 2);
  now += 2s;
  api.persons.erase("scraper");
  EXPECT_EQ(get("scraper").status, 401);
  EXPECT_EQ(api.token_reviews, 3);
}

TEST_F(metrics_access, an_api_server_that_cannot_be_asked_is_said) {
  EXPECT_EQ(get("scraper").status, 200);
  api.is_down = true;
  now += 59s;
  EXPECT_EQ(get("scraper").status, 200);
  now += 2s;
  const auto answer = get("scraper");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr(words::begin_of("access.not_asked", "subject")));
  EXPECT_THAT(answer.body, Not(HasSubstr("namespaces_of_others")));
  EXPECT_EQ(field_of(answer, "Retry-After"), "5");
  api.is_down = false;
  EXPECT_EQ(get("scraper").status, 200) << "that was no answer to keep";
}

TEST_F(metrics_access, made_up_tokens_of_one_address_are_five_questions) {
  int waits = 0;
  for (int i = 0; i < 100; ++i) waits += get("made-up-" + std::to_string(i)).status == 429 ? 1 : 0;
  EXPECT_EQ(api.token_reviews, 5);
  EXPECT_EQ(waits, 95);
  EXPECT_EQ(get("scraper", "192.0.2.200").status, 200) << "who comes from elsewhere has their own turn";
}

// Forty addresses send made-up tokens every second. The kubelet exchanges the token of Prometheus meanwhile.
TEST_F(metrics_access, made_up_tokens_from_everywhere_keep_no_one_out) {
  EXPECT_EQ(get("scraper", "192.0.2.200").status, 200);
  for (int second = 0; second < 600; ++second, now += 1s) {
    for (int i = 0; i < 40; ++i)
      get("made-up-" + std::to_string(second) + "-" + std::to_string(i), "192.0.2." + std::to_string(i));
    if (second % 30 == 0) EXPECT_EQ(get(second < 300 ? "scraper" : "next", "192.0.2.200").status, 200) << second;
  }
  EXPECT_LE(api.token_reviews, 600 + 10 + 12) << "one a second and ten at once, and those of Prometheus";
  EXPECT_GE(api.token_reviews, 600) << "they did come";
}

// Who has a right to nothing here has no budget of those who have one, neither has their address.
TEST_F(metrics_access, an_account_without_the_right_stays_a_stranger) {
  for (int i = 0; i < 20; ++i, now += 11s) EXPECT_EQ(get("pod").status, 403);
  auto reviews = api.token_reviews;
  for (int i = 0; i < 5; ++i) get("made-up-" + std::to_string(i));
  EXPECT_EQ(api.token_reviews, reviews + 5);
  EXPECT_EQ(get("pod").status, 429);
  now += 20s;
  reviews = api.token_reviews;
  for (int i = 0; i < 10; ++i) get("others-" + std::to_string(i), "192.0.2." + std::to_string(10 + i));
  EXPECT_EQ(api.token_reviews, reviews + 10) << "what all strangers together may ask at once";
  EXPECT_EQ(get("pod").status, 429);
}

// The word of a token about its own end is read before the API server has looked at the token.
TEST(token_access, the_end_of_a_token_is_any_number) {
  const auto end = [](const std::string& payload) {
    std::string text(payload.size() * 2, '\0');
    text.resize(static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                         reinterpret_cast<const unsigned char*>(payload.data()),
                                                         static_cast<int>(payload.size()))));
    return controller::end_of("head." + text + ".signature");
  };
  EXPECT_EQ(end(R"({"exp":1800000000})"), 1'800'000'000);
  EXPECT_EQ(end(R"({"exp":1e300})"), 9'000'000'000);
  EXPECT_EQ(end(R"({"exp":18446744073709551615})"), 9'000'000'000);
  EXPECT_EQ(end(R"({"exp":-1e300})"), 0);
  EXPECT_EQ(end(R"({"exp":"soon"})"), std::nullopt);
  EXPECT_EQ(end("{}"), std::nullopt);
  EXPECT_EQ(controller::end_of("no token"), std::nullopt);
}

TEST_F(metrics_access, one_question_at_a_time_about_a_token) {
  api.before_review = []() -> boost::asio::awaitable<void> { co_await controller::sleep_for(100ms); };
  std::array<int, 8> statuses{};
  for (auto& status : statuses)
    boost::asio::co_spawn(loop.context(), request("Bearer scraper", "192.0.2.1"),
                          [&status](std::exception_ptr, http_response answer) { status = answer.status; });
  EXPECT_TRUE(turn([&] { return std::ranges::count(statuses, 0) == 0; }));
  EXPECT_EQ(api.token_reviews, 1);
  EXPECT_EQ(std::ranges::count(statuses, 200), 5) << "one asks, and four wait for the answer";
  EXPECT_EQ(std::ranges::count(statuses, 429), 3) << "more do not take up places of the server";
}

TEST_F(metrics_access, the_server_shows_a_certificate_of_its_own) {
  controller::http_server_metrics serving{metrics};
  controller::http_server_options options("metrics", "127.0.0.1:0");
  options.tls.emplace();
  controller::http_server server(loop, serving, options);
  EXPECT_FALSE(server.serving());
  const auto guard = controller::add_metrics_route(server, metrics, &api);
  EXPECT_TRUE(server.serving());
  EXPECT_GT(metric("quartermaster_certificate_expiry_seconds{server=\"metrics\"}"),
            static_cast<double>(controller::wall_seconds()) + 9 * 365 * 86'400.0);
}

}  // namespace
}  // namespace controller_test
