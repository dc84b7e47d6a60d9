#include "kube/status.hpp"

#include <gtest/gtest.h>

#include "kube/reason.hpp"
#include "test/kube/golden.hpp"

namespace {

using namespace kube;
using namespace std::chrono_literals;

struct row {
  const char* name;
  errc code;
  int http;
};
constexpr row rows[] = {
    {"status_expired", errc::gone, 410},
    {"status_too_large", errc::version_too_large, 504},
    {"status_exists", errc::already_exists, 409},
    {"status_conflict", errc::conflict, 409},
    {"status_too_many", errc::too_many_requests, 429},
    {"status_forbidden", errc::forbidden, 403},
    {"status_invalid", errc::invalid, 422},
    {"status_internal", errc::server, 500},
};

response answer(int status, std::string body) {
  response made;
  made.status = status;
  made.body = std::move(body);
  return made;
}

TEST(status, of_an_answer_is_told_apart_by_code_and_reason_in_both_encodings) {
  for (const auto& [name, code, http] : rows) {
    for (const std::string suffix : {".pb", ".json"}) {
      const auto made = error_of("list pods", answer(http, golden::read(name + suffix)));
      EXPECT_EQ(made.code, code) << name << suffix << ": " << to_string(made.code);
      EXPECT_EQ(made.http, http);
      EXPECT_TRUE(made.message.starts_with("list pods: " + std::to_string(http) + " ")) << made.message;
    }
  }
}

TEST(status, in_a_stream_is_the_same_as_in_an_answer) {
  for (const auto& [name, code, http] : rows) {
    const auto binary = error_of_status("watch pods", golden::read(std::string(name) + ".pb"), encoding::protobuf);
    const auto text = error_of_status("watch pods", golden::read(std::string(name) + ".json"), encoding::json);
    EXPECT_EQ(binary.code, code) << name;
    EXPECT_EQ(binary.message, text.message);
    EXPECT_EQ(binary.retry_after, text.retry_after);
  }
}

TEST(status, says_when_to_come_back) {
  auto busy = answer(429, golden::read("status_too_many.pb"));
  EXPECT_EQ(error_of("get", busy).retry_after, 7s);
  busy.retry_after = 3s;  // the header wins
  EXPECT_EQ(error_of("get", busy).retry_after, 3s);
  EXPECT_EQ(error_of("get", answer(500, "")).retry_after, std::nullopt);
}

TEST(status, F18_of_plain_text_and_of_nothing_goes_by_the_code) {
  EXPECT_EQ(error_of("get", answer(429, "429 Too many requests\n")).code, errc::too_many_requests);
  EXPECT_EQ(error_of("get", answer(429, "Too many\nrequests\n")).message, "get: 429: Too many requests");
  EXPECT_EQ(error_of("get", answer(503, "")).message, "get: 503");
  EXPECT_EQ(error_of("get", answer(401, "Unauthorized")).code, errc::unauthorized);
  EXPECT_EQ(error_of("get", answer(404, "404 page not found")).code, errc::not_found);
  EXPECT_EQ(error_of("get", answer(410, "")).code, errc::gone);
  EXPECT_EQ(error_of("get", answer(409, "")).code, errc::conflict);
  EXPECT_EQ(error_of("get", answer(415, "")).code, errc::bad_request);
  EXPECT_EQ(error_of("get", answer(504, "")).code, errc::server);
}

TEST(status, of_an_old_server_says_in_words_that_the_version_is_too_large) {
  const auto made = error_of(
      "list",
      answer(
          504,
          R"({"kind":"Status","message":"Timeout: Too large resource version: 9, current: 1","reason":"Timeout","code":504})"));
  EXPECT_EQ(made.code, errc::version_too_large);
}

TEST(status, has_its_reason_without_the_operation) {
  for (const auto& [name, code, http] : rows) {
    const auto made = answer(http, golden::read(std::string(name) + ".json"));
    EXPECT_EQ("list pods: " + reason_of(made), error_of("list pods", made).message) << name;
  }
  EXPECT_EQ(reason_of(answer(503, "no endpoints\n")), "503: no endpoints");
  EXPECT_EQ(reason_of(answer(503, "")), "503");
}

TEST(status, F37_is_one_line_of_bounded_length_whatever_the_server_sent) {
  std::string long_text;
  for (int i = 0; i < 5000; ++i) long_text += i % 7 == 0 ? "\n\x1b[31m" : "ä";
  const auto made = error_of("get", answer(500, long_text));
  EXPECT_LT(made.message.size(), 1100u);
  for (const char c : made.message) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_TRUE(nlohmann::json(made.message).dump().ends_with("...\"")) << "cut inside of a character";
}

TEST(status, that_is_none_in_a_stream_is_a_decode_error) {
  EXPECT_EQ(error_of_status("watch", "{}", encoding::json).code, errc::decode);
  EXPECT_EQ(error_of_status("watch", "[1,2]", encoding::json).code, errc::decode);
  EXPECT_EQ(error_of_status("watch", "\xff\xff\xff", encoding::protobuf).code, errc::decode);
  EXPECT_EQ(error_of_status("watch", golden::read("pods.list.pb"), encoding::protobuf).code, errc::decode);
}

TEST(status, with_fields_of_wrong_types_does_not_throw) {
  const auto made = error_of(
      "get",
      answer(
          500,
          R"({"kind":"Status","code":"x","reason":7,"message":null,"details":{"retryAfterSeconds":"1","causes":[1,{"reason":{}}]}})"));
  EXPECT_EQ(made.code, errc::server);
}

TEST(errc, has_a_name_for_every_value) {
  for (int i = 0; i <= static_cast<int>(errc::decode); ++i) EXPECT_NE(to_string(static_cast<errc>(i)), "unknown") << i;
}

}  // namespace
