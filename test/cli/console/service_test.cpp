#include "cli/console/service.hpp"

#include "cli/console/shares.hpp"
#include "controller/log.hpp"
#include "kube/config.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/controller/reviewing_server.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/kube/loop.hpp"
#include "test/words.hpp"

namespace cli::console {
namespace {

using console_test::two_teams;
using console_test::vgpu_node;
using controller::http_request;
using controller::http_response;
using controller_test::reviewing_server;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

const std::vector<std::string> api_paths{"me",          "overview",     "fleet",           "measured",
                                         "nodes/gpu-1", "waiting",      "waiting/reasons", "pods",
                                         "namespaces",  "declarations", "capacity",        "history?chart=utilization",
                                         "cost",        "stream",       "nowhere",         "pods/team-a/mine-1"};

/// header.payload.signature
std::string token_with(const ordered_json& claims) {
  auto payload = kube::base64_encode(claims.dump());
  std::erase(payload, '=');
  return "e30." + payload + ".c2ln";
}
std::string token_until(std::int64_t seconds) { return token_with({{"exp", seconds}}); }

struct console_service : two_teams {
  controller::log::capture log;
  boost::asio::io_context loop;
  reviewing_server api;
  kube::client client{api};
  access_settings asking;
  service_settings serving;
  controller::milliseconds now{1'000'000};
  text::phrase not_ready;
  std::optional<controller::milliseconds> silence, leaderless;
  kube::transport* prometheus = nullptr;
  unbound_pods unbound;
  std::unique_ptr<access> doorkeeper;
  std::unique_ptr<service> console;

  console_service() {
    api.persons = {
        {"token-of-a", "a"}, {"token-of-b", "b"}, {"token-of-admin", "admin"}, {"token-of-nobody", "nobody"}};
    api.rights["a"] = {{"pods", "team-a"}, {"acceleratorquotas", "team-a"}};
    api.rights["b"] = {{"pods", "team-b"}, {"acceleratorquotas", "team-b"}};
    api.rights["admin"] = {{"pods", ""},
                           {"events", ""},
                           {"nodes", ""},
                           {"acceleratornodes", ""},
                           {"acceleratorquotas", ""},
                           {"configmaps", "kube-public"}};
  }
  void start() {
    read();
    doorkeeper =
        std::make_unique<access>(client, asking, [this] { return namespaces_of(cluster); }, [this] { return now; });
    console = std::make_unique<service>(service::dependencies{.known = cluster,
                                                              .doorkeeper = *doorkeeper,
                                                              .reading = api,
                                                              .prometheus = prometheus,
                                                              .unbound = &unbound,
                                                              .not_ready = [this] { return not_ready; },
                                                              .now = [this] { return now; },
                                                              .wall = [] { return 1'800'000'000; },
                                                              .silence = [this] { return silence; },
                                                              .leaderless = [this] { return leaderless; }},
                                        serving);
  }
  static http_request request_of(const std::string& target, const std::string& token = "") {
    http_request out;
    out.method = "GET";
    const auto mark = std::min(target.find('?'), target.size());
    out.path = target.substr(0, mark);
    if (mark < target.size()) out.query = target.substr(mark + 1);
    out.fields.host = "localhost:8888";
    out.caller_address = "192.0.2.1";
    if (!token.empty()) out.fields.authorization = "Bearer " + token;
    return out;
  }
  static http_request page() {
    auto out = request_of("/console/");
    out.fields.accept_encoding = "gzip, deflate, br";
    return out;
  }
  http_response get(http_request request) {
    if (!console) start();
    return kube_test::run(loop, console->answer(std::move(request)));
  }
  http_response get(const std::string& path, const std::string& token = "") {
    return get(request_of("/console/api/v1/" + path, token));
  }
  static std::string field_of(const http_response& response, const std::string& name) {
    for (const auto& [key, value] : response.fields)
      if (key == name) return value;
    return "";
  }
};

TEST_F(console_service, nothing_is_said_without_a_token) {
  for (const auto& path : api_paths) {
    const auto answer = get(path);
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_EQ(ordered_json::parse(answer.body)["error"]["code"], "unauthenticated");
    EXPECT_FALSE(answer.pieces);
  }
  EXPECT_EQ(api.token_reviews, 0) << "no token is no question";
}

TEST_F(console_service, a_forged_or_malformed_token_is_none) {
  const std::string line_end("token-of-a\nX: y");
  for (const auto& token : {std::string("forged"), std::string("token-of-"), token_until(1), std::string(20'000, 'x'),
                            std::string("token of a"), line_end}) {
    const auto answer = get("fleet", token);
    EXPECT_EQ(answer.status, 401) << token.substr(0, 20);
    EXPECT_THAT(answer.body, Not(HasSubstr("gpu-")));
  }
  auto other_scheme = request_of("/console/api/v1/me");
  other_scheme.fields.authorization = "Basic token-of-a";
  EXPECT_EQ(get(other_scheme).status, 401);
}

TEST_F(console_service, a_token_that_ends_is_not_kept_beyond_its_end) {
  const auto wall =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto token = token_until(wall.count() + 5);
  api.persons[token] = "a";
  EXPECT_EQ(get("me", token).status, 200);
  api.persons.erase(token);  // it has ended
  now += 2s;
  EXPECT_EQ(get("me", token).status, 200) << "known for as long as it lives";
  now += 4s;
  EXPECT_EQ(get("me", token).status, 401);
}

TEST_F(console_service, a_right_that_is_taken_away_is_gone_within_half_a_minute) {
  EXPECT_THAT(get("waiting", "token-of-b").body, HasSubstr("secret-waits"));
  api.rights["b"].clear();
  now += 31s;
  const auto answer = get("waiting", "token-of-b");
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, Not(HasSubstr("secret")));
}

TEST_F(console_service, no_path_tells_one_team_of_the_other) {
  EXPECT_THAT(get("namespaces", "token-of-b").body, HasSubstr("team-b"));
  EXPECT_THAT(get("fleet", "token-of-admin").body, HasSubstr("team-b")) << "the same answers, kept for another person";
  for (auto path : api_paths) {
    const auto answer = get(path, "token-of-a");
    EXPECT_THAT(answer.body, Not(HasSubstr("secret"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("team-b"))) << path;
  }
  for (const auto& query : {"waiting?namespace=team-b", "pods?namespace=team-b",
                            "history?chart=namespace_cores&namespace=team-b", "history?chart=namespace_cores"})
    EXPECT_EQ(get(query, "token-of-a").status, 403) << query;
  for (const auto& path : {"fleet", "nodes/gpu-1", "capacity", "declarations", "history?chart=memory"})
    EXPECT_EQ(get(path, "token-of-a").status, 403) << path;
  EXPECT_EQ(get("waiting?namespace=team-a", "token-of-a").status, 200);
}

TEST_F(console_service, who_has_no_rights_sees_only_who_they_are) {
  for (const auto& path : api_paths) {
    const auto answer = get(path, "token-of-nobody");
    const bool is_open = path == "me" || path == "stream";
    EXPECT_EQ(answer.status, is_open ? 200 : path == "nowhere" ? 404 : 403) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("team-"))) << path;
  }
}

TEST_F(console_service, only_reading_is_answered) {
  for (const auto* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    for (const auto* path : {"/console/api/v1/fleet", "/console/", "/"}) {
      auto request = request_of(path, "token-of-admin");
      request.method = method;
      EXPECT_EQ(get(request).status, 405) << method << " " << path;
    }
  }
  auto head = request_of("/console/api/v1/me", "token-of-a");
  head.method = "HEAD";
  EXPECT_EQ(get(head).status, 200);
}

TEST_F(console_service, every_answer_has_its_guards) {
  for (const auto& answer : {get("me", "token-of-a"), get("me"), get(page()), get(request_of("/etc"))}) {
    EXPECT_THAT(field_of(answer, "Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self';"));
    EXPECT_THAT(field_of(answer, "Content-Security-Policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(field_of(answer, "Referrer-Policy"), "no-referrer");
  }
  EXPECT_EQ(field_of(get("me", "token-of-a"), "Cache-Control"), "no-store");
  EXPECT_THAT(get("waiting", "token-of-a").content_type, HasSubstr("application/json"));
  EXPECT_EQ(field_of(get(page()), "Cache-Control"), "no-cache");
}

TEST_F(console_service, frames_are_for_pages_that_a_setting_names) {
  EXPECT_THAT(field_of(get(page()), "Content-Security-Policy"), testing::EndsWith("; frame-ancestors 'none'"));
  EXPECT_EQ(field_of(get(page()), "X-Frame-Options"), "DENY");
  serving.frame_ancestors = {"https://portal.example.com", "https://b.test:8443"};
  console = nullptr;
  EXPECT_THAT(field_of(get(page()), "Content-Security-Policy"),
              testing::EndsWith("; frame-ancestors https://portal.example.com https://b.test:8443"));
  EXPECT_EQ(field_of(get(page()), "X-Frame-Options"), "") << "it knows no origins";
}

TEST_F(console_service, another_page_in_the_same_browser_gets_nothing) {
  for (const auto* host :
       {"evil.example", "evil.example:8888", "", "localhost.evil.example", "127.0.0.1.evil.example"}) {
    auto request = request_of("/console/api/v1/me", "token-of-a");
    request.fields.host = host;
    EXPECT_EQ(get(request).status, 421) << host;
  }
  auto request = request_of("/console/api/v1/me", "token-of-a");
  request.fields.origin = "http://evil.example";
  EXPECT_EQ(get(request).status, 421);
  request.fields.origin = "http://localhost:8888";
  EXPECT_EQ(get(request).status, 200);
  request.fields.origin.clear();
  request.fields.host = "[::1]:8888";
  EXPECT_EQ(get(request).status, 200);
}

TEST_F(console_service, an_answer_that_has_not_changed_is_not_sent_again) {
  const auto first = get("fleet", "token-of-admin");
  ASSERT_EQ(first.status, 200);
  auto again = request_of("/console/api/v1/fleet", "token-of-admin");
  again.fields.if_none_match = field_of(first, "ETag");
  EXPECT_EQ(get(again).status, 304);
  cluster.pods.put(console_test::pod_of("team-a", "new", 10, 4, "gpu-1"));
  now += 2s;
  EXPECT_EQ(get(again).status, 200);
}

TEST_F(console_service, what_changes_elsewhere_does_not_change_the_etag) {
  const auto tag = field_of(get("namespaces", "token-of-a"), "ETag");
  cluster.pods.put(console_test::pod_of("team-b", "secret-new", 1, 1, "gpu-1"));
  now += 11s;
  EXPECT_EQ(field_of(get("namespaces", "token-of-a"), "ETag"), tag);
}

TEST_F(console_service, a_pod_and_its_events_need_their_own_rights) {
  EXPECT_EQ(get("pods/team-b/secret-1", "token-of-a").status, 403);
  EXPECT_EQ(get("pods/team-b/none", "token-of-a").status, 403) << "as one that is there";
  EXPECT_EQ(get("pods/team-a/none", "token-of-a").status, 404);
  for (const char* path :
       {"pods/", "pods/team-a", "pods/team-a/", "pods//mine-1", "pods/team-a/mine-1/log", "pods/../team-b"})
    EXPECT_THAT(get(path, "token-of-a").status, testing::AnyOf(403, 404)) << path;
  api.objects["/api/v1/namespaces/team-a/pods/mine-1"] = {{"metadata", {{"uid", "u-1"}}}};
  api.objects["/api/v1/namespaces/team-a/events"] = {
      {"items", ordered_json::array({{{"reason", "Pulled"}, {"lastTimestamp", "2026-11-25T12:00:00Z"}}})}};
  // Who else may list the same pods gets an answer of their own.
  api.persons["token-of-c"] = "c";
  api.rights["c"] = api.rights["a"];
  api.rights["c"].insert({"events", "team-a"});
  EXPECT_THAT(get("pods/team-a/mine-1", "token-of-c").body, HasSubstr("Pulled"));
  const auto hidden = ordered_json::parse(get("pods/team-a/mine-1", "token-of-a").body);
  EXPECT_EQ(hidden["eventsMessage"], words::english("console.events.hidden"));
  EXPECT_THAT(hidden.dump(), Not(HasSubstr("Pulled")));
  const auto seen = ordered_json::parse(get("pods/team-a/mine-1", "token-of-admin").body);
  EXPECT_EQ(seen["eventsMessage"], "");
  ASSERT_EQ(seen["moments"].size(), 1u);
  EXPECT_EQ(seen["moments"][0]["reason"], "Pulled");
  EXPECT_THAT(api.targets["/api/v1/namespaces/team-a/events"], HasSubstr("involvedObject.uid%3Du-1"));
}

TEST_F(console_service, cost_is_of_one_of_twelve_months) {
  const auto answer = ordered_json::parse(get("cost", "token-of-a").body);
  ASSERT_EQ(answer["months"].size(), 12u);
  EXPECT_EQ(answer["month"], answer["months"][0]);
  const auto last = answer["months"][11].get<std::string>();
  EXPECT_EQ(ordered_json::parse(get("cost?month=" + last, "token-of-a").body)["month"], last);
  for (const std::string month : {"1999-01", "2099-12", "2026-13", "x", "2026-1"}) {
    const auto refused = get("cost?month=" + month, "token-of-a");
    EXPECT_EQ(refused.status, 400) << month;
    EXPECT_THAT(refused.body, HasSubstr(last)) << "what is allowed";
  }
  EXPECT_EQ(get("cost?year=2026", "token-of-a").status, 400);
}

TEST_F(console_service, large_answers_are_packed_where_the_caller_unpacks) {
  for (int i = 0; i < 100; ++i) cluster.nodes.put(vgpu_node("n-" + std::to_string(i), 8));
  auto request = request_of("/console/api/v1/fleet", "token-of-admin");
  const auto plain = get(request);
  request.fields.accept_encoding = "gzip, deflate, br";
  const auto packed = get(request);
  EXPECT_EQ(field_of(packed, "Content-Encoding"), "gzip");
  EXPECT_LT(packed.body.size() * 4, plain.body.size());
  EXPECT_EQ(field_of(plain, "Content-Encoding"), "");
}

TEST_F(console_service, a_person_who_asks_too_often_waits) {
  int refused = 0;
  std::string wait;
  for (int i = 0; i < 60; ++i) {
    const auto answer = get("me", "token-of-a");
    if (answer.status != 429) continue;
    ++refused;
    wait = field_of(answer, "Retry-After");
  }
  EXPECT_EQ(refused, 20) << "40 at once";
  EXPECT_EQ(wait, "1");
  EXPECT_EQ(get("me", "token-of-b").status, 200) << "others do not";
  now += 1s;
  EXPECT_EQ(get("me", "token-of-a").status, 200);
}

TEST_F(console_service, forged_tokens_do_not_flood_the_api_server) {
  int refused = 0;
  for (int i = 0; i < 200; ++i) refused += get("me", "forged-" + std::to_string(i)).status == 429 ? 1 : 0;
  EXPECT_EQ(api.token_reviews, 20);
  EXPECT_EQ(refused, 180);
  const auto reviews = api.token_reviews;
  now += 1s;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get("me", "forged-a").status, 401);
  EXPECT_EQ(api.token_reviews, reviews + 1) << "what was refused is known for some seconds";
  EXPECT_LE(doorkeeper->known(), 2 * asking.most_tokens);
}

/// Tokens whose word about their audience is as the API server knows them.
struct audiences : console_service {
  std::string for_console = issued({"quartermaster-console"}), for_api = issued({"api-server"}),
              for_both = issued({"api-server", "quartermaster-console"}), for_vault = issued({"vault"});

  std::string issued(const std::set<std::string>& names, const std::string& person = "a") {
    const auto token = token_with({{"aud", names}});
    api.persons[token] = person;
    api.audiences[token] = names;
    return token;
  }
  std::string message_to(const std::string& token) {
    const auto answer = get("me", token);
    EXPECT_EQ(answer.status, 401);
    const auto body = ordered_json::parse(answer.body);
    EXPECT_EQ(body["error"]["code"], "unauthenticated");
    return body["error"]["message"];
  }
};

TEST_F(audiences, a_token_for_the_console_or_for_the_api_server_signs_in) {
  for (const auto& token : {for_console, for_api, for_both}) EXPECT_EQ(get("waiting", token).status, 200) << token;
  EXPECT_EQ(api.token_reviews, 3) << "one question each";
  const auto line = words::english(
      "access.for_others_than_both",
      {{"audience", "quartermaster-console"},
       {"way",
        words::english("access.way", {{"command", "kubectl create token NAME --audience quartermaster-console"}})}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(message_to(for_vault), line);
  EXPECT_EQ(api.token_reviews, 4) << "the second answer is the one that is kept";
}

TEST_F(audiences, the_console_can_take_only_tokens_for_itself) {
  asking.audience_only = true;
  for (const auto& token : {for_console, for_both}) EXPECT_EQ(get("waiting", token).status, 200) << token;
  for (const auto& token : {for_api, for_vault, std::string("token-of-admin")})
    EXPECT_THAT(
        message_to(token),
        AllOf(HasSubstr(words::english("access.for_others_than", {{"audience", "quartermaster-console"}, {"way", "|"}})
                            .substr(0, 20)),
              HasSubstr("kubectl create token")));
  EXPECT_EQ(api.token_reviews, 5);
}

TEST_F(audiences, a_tokens_own_word_admits_nobody) {
  const auto liar = issued({"quartermaster-console"}, "admin");
  api.audiences[liar] = {"vault"};
  EXPECT_THAT(message_to(liar), HasSubstr(words::begin_of("access.for_others_than_both", "audience")));
  const auto forged = token_with({{"aud", "quartermaster-console"}, {"sub", "admin"}});
  EXPECT_THAT(message_to(forged), HasSubstr(words::begin_of("access.no_token", "way")));
  for (const auto& claims :
       {ordered_json(1), ordered_json(nullptr), ordered_json{{"aud", 5}}, ordered_json{{"aud", {1}}}})
    EXPECT_EQ(get("me", token_with(claims)).status, 401) << claims;
}

TEST_F(audiences, an_api_server_that_knows_of_none_has_only_its_own) {
  api.knows_audiences = false;
  EXPECT_EQ(get("me", for_console).status, 200) << "it is good for the API server itself";
  doorkeeper.reset(), console.reset();
  asking.audience_only = true;
  EXPECT_THAT(message_to(for_console), HasSubstr(words::begin_of("access.for_others_than", "audience")));
}

TEST_F(audiences, an_identity_provider_may_have_a_client_of_the_same_name) {
  api.audiences[for_console] = {"api-server"};  // as its tokens count for the API server
  EXPECT_EQ(get("me", for_console).status, 200);
  EXPECT_EQ(api.token_reviews, 2);
}

TEST_F(audiences, both_questions_about_a_token_count) {
  int refused = 0;
  for (int i = 0; i < 30; ++i)
    refused += get("me", token_with({{"aud", "quartermaster-console"}, {"jti", i}})).status == 429 ? 1 : 0;
  EXPECT_EQ(api.token_reviews, 20) << "20 at once";
  EXPECT_EQ(refused, 20);
}

/// One person asks once a second, after a stranger each time, and strangers send ten tokens a second that they made up.
struct strangers_ask : console_service {
  int person_waited = 0, stranger_waited = 0, next = 0, second = 0;

  void a_second(std::size_t addresses, const std::string& token = "token-of-a") {
    const int turn = second++ % 10;
    for (int i = 0; i < 10; ++i) {
      for (std::size_t address = 1; address <= addresses; ++address) {
        auto request = request_of("/console/api/v1/me", "forged-" + std::to_string(next++));
        request.caller_address = "192.0.2." + std::to_string(address);
        stranger_waited += get(request).status == 429 ? 1 : 0;
      }
      if (i == turn) person_waited += get("me", token).status == 429 ? 1 : 0;
      now += 100ms;
    }
  }
};

TEST_F(strangers_ask, wrong_tokens_from_the_same_address_sign_nobody_out) {
  while (second < 45) a_second(1);
  EXPECT_EQ(person_waited, 0);
  EXPECT_GT(stranger_waited, 150) << "the budget of strangers is used up";
  while (second < 300) a_second(1);
  EXPECT_EQ(person_waited, 0);
  EXPECT_LE(api.token_reviews, 300 * 5 + 20 + 10) << "5 a second and 20 at once, and the person's every 30 s";
}

TEST_F(strangers_ask, wrong_tokens_from_many_addresses_sign_nobody_out) {
  while (second < 65) a_second(12);
  EXPECT_EQ(person_waited, 0);
  EXPECT_LE(api.token_reviews, 65 * 50 + 100 + 65 * 5 + 20 + 3) << "the budget of all strangers, and of one address";
}

TEST_F(strangers_ask, a_token_that_was_accepted_an_hour_ago_is_a_strangers) {
  a_second(1);
  now += 3601s;
  for (int i = 0; i < 20; ++i) get("me", "used-up-" + std::to_string(i));
  EXPECT_EQ(get("me", "token-of-a").status, 429);
}

TEST_F(strangers_ask, a_revoked_token_is_refused_within_half_a_minute_and_loses_its_budget) {
  api.persons["revoked"] = "a";
  while (second < 40) a_second(1, "revoked");
  EXPECT_EQ(get("me", "revoked").status, 200);
  api.persons.erase("revoked");
  const auto revoked_at = now;
  while (get("me", "revoked").status == 200) now += 500ms;
  EXPECT_LE(now - revoked_at, 30s);
  const auto reviews = api.token_reviews;
  now += 6s;  // longer than the answer no is kept
  for (int i = 0; i < 25; ++i) get("me", "used-up-" + std::to_string(i));
  EXPECT_EQ(get("me", "revoked").status, 429) << "it counts as a stranger's";
  EXPECT_EQ(api.token_reviews, reviews + 20);
}

TEST_F(strangers_ask, accepted_tokens_have_a_bound_of_their_own) {
  a_second(1);
  api.is_down = true;  // so each request asks the API server again
  now += 31s;
  int waited = 0;
  for (int i = 0; i < 60; ++i) waited += get("me", "token-of-a").status == 429 ? 1 : 0;
  EXPECT_EQ(waited, 20) << "40 at once";
}

TEST_F(console_service, rights_are_asked_about_in_so_many_namespaces_and_it_is_said) {
  asking.most_namespaces = 20;
  for (int i = 0; i < 18; ++i) cluster.pods.put(console_test::pod_of("ns-" + std::to_string(i), "pod", 1, 1));
  api.rights["a"] = {{"pods", "ns-3"}, {"pods", "ns-7"}, {"acceleratorquotas", "ns-7"}, {"pods", "team-b"}};
  const auto all = ordered_json::parse(get("me", "token-of-a").body);
  EXPECT_EQ(all["namespaces"], ordered_json({"ns-3", "ns-7", "team-b"}));
  EXPECT_EQ(all["lacksNamespaces"], false);
  EXPECT_EQ(api.access_reviews, 5 + 20 + 3) << "of quotas only where pods may be listed";
  cluster.pods.put(console_test::pod_of("a-first-one", "pod", 1, 1));
  now += 31s;
  const auto some = ordered_json::parse(get("me", "token-of-a").body);
  EXPECT_EQ(some["namespaces"], ordered_json({"ns-3", "ns-7"}));
  EXPECT_EQ(some["lacksNamespaces"], true);
  EXPECT_EQ(ordered_json::parse(get("me", "token-of-admin").body)["lacksNamespaces"], false);
}

TEST_F(console_service, known_tokens_are_bounded) {
  asking.most_tokens = 8;
  asking.most_accepted = 8;
  asking.strangers = {1000, 1000, 16};
  asking.everyone = {1000, 1000, 1};
  for (int i = 0; i < 50; ++i) {
    api.persons["t-" + std::to_string(i)] = "a";
    EXPECT_EQ(get("me", "t-" + std::to_string(i)).status, i < 40 ? 200 : 429);
    get("me", "forged-" + std::to_string(i));
  }
  EXPECT_EQ(doorkeeper->known(), 24u) << "8 each of the two answers, and of those with a budget of their own";
}

TEST_F(console_service, a_token_is_in_no_log_and_no_answer) {
  get("me", "token-of-a");
  const auto refused = get("me", "forged-token-1");
  EXPECT_THAT(refused.body, Not(HasSubstr("forged-token-1")));
  api.is_down = true;
  EXPECT_THAT(get("me", "forged-token-2").body, Not(HasSubstr("forged-token-2")));
  EXPECT_FALSE(log.contains("token-of-a"));
  EXPECT_FALSE(log.contains("forged-token"));
}

TEST_F(console_service, an_api_server_that_does_not_answer_admits_no_one) {
  api.is_down = true;
  const auto answer = get("fleet", "token-of-admin");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(field_of(answer, "Retry-After"), "5");
}

TEST_F(console_service, nothing_is_said_before_the_cluster_is_read) {
  not_ready = {"console.not_read_yet"};
  EXPECT_EQ(get("fleet", "token-of-admin").status, 503);
  EXPECT_EQ(get("fleet").status, 401);
}

TEST_F(console_service, wrong_parameters_are_named) {
  const auto key = [](const char* name, const char* parameter = "", const char* value = "") {
    const auto code = std::string("console.") + name;
    return *parameter == 0 ? words::english(code) : words::english(code, {{parameter, value}});
  };
  for (const auto& [query, message] : std::vector<std::pair<std::string, std::string>>{
           {"fleet?limit=0", key("limit", "most", "5000")},
           {"fleet?limit=5001", key("limit", "most", "5000")},
           {"fleet?offset=-1", key("no_number", "name", "offset")},
           {"fleet?colour=red", key("only_parameters", "list", "offset, limit")},
           {"capacity?x=1", key("no_parameters")},
           {"waiting?limit=201", key("limit", "most", "200")},
           {"fleet?limit=1&limit=2", key("parameter_twice")},
           {"fleet?limit=%zz", key("not_encoded")},
           {"history?chart=pods", key("chart.charts")},
           {"history?chart=memory&range=3h", key("chart.ranges")},
           {"history?chart=memory&range=custom&from=5&to=4", key("chart.order")},
           {"history?chart=memory&node=a%22%7D", key("chart.no_name", "name", "node")}}) {
    const auto answer = get(query, "token-of-admin");
    EXPECT_EQ(answer.status, 400) << query;
    const auto error = ordered_json::parse(answer.body)["error"];
    EXPECT_EQ(error["message"], message) << query;
    EXPECT_EQ(error["messages"]["en"], message) << query;
    const auto chinese = error["messages"]["zh"].get<std::string>();
    EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
    now += 1s;
  }
}

TEST_F(console_service, without_prometheus_history_says_so) {
  const auto view = ordered_json::parse(get("history?chart=utilization&range=7d", "token-of-admin").body);
  EXPECT_EQ(view["available"], false);
  EXPECT_EQ(view["message"], words::english("console.no_prometheus"));
  EXPECT_EQ(view["to"].get<int>() - view["from"].get<int>(), 7 * 24 * 3600);
}

/// Says no to everything.
struct refusing_prometheus final : kube::transport {
  int status = 302;
  kube::task<kube::response> send(kube::request) override {
    kube::response out;
    out.status = status;
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override { co_return kube::response(); }
};

/// Says the same of every question.
struct measuring_prometheus final : kube::transport {
  std::string labels;
  std::size_t questions = 0;
  kube::task<kube::response> send(kube::request) override {
    ++questions;
    kube::response out;
    out.status = 200;
    out.body = R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{)" + labels +
               R"(},"value":[1795608000,"0.53"]}]}})";
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override { co_return kube::response(); }
};

TEST_F(console_service, measured_use_stands_at_its_card_and_is_asked_for_twice_a_minute) {
  measuring_prometheus source;
  prometheus = &source;
  read();
  const auto card = cluster.book->book().view("gpu-2")->inventory->cards.front().uuid;
  source.labels = R"("node":"gpu-2","uuid":")" + card + "\"";
  EXPECT_EQ(ordered_json::parse(get("measured", "token-of-admin").body)["nodes"],
            ordered_json({{"gpu-2", ordered_json::array({53})}}));
  EXPECT_EQ(source.questions, 2u) << "of cards, and of pods";
  now += 20s;
  get("measured", "token-of-admin");
  EXPECT_EQ(source.questions, 2u);
  now += 20s;
  get("measured", "token-of-admin");
  EXPECT_EQ(source.questions, 4u);
  EXPECT_EQ(get("measured", "token-of-a").status, 403);
}

TEST_F(console_service, measured_use_of_a_pod_is_for_who_may_see_the_pod) {
  measuring_prometheus source;
  source.labels = R"("namespace":"team-b","pod":"secret-1")";
  prometheus = &source;
  EXPECT_THAT(get("pods", "token-of-admin").body, HasSubstr("\"use\":53"));
  EXPECT_THAT(get("pods", "token-of-a").body, Not(HasSubstr("\"use\":53")));
}

TEST_F(console_service, why_prometheus_does_not_answer_is_in_the_log_once) {
  refusing_prometheus source;
  prometheus = &source;
  const auto count = [&](std::string_view text) {
    return std::ranges::count_if(log.lines(), [&](const std::string& line) { return line.contains(text); });
  };
  for (const auto* chart : {"utilization", "memory", "cards"}) {
    const auto answer = get("history?chart=" + std::string(chart), "token-of-admin");
    EXPECT_THAT(answer.body, HasSubstr(words::english("console.prometheus_silent")));
    EXPECT_THAT(answer.body, Not(HasSubstr("302")));
  }
  get("capacity", "token-of-admin");
  EXPECT_EQ(count("status 302"), 1);
  source.status = 401;
  get("history?chart=memory&range=7d", "token-of-admin");
  EXPECT_EQ(count("status 401"), 1);
}

TEST_F(console_service, a_stream_says_that_something_changed) {
  auto answer = get("stream", "token-of-admin");
  EXPECT_EQ(answer.content_type, "text/event-stream");
  ASSERT_TRUE(answer.pieces);
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), HasSubstr("event: changed\ndata: {\"views\":[\"overview\",\"fleet\""));
  EXPECT_EQ(next(), "") << "nothing has changed";
  cluster.pods.put(console_test::pod_of("team-a", "new", 10, 4, "gpu-1"));
  EXPECT_EQ(next(), "") << "one a second";
  now += 1s;
  EXPECT_THAT(next(), HasSubstr("changed"));
  now += 15s;
  EXPECT_EQ(next(), ": still here\n\n");
  now += 600s;
  EXPECT_EQ(next(), "the end");
}

TEST_F(console_service, a_stream_says_since_when_the_api_server_does_not_answer) {
  auto answer = get("stream", "token-of-admin");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), HasSubstr("changed"));
  silence = 12'900ms;
  EXPECT_EQ(next(), "event: silent\ndata: {\"seconds\":12}\n\n");
  now += 5s;
  silence = 17'900ms;
  EXPECT_EQ(next(), "") << "it has been said";
  silence.reset();
  EXPECT_EQ(next(), "event: heard\ndata: {}\n\n");
  EXPECT_EQ(next(), "");
}

TEST_F(console_service, a_stream_says_since_when_no_operator_leads) {
  auto answer = get("stream", "token-of-a");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), Not(HasSubstr("leaderless"))) << "one leads, or no one knows";
  leaderless = 20'500ms;
  EXPECT_EQ(next(), "event: leaderless\ndata: {\"seconds\":20}\n\n");
  leaderless = 21'500ms;
  EXPECT_EQ(next(), "") << "it has been said";
  leaderless.reset();
  EXPECT_EQ(next(), "event: led\ndata: {}\n\n");
  EXPECT_EQ(next(), "");
}

TEST_F(console_service, a_stream_that_opens_while_no_operator_leads_begins_with_it) {
  leaderless = 3'600'000ms;
  auto answer = get("stream", "token-of-admin");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), testing::EndsWith("}\n\nevent: leaderless\ndata: {\"seconds\":3600}\n\n"));
  EXPECT_EQ(next(), "");
}

TEST_F(console_service, a_stream_of_one_namespace_keeps_its_own_pace) {
  auto answer = get("stream", "token-of-a");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), Not(HasSubstr("fleet")));
  cluster.pods.put(console_test::pod_of("team-b", "secret-new", 10, 4, "gpu-1"));
  now += 2s;
  EXPECT_EQ(next(), "") << "what others do is not to be seen";
  now += 8s;
  EXPECT_THAT(next(), HasSubstr("changed"));
}

TEST_F(console_service, a_stream_ends_with_its_token) {
  auto answer = get("stream", "token-of-a");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  next();
  api.persons.erase("token-of-a");
  now += 31s;
  EXPECT_EQ(next(), "the end");
}

TEST_F(console_service, a_stream_follows_the_rights_that_are_left) {
  auto answer = get("stream", "token-of-admin");
  const auto next = [&] { return kube_test::run(loop, answer.pieces()).value_or("the end"); };
  EXPECT_THAT(next(), HasSubstr("fleet"));
  api.rights["admin"] = {{"pods", "team-a"}};
  now += 31s;
  EXPECT_THAT(next(), Not(HasSubstr("fleet")));
  cluster.pods.put(console_test::pod_of("team-b", "secret-new", 10, 4, "gpu-1"));
  now += 2s;
  EXPECT_EQ(next(), "") << "what others do is not to be seen any more";
}

TEST_F(console_service, streams_are_bounded) {
  std::vector<http_response> open;
  for (int i = 0; i < 4; ++i) open.push_back(get("stream", "token-of-a"));
  EXPECT_EQ(get("stream", "token-of-a").status, 429);
  EXPECT_EQ(get("stream", "token-of-b").status, 200);
  EXPECT_EQ(console->streams(), 4u) << "the one of b has been let go";
  open.clear();
  EXPECT_EQ(console->streams(), 0u);
  EXPECT_EQ(get("stream", "token-of-a").status, 200);
}

/// What comes of answers that are worked out at the same time, in the order in which they come.
struct side_by_side {
  boost::asio::io_context& loop;
  service& console;
  std::vector<std::pair<std::string, http_response>> done = {};

  void ask(std::string name, http_request request) {
    boost::asio::co_spawn(loop, console.answer(std::move(request)),
                          [this, name](const std::exception_ptr& failed, http_response answer) {
                            if (failed) std::rethrow_exception(failed);
                            done.emplace_back(name, std::move(answer));
                          });
  }
  bool await(std::size_t count) {
    return kube_test::turn(loop, [this, count] { return done.size() >= count; });
  }
};

TEST_F(console_service, what_a_pod_says_of_nodes_is_looked_at_again_when_it_changes) {
  cluster.nodes.put(extender_test::vgpu_node("gpu-4", 1));
  const auto pod = console_test::pod_of("team-a", "0-choosy", 20, 8);
  cluster.pods.put(pod);
  const auto kind = [&] {
    return ordered_json::parse(get("waiting?namespace=team-a&limit=1", "token-of-a").body)["pods"][0]["kind"];
  };
  EXPECT_EQ(kind(), "other") << "it is not read whole";
  kube::described_pod whole{pod};
  const auto change = [&](std::uint64_t version) {
    whole.resource_version = version;
    unbound.put(whole);
    now += 10s;
  };
  whole.rules.terms.emplace().push_back({{"zone", "In", {"b"}, false}});
  change(1000);
  EXPECT_EQ(kind(), "closed");
  const auto revision = console->revision();
  whole.scheduled = kube::statement{"False", "Unschedulable", "0/4 nodes are available"};
  change(1001);
  EXPECT_EQ(console->revision(), revision) << "no answer has what its scheduler says";
  whole.gates = {"example.com/wait"};
  change(1002);
  EXPECT_EQ(kind(), "held_back");
}

struct many_waiting : console_service {
  many_waiting() {
    for (int i = 0; i < 100; ++i)
      for (const auto* team : {"team-a", "team-b"})
        cluster.pods.put(console_test::pod_of(team, "waits-" + std::to_string(i), 90, 100 + i));
    start();
  }
  static http_request waiting(const std::string& token, int offset = 0) {
    return request_of("/console/api/v1/waiting?limit=100&offset=" + std::to_string(offset), token);
  }
};

TEST_F(many_waiting, others_are_answered_while_reasons_are_worked_out) {
  get("me", "token-of-admin");
  get("me", "token-of-b");  // they are known
  side_by_side answers{loop, *console};
  answers.ask("waiting", waiting("token-of-admin"));
  loop.restart();
  for (int i = 0; i < 20; ++i) loop.run_one();
  for (int i = 0; i < 5; ++i) answers.ask("me", request_of("/console/api/v1/me", "token-of-b"));
  ASSERT_TRUE(answers.await(6));
  EXPECT_EQ(answers.done.back().first, "waiting");
  for (const auto& [name, answer] : answers.done) EXPECT_EQ(answer.status, 200) << name;
  EXPECT_EQ(ordered_json::parse(answers.done.back().second.body)["pods"].size(), 100u);
}

TEST_F(many_waiting, two_people_take_turns) {
  get("me", "token-of-a");
  get("me", "token-of-b");
  side_by_side answers{loop, *console};
  answers.ask("a", waiting("token-of-a"));
  answers.ask("b", request_of("/console/api/v1/waiting?limit=5", "token-of-b"));
  ASSERT_TRUE(answers.await(2));
  EXPECT_EQ(answers.done.front().first, "b") << "it asks for less";
}

TEST_F(many_waiting, one_person_has_some_answers_worked_out_at_a_time) {
  get("me", "token-of-a");
  get("me", "token-of-b");
  side_by_side answers{loop, *console};
  for (int i = 0; i < 5; ++i) answers.ask("a", waiting("token-of-a", i));
  answers.ask("b", waiting("token-of-b"));
  ASSERT_TRUE(answers.await(6));
  EXPECT_EQ(answers.done.front().second.status, 429);
  EXPECT_EQ(field_of(answers.done.front().second, "Retry-After"), "2");
  for (std::size_t i = 1; i < answers.done.size(); ++i) EXPECT_EQ(answers.done[i].second.status, 200);
  now += 11s;
  EXPECT_EQ(get(waiting("token-of-a", 9)).status, 200);
}

TEST_F(many_waiting, who_is_placed_meanwhile_is_not_shown_as_waiting) {
  get("me", "token-of-a");
  side_by_side answers{loop, *console};
  answers.ask("waiting", waiting("token-of-a"));
  loop.restart();
  for (int i = 0; i < 20; ++i) loop.run_one();
  cluster.pods.put(console_test::pod_of("team-a", "waits-98", 90, 4, "gpu-2"));
  cluster.pods.erase(kube::object_key{"team-a", "waits-99"});
  ASSERT_TRUE(answers.await(1));
  const auto& body = answers.done.front().second.body;
  EXPECT_THAT(body, HasSubstr("waits-97"));
  EXPECT_THAT(body, Not(HasSubstr("waits-98")));
  EXPECT_THAT(body, Not(HasSubstr("waits-99")));
  now += 1s;
  EXPECT_EQ(ordered_json::parse(get(waiting("token-of-a")).body)["total"], 99)
      << "and the answer is not kept as of now";
}

TEST_F(console_service, reasons_hold_for_some_seconds_and_no_longer) {
  const auto fitting = [&] {
    return ordered_json::parse(get("waiting?namespace=team-a", "token-of-admin").body)["pods"][0]["fitting"].get<int>();
  };
  EXPECT_EQ(fitting(), 0);
  cluster.pods.erase(kube::object_key{"team-b", "secret-2"});
  now += 2s;
  EXPECT_EQ(fitting(), 0);
  now += 4s;
  EXPECT_EQ(fitting(), 1);
}

TEST(console_reasons, are_bounded) {
  waiting_reasons reasons(3);
  for (int i = 0; i < 10; ++i) reasons.keep(std::to_string(i), {i, 1, controller::milliseconds(i)});
  EXPECT_EQ(reasons.size(), 3u);
  EXPECT_EQ(reasons.find("6", 0ms), nullptr) << "the oldest has gone";
  ASSERT_NE(reasons.find("7", 0ms), nullptr);
  EXPECT_EQ(reasons.find("7", 8ms), nullptr) << "too old";
}

TEST_F(console_service, the_link_of_a_laptop_signs_in) {
  asking.link_token = "random";
  EXPECT_EQ(ordered_json::parse(get("me", "random").body)["signedInBy"], "link");
  EXPECT_EQ(get("fleet", "random").status, 200);
  EXPECT_EQ(get("me", "token-of-admin").status, 401);
  EXPECT_EQ(get("me").status, 401);
  EXPECT_EQ(api.token_reviews, 0);
}

/// Signs in and out, as the page does.
struct sessions : console_service {
  static http_request session_request(const std::string& method, const std::string& token = "") {
    auto out = request_of("/console/api/v1/session", token);
    out.method = method;
    out.fields.origin = "http://localhost:8888";
    out.fields.fetch_site = "same-origin";
    return out;
  }
  static http_request with_cookie(const std::string& path, const std::string& cookie) {
    auto out = request_of("/console/api/v1/" + path);
    out.fields.cookie = cookie;
    out.fields.fetch_site = "same-origin";
    return out;
  }
  /// "name=value", as a browser sends it back.
  std::string sign_in(const std::string& token) {
    const auto set = field_of(get(session_request("POST", token)), "Set-Cookie");
    return set.substr(0, set.find(';'));
  }
  bool is_signed_in(const std::string& cookie) {
    return ordered_json::parse(get(with_cookie("session", cookie)).body)["signedIn"].get<bool>();
  }
};

TEST_F(sessions, a_token_becomes_a_cookie_that_no_script_reads_and_no_other_site_sends) {
  const auto answer = get(session_request("POST", "token-of-a"));
  EXPECT_EQ(answer.status, 200);
  const auto set = field_of(answer, "Set-Cookie");
  EXPECT_THAT(set, HasSubstr("; HttpOnly"));
  EXPECT_THAT(set, HasSubstr("; SameSite=Strict"));
  EXPECT_THAT(set, HasSubstr("; Path=/console/"));
  EXPECT_THAT(set, Not(HasSubstr("Max-Age"))) << "it ends with the browser";
  EXPECT_THAT(set, Not(HasSubstr("Secure"))) << "a browser would drop it by plain HTTP";
  EXPECT_THAT(set, Not(HasSubstr("token-of-a")));
  const auto cookie = set.substr(0, set.find(';'));
  EXPECT_EQ(ordered_json::parse(get(with_cookie("me", cookie)).body)["user"], "a");
  EXPECT_TRUE(is_signed_in(cookie));
  EXPECT_FALSE(is_signed_in(""));
}

TEST_F(sessions, behind_tls_the_cookie_goes_by_tls_alone) {
  auto request = session_request("POST", "token-of-a");
  request.fields.origin = "https://localhost:8888";
  EXPECT_THAT(field_of(get(request), "Set-Cookie"), HasSubstr("; Secure"));
  serving.tls = true;
  console = nullptr;
  EXPECT_THAT(field_of(get(session_request("POST", "token-of-a")), "Set-Cookie"), HasSubstr("; Secure"));
}

TEST_F(sessions, a_proxy_that_signs_people_in_needs_no_form) {
  const auto answer = get(session_request("GET", "token-of-a"));
  EXPECT_EQ(ordered_json::parse(answer.body), (ordered_json{{"signedIn", true}, {"by", "proxy"}}));
  EXPECT_EQ(ordered_json::parse(get(session_request("GET", "forged")).body),
            (ordered_json{{"signedIn", false}, {"by", "proxy"}}));
  EXPECT_EQ(ordered_json::parse(get(session_request("GET")).body)["by"], "token");
  const auto cookie = sign_in("token-of-b");
  auto request = session_request("GET", "token-of-a");
  request.fields.cookie = cookie;
  EXPECT_EQ(ordered_json::parse(get(request).body)["by"], "proxy");
  request = with_cookie("me", cookie);
  request.fields.authorization = "Bearer token-of-a";
  EXPECT_EQ(ordered_json::parse(get(request).body)["user"], "a") << "the cookie says who was here before";
}

TEST_F(sessions, a_wrong_token_makes_no_cookie) {
  const auto answer = get(session_request("POST", "forged"));
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(field_of(answer, "Set-Cookie"), "");
}

TEST_F(sessions, a_cookie_ends_with_its_token) {
  const auto cookie = sign_in("token-of-a");
  ASSERT_EQ(get(with_cookie("waiting", cookie)).status, 200);
  api.persons.erase("token-of-a");
  now += 31s;
  EXPECT_EQ(get(with_cookie("waiting", cookie)).status, 401);
  EXPECT_FALSE(is_signed_in(cookie));
}

TEST_F(sessions, a_right_that_is_taken_away_is_gone_for_the_cookie_too) {
  const auto cookie = sign_in("token-of-b");
  EXPECT_THAT(get(with_cookie("waiting", cookie)).body, HasSubstr("secret-waits"));
  api.rights["b"].clear();
  now += 31s;
  EXPECT_EQ(get(with_cookie("waiting", cookie)).status, 403);
}

TEST_F(sessions, signing_out_deletes_the_cookie) {
  const auto set = field_of(get(session_request("DELETE")), "Set-Cookie");
  EXPECT_THAT(set, HasSubstr("quartermaster-console=;"));
  EXPECT_THAT(set, HasSubstr("Max-Age=0"));
}

TEST_F(sessions, another_console_and_whoever_changes_a_letter_cannot_use_it) {
  const auto cookie = sign_in("token-of-a");
  for (std::size_t i = cookie.find('=') + 1; i + 4 < cookie.size(); i += 7) {
    auto changed = cookie;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    if (changed != cookie) EXPECT_FALSE(is_signed_in(changed)) << i;
  }
  for (const auto* text :
       {"quartermaster-console=token-of-a", "quartermaster-console=", "quartermaster-console", ";;="})
    EXPECT_FALSE(is_signed_in(text)) << text;
  EXPECT_TRUE(is_signed_in("other=1; " + cookie + "; more=2"));
  console = nullptr;  // a new one has a new key
  EXPECT_FALSE(is_signed_in(cookie));
}

// A page of another origin can have a browser send requests. None of them reads or changes anything: the cookie is not
// sent (SameSite), and where it is, because another port of a host is the same site, the request is not taken for one
// of the person.
TEST_F(sessions, a_page_of_another_origin_does_nothing_with_the_cookie) {
  const auto cookie = sign_in("token-of-admin");
  for (const auto* site : {"cross-site", "same-site"}) {
    auto request = with_cookie("fleet", cookie);
    request.fields.fetch_site = site;
    EXPECT_EQ(get(request).status, 401) << site;
    for (const auto* method : {"POST", "DELETE", "GET"}) {
      auto session = session_request(method);
      session.fields.fetch_site = site;
      session.fields.cookie = cookie;
      const auto answer = get(session);
      EXPECT_EQ(answer.status, 421) << site << " " << method;
      EXPECT_EQ(field_of(answer, "Set-Cookie"), "");
    }
  }
  auto foreign = session_request("DELETE");
  foreign.fields.origin = "http://localhost:9999";
  EXPECT_EQ(get(foreign).status, 421);
  // No method but these two changes anything, with or without a cookie, and they change the cookie alone.
  for (const auto* method : {"PUT", "PATCH", "OPTIONS"}) {
    auto request = session_request(method);
    request.fields.cookie = cookie;
    EXPECT_EQ(get(request).status, 405) << method;
  }
  auto post = with_cookie("fleet", cookie);
  post.method = "POST";
  EXPECT_EQ(get(post).status, 405);
}

TEST_F(sessions, a_cookie_alone_makes_no_other) {
  const auto cookie = sign_in("token-of-a");
  auto request = session_request("POST");
  request.fields.cookie = cookie;
  EXPECT_EQ(get(request).status, 401);
}

TEST_F(console_service, the_overview_is_worked_out_again_after_some_seconds) {
  const auto waiting = [&] {
    return ordered_json::parse(get("overview", "token-of-admin").body)["waiting"]["pods"].get<int>();
  };
  EXPECT_EQ(waiting(), 2);
  cluster.pods.erase(kube::object_key{"team-b", "secret-waits"});
  now += 2s;
  EXPECT_EQ(waiting(), 2);
  now += 5s;
  EXPECT_EQ(waiting(), 1);
}

TEST_F(many_waiting, as_many_reasons_as_are_worked_out_for_one_answer_and_the_rest_is_counted) {
  const auto view = ordered_json::parse(get("waiting/reasons", "token-of-admin").body);
  EXPECT_EQ(view["total"], 202);
  EXPECT_EQ(view["lookedAt"], 40);
  std::size_t pods = 0;
  for (const auto& group : view["groups"]) pods += group["pods"].get<std::size_t>();
  EXPECT_EQ(pods, 40u);
}

TEST_F(console_service, the_page_needs_no_token_and_has_its_own_paths) {
  EXPECT_EQ(get(page()).status, 200);
  EXPECT_EQ(get(request_of("/console/")).status, 406) << "the page is there compressed only";
  EXPECT_EQ(get(request_of("/console/assets/../../etc/passwd")).status, 404);
  for (const auto* short_path : {"/console", "/"}) {
    const auto answer = get(request_of(short_path));
    EXPECT_EQ(answer.status, 302) << short_path;
    EXPECT_EQ(field_of(answer, "Location"), "/console/") << short_path;
  }
}

}  // namespace
}  // namespace cli::console
