#include "cli/console/proxied_person.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "controller/x509.hpp"

namespace cli::console {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const controller::x509::validity for_long{0, 4'000'000'000};
const auto people = controller::x509::make_authority("people", for_long);
const auto proxies = controller::x509::make_authority("proxies", for_long);

/// As kube-apiserver writes it, with what is in `more` instead.
kube::config_map config_map_of(std::vector<std::pair<std::string, std::string>> more = {}) {
  std::map<std::string, std::string> data{{"client-ca-file", people.certificate},
                                          {"requestheader-client-ca-file", proxies.certificate},
                                          {"requestheader-allowed-names", R"(["front-proxy"])"},
                                          {"requestheader-username-headers", R"(["X-Remote-User"])"},
                                          {"requestheader-group-headers", R"(["X-Remote-Group"])"},
                                          {"requestheader-extra-headers-prefix", R"(["X-Remote-Extra-"])"}};
  for (auto& [key, value] : more) data[key] = std::move(value);
  kube::config_map out;
  std::vector<kube::packed_map::entry> entries(data.begin(), data.end());
  out.data = kube::packed_map::of(entries);
  return out;
}

controller::http_request request_of(std::vector<std::pair<std::string, std::string>> fields,
                                    std::string name = "front-proxy") {
  controller::http_request out;
  out.fields.remote = std::move(fields);
  out.caller_name = std::move(name);
  return out;
}

TEST(proxied_person, is_the_one_that_the_api_server_names) {
  const auto trust = trust_in(config_map_of());
  ASSERT_TRUE(trust) << trust.error();
  const auto person = person_in(request_of({{"x-remote-user", "ann"},
                                            {"x-remote-group", "lab"},
                                            {"x-remote-group", "system:authenticated"},
                                            {"x-remote-extra-scopes%2fa", "b"},
                                            {"x-remote-other", "c"}}),
                                *trust);
  ASSERT_TRUE(person) << person.error().code;
  EXPECT_EQ(person->name, "ann");
  EXPECT_EQ(json::parse(person->review), json::parse(R"({"user": "ann", "groups": ["lab", "system:authenticated"],
      "extra": {"scopes/a": ["b"]}})"));
}

TEST(proxied_person, other_callers_and_other_requests_are_refused) {
  const auto trust = trust_in(config_map_of());
  ASSERT_TRUE(trust) << trust.error();
  const std::vector<std::pair<std::string, std::string>> ann{{"x-remote-user", "ann"}};
  EXPECT_TRUE(person_in(request_of(ann), *trust));
  EXPECT_FALSE(person_in(request_of(ann, "kubelet"), *trust));
  EXPECT_FALSE(person_in(request_of(ann, ""), *trust));
  EXPECT_FALSE(person_in(request_of(ann), proxy_trust()));
  EXPECT_FALSE(person_in(request_of({}), *trust));
  EXPECT_FALSE(person_in(request_of({{"x-remote-user", "ann"}, {"x-remote-user", "bob"}}), *trust));
}

TEST(proxied_person, a_cluster_in_which_anyone_could_speak_for_anyone_is_refused) {
  const auto shared =
      config_map_of({{"requestheader-client-ca-file", people.certificate}, {"requestheader-allowed-names", "[]"}});
  EXPECT_FALSE(trust_in(shared));
  const auto named = trust_in(config_map_of({{"requestheader-client-ca-file", people.certificate}}));
  EXPECT_TRUE(named) << named.error();
  const auto nameless = trust_in(config_map_of({{"requestheader-allowed-names", "[]"}}));
  ASSERT_TRUE(nameless) << nameless.error();
  EXPECT_TRUE(person_in(request_of({{"x-remote-user", "ann"}}, "any"), *nameless));
  EXPECT_FALSE(trust_in(config_map_of({{"requestheader-client-ca-file", ""}})));
  EXPECT_FALSE(trust_in(config_map_of({{"requestheader-username-headers", "[]"}})));
  const auto other = trust_in(config_map_of({{"requestheader-group-headers", R"(["X-Group"])"}}));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error(), HasSubstr("x-group"));
}

}  // namespace
}  // namespace cli::console
