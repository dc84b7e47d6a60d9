#include "kube/client.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/page_walk.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scripted_transport.hpp"

using namespace kube;
using namespace std::chrono_literals;
using kube_test::run;
using kube_test::scripted_transport;
using nlohmann::json;

namespace {

struct client_fixture {
  boost::asio::io_context loop;
  scripted_transport api;
  client api_client{api};
};

constexpr auto status_409 =
    R"({"kind":"Status","status":"Failure","message":"object has been modified","reason":"Conflict","code":409})";
constexpr auto status_404 =
    R"({"kind":"Status","status":"Failure","message":"nodes \"x\" not found","reason":"NotFound","code":404})";
constexpr auto status_429 =
    R"({"kind":"Status","status":"Failure","message":"slow down","reason":"TooManyRequests","code":429})";

}  // namespace

TEST(client, gets_an_object_as_json) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/nodes/gpu-1").accepts("application/json").answers(200, R"({"kind":"Node"})");
  const auto got = run(f.loop, f.api_client.get(resources::nodes, {"", "gpu-1"}));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)["kind"], "Node");
}

TEST(client, names_the_operation_and_the_object_in_errors) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/nodes/x").answers(404, status_404);
  f.api.on(method::get, "/apis/apps/v1/namespaces/kube-system/daemonsets/d").fails(errc::connect, "connection refused");
  const auto missing = run(f.loop, f.api_client.get(resources::nodes, {"", "x"}));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, errc::not_found);
  EXPECT_TRUE(missing.error().message.starts_with("get nodes x")) << missing.error().message;
  const auto down = run(f.loop, f.api_client.get(resources::daemon_sets, {"kube-system", "d"}));
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().message, "get daemonsets.apps kube-system/d: connection refused");
}

TEST(client, an_answer_that_is_not_json_is_a_decode_error) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/nodes/x").answers(200, "<html>");
  const auto got = run(f.loop, f.api_client.get(resources::nodes, {"", "x"}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::decode);
}

TEST(client, lists_all_pages_and_drops_the_version_when_it_continues) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/pods?*resourceVersion=7*")
      .answers(200, R"({"metadata":{"continue":"more"},"items":[{"n":1},{"n":2}]})");
  f.api.on(method::get, "/api/v1/pods?*continue=more*").answers(200, R"({"metadata":{},"items":[{"n":3}]})");
  list_options options;
  options.resource_version = "7";
  options.resource_version_match = "Exact";
  const auto got = run(f.loop, f.api_client.list(resources::pods, options));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->size(), 3u);
  EXPECT_EQ((*got)[2]["n"], 3);
  EXPECT_FALSE(f.api.seen()[1].target.contains("resourceVersion"));
}

TEST(client, a_list_whose_next_page_is_the_one_that_came_is_an_error_and_no_endless_one) {
  client_fixture f;
  const auto page = R"({"metadata":{"continue":"a"},"items":[]})";
  f.api.on(method::get, "/api/v1/pods?limit=500").answers(200, page);
  f.api.on(method::get, "/api/v1/pods?limit=500&continue=a").answers(200, page);
  const auto got = run(f.loop, f.api_client.list(resources::pods, list_options()));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::decode);
  EXPECT_TRUE(got.error().message.starts_with("list pods: ")) << got.error().message;
}

TEST(client, a_list_of_pages_without_end_is_given_up) {
  page_walk pages("list pods");
  list_options options;
  int count = 1;
  auto more = pages.next("1", options);
  while (more && *more) more = pages.next(std::to_string(++count), options);
  ASSERT_FALSE(more);
  EXPECT_EQ(count, 20'000);
  EXPECT_THAT(more.error().message, testing::HasSubstr("after 20000"));
}

TEST(client, an_empty_list_may_be_null) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/pods*").answers(200, R"({"metadata":{},"items":null})");
  const auto got = run(f.loop, f.api_client.list(resources::pods, list_options()));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->empty());
}

TEST(client, F18_repeats_429_and_503_that_say_when_and_not_others) {
  client_fixture f;
  f.api.on(method::get, "/version").answers(429, status_429).retry_after(0s);
  f.api.on(method::get, "/version").answers(503).retry_after(0s);
  f.api.on(method::get, "/version").answers(200, "{}");
  auto got = run(f.loop, f.api_client.raw("/version"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200);
  f.api.on(method::get, "/version").answers(503);
  got = run(f.loop, f.api_client.raw("/version"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 503);
}

TEST(client, F18_gives_up_after_ten_repeats) {
  client_fixture f;
  for (int i = 0; i <= 10; ++i) f.api.on(method::get, "/api/v1/nodes/x").answers(429, status_429).retry_after(0s);
  const auto got = run(f.loop, f.api_client.get(resources::nodes, {"", "x"}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::too_many_requests);
}

TEST(client, a_long_wait_is_the_callers_decision) {
  client_fixture f;
  f.api.on(method::get, "/api/v1/nodes/x").answers(429, status_429).retry_after(3600s);
  const auto got = run(f.loop, f.api_client.get(resources::nodes, {"", "x"}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().retry_after, 3600s);
}

TEST(client, a_refused_eviction_is_not_waited_for) {
  client_fixture f;
  f.api.on(method::post, "/api/v1/namespaces/a/pods/p/eviction*")
      .body_has(R"("uid":"u-1")")
      .answers(429, status_429)
      .retry_after(0s);
  preconditions only_if;
  only_if.uid = "u-1";
  const auto got = run(f.loop, f.api_client.evict({"a", "p"}, only_if));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::too_many_requests);
}

TEST(client, removing_what_is_gone_is_success_and_removing_another_is_a_conflict) {
  client_fixture f;
  preconditions only_if;
  only_if.uid = "u-1";
  f.api.on(method::del, "/apis/apps/v1/namespaces/a/daemonsets/d").body_has(R"("uid":"u-1")").answers(404, status_404);
  EXPECT_TRUE(run(f.loop, f.api_client.remove(resources::daemon_sets, {"a", "d"}, only_if)));
  f.api.on(method::del, "/apis/apps/v1/namespaces/a/daemonsets/d").answers(409, status_409);
  const auto got = run(f.loop, f.api_client.remove(resources::daemon_sets, {"a", "d"}, only_if));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::conflict);
}

// An auth proxy whose session is over redirects to its login.
TEST(client, a_redirect_is_no_success_whatever_was_asked) {
  client_fixture f;
  const object_key key{"a", "d"};
  const auto& type = resources::daemon_sets;
  const std::string path = "/apis/apps/v1/namespaces/a/daemonsets";
  const auto refused = [](const auto& got) {
    EXPECT_FALSE(got);
    if (got) return;
    EXPECT_EQ(got.error().code, errc::server);
    EXPECT_NE(got.error().message.find("redirect"), std::string::npos) << got.error().message;
  };
  f.api.on(method::del, path + "/d").answers(302);
  refused(run(f.loop, f.api_client.remove(type, key, {})));
  f.api.on(method::get, path + "/d").answers(307, "{}");
  refused(run(f.loop, f.api_client.get(type, key)));
  f.api.on(method::patch, path + "/d?*").answers(303, "{}");
  refused(run(f.loop, f.api_client.apply(type, key, json::object())));
  f.api.on(method::post, "/api/v1/namespaces/a/pods/d/binding").answers(302);
  refused(run(f.loop, f.api_client.bind(key, "n", {}, nullptr)));
  f.api.on(method::post, "/api/v1/namespaces/a/pods/d/eviction").answers(301);
  refused(run(f.loop, f.api_client.evict(key, {})));
}

TEST(client, without_a_name_nothing_is_sent) {
  client_fixture f;
  const auto& type = resources::daemon_sets;
  for (const auto* none : {"", ".", ".."}) {
    const object_key key{"a", none};
    const auto refused = [&](const auto& got) {
      ASSERT_FALSE(got) << none;
      EXPECT_EQ(got.error().code, errc::bad_request);
    };
    refused(run(f.loop, f.api_client.remove(type, key, {})));
    refused(run(f.loop, f.api_client.get(type, key)));
    refused(run(f.loop, f.api_client.replace(type, key, json::object())));
    refused(run(f.loop, f.api_client.apply(type, key, json::object())));
    refused(run(f.loop, f.api_client.apply_status(type, key, json::object())));
    refused(run(f.loop, f.api_client.patch(type, key, patch_kind::json, json::array())));
    refused(run(f.loop, f.api_client.bind(key, "n", {}, nullptr)));
    refused(run(f.loop, f.api_client.evict(key, {})));
  }
  EXPECT_TRUE(f.api.seen().empty());
}

TEST(client, each_verb_sends_its_own_request) {
  client_fixture f;
  const json object = {{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", {{"name", "c"}, {"namespace", "a"}, {"resourceVersion", "5"}}}};
  const std::string path = "/api/v1/namespaces/a/configmaps/c";
  f.api.on(method::post, "/api/v1/namespaces/a/configmaps?*").answers(201, "{}");
  f.api.on(method::put, path + "?*").body_has(R"("resourceVersion":"5")").answers(200, "{}");
  f.api.on(method::patch, path + "?*fieldManager=*").answers(200, "{}");
  f.api.on(method::patch, path + "/status?*").answers(200, "{}");
  f.api.on(method::patch, path + "?*").body_has(R"("op":"test")").answers(200, "{}");
  f.api.on(method::post, "/api/v1/namespaces/a/pods/p/binding*")
      .body_has("gpu-1")
      .answers(201, R"({"kind":"Status","status":"Success"})");
  const object_key key{"a", "c"};
  EXPECT_TRUE(run(f.loop, f.api_client.create(resources::config_maps, "a", object)));
  EXPECT_TRUE(run(f.loop, f.api_client.replace(resources::config_maps, key, object)));
  EXPECT_TRUE(run(f.loop, f.api_client.apply(resources::config_maps, key, object)));
  EXPECT_TRUE(run(f.loop, f.api_client.apply_status(resources::config_maps, key, object)));
  const json change = json::parse(R"([{"op":"test","path":"/metadata/uid","value":"u"}])");
  EXPECT_TRUE(run(f.loop, f.api_client.patch(resources::config_maps, key, patch_kind::json, change)));
  EXPECT_TRUE(run(f.loop, f.api_client.bind({"a", "p"}, "gpu-1", preconditions(), json())));
}
