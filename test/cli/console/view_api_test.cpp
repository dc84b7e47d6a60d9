#include "cli/console/view_api.hpp"

#include "cli/cluster/declared_document.hpp"
#include "cli/cluster/fleet.hpp"
#include "kube/config.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/cli/wire_objects.hpp"
#include "test/controller/reviewing_server.hpp"
#include "test/kube/loop.hpp"

namespace cli::console {
namespace {

using console_test::two_teams;
using testing::HasSubstr;
using testing::Not;

struct views_of_teams : two_teams {
  boost::asio::io_context loop;
  controller_test::reviewing_server api;
  kube::client client{api};
  std::string not_ready;
  controller::milliseconds now{1'000'000};
  int looks = 0;  ///< at the cluster
  view_api views{view_api::dependencies{.look = [this]() -> picture& {
                                          ++looks;
                                          return cluster;
                                        },
                                        .api = client,
                                        .not_ready = [this] { return text::phrase{not_ready}; },
                                        .now = [this] { return now; },
                                        .wall = [] { return 1'800'000'000; },
                                        .people = {1000, 1000, 16}}};

  views_of_teams() {
    for (const auto* plural : {"nodeviews", "podviews", "holdings", "bills", "simulations", "declarations"})
      api.rights["a"].insert({plural, "team-a"});
    views.trust({.authorities = "x",
                 .names = {"front-proxy"},
                 .user_fields = {"x-remote-user"},
                 .uid_fields = {},
                 .group_fields = {"x-remote-group"},
                 .extra_prefixes = {}});
  }
  controller::http_response get(const std::string& target, std::string method = "GET") {
    read();
    controller::http_request request;
    request.method = std::move(method);
    const auto mark = std::min(target.find('?'), target.size());
    request.path = "/apis/view.quartermaster.io/v1alpha1" + target.substr(0, mark);
    if (mark < target.size()) request.query = target.substr(mark + 1);
    request.fields.remote = {{"x-remote-user", "a"}, {"x-remote-group", "everyone"}};
    request.caller_name = "front-proxy";
    return kube_test::run(loop, views.answer(std::move(request)));
  }
  /// The text without this name: refusals about two objects are to differ by nothing else.
  static std::string without(std::string text, const std::string& name) {
    for (auto place = text.find(name); place != text.npos; place = text.find(name, place + 1))
      text.replace(place, name.size(), "NAME");
    return text;
  }
  static std::string simulating(const json& pods) {
    auto text = kube::base64_encode(pods.dump());
    std::string out;
    for (const char c : text) out += c == '+' ? "%2B" : std::string(1, c);
    return "/namespaces/team-a/simulations?form=table&pods=" + out;
  }
  static json pod_of_share(const std::string& name, const std::string& ns, const char* cores) {
    json resources;
    resources["limits"] = {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", "8"}};
    json container{{"name", "main"}};
    container["resources"] = std::move(resources);
    json spec;
    spec["containers"] = json::array({std::move(container)});
    return {
        {"name", name}, {"namespace", ns}, {"new", true}, {"pod", {{"metadata", {{"name", name}}}, {"spec", spec}}}};
  }
};

TEST_F(views_of_teams, no_answer_names_the_other_team) {
  for (const auto* path : {"nodeviews", "podviews", "holdings", "nodeviews?form=wide", "nodeviews?form=json",
                           "podviews?form=wide", "holdings?form=yaml", "podviews?names=secret-1"}) {
    const auto answer = get(std::string("/namespaces/team-a/") + path);
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    EXPECT_THAT(answer.body, Not(HasSubstr("secret"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("team-b"))) << path;
  }
  EXPECT_THAT(get("/namespaces/team-a/nodeviews").body, HasSubstr("gpu-3"));
  EXPECT_THAT(get("/namespaces/team-a/podviews").body, HasSubstr("mine-1"));
}

TEST_F(views_of_teams, without_the_right_nothing_is_looked_at) {
  not_ready = "console.not_read_yet";  // so an answer of 403 was given before that was asked
  for (const auto* path : {"nodeviews", "podviews", "holdings", "bills", "simulations"})
    EXPECT_EQ(get(std::string("/namespaces/team-b/") + path).status, 403) << path;
  EXPECT_EQ(get("/namespaces/team-a/nodeviews").status, 503);
  EXPECT_EQ(api.access_reviews, 6);
  api.is_down = true;
  EXPECT_EQ(get("/namespaces/team-a/nodeviews").status, 503);
}

/// Time tells nothing of what was not looked at. `team-b` and its pods are there, `team-c` and `none` are not.
TEST_F(views_of_teams, a_refusal_has_looked_at_nothing_and_says_the_same_of_what_is_not_there) {
  read();
  const auto refused = [&](const std::string& path, int status) {
    looks = 0, api.access_reviews = 0;
    api.targets.clear();
    const auto answer = get(path);
    EXPECT_EQ(answer.status, status) << path << answer.body;
    EXPECT_EQ(looks, 0) << path;
    EXPECT_EQ(api.access_reviews, status == 403 ? 1 : 0) << path;
    EXPECT_TRUE(api.targets.empty()) << path << " read " << api.targets.begin()->first;
    return answer.body;
  };
  for (const std::string plural : {"nodeviews", "podviews", "holdings", "bills", "simulations", "declarations"}) {
    const auto present = refused("/namespaces/team-b/" + plural, 403);
    EXPECT_EQ(without(present, "team-b"), without(refused("/namespaces/team-c/" + plural, 403), "team-c"));
    for (const auto& [name, other] : {std::pair("secret-1", "none"), std::pair("gpu-1", "gpu-9")}) {
      const auto existing = refused("/namespaces/team-b/" + plural + "/" + name, 403);
      EXPECT_EQ(without(existing, name), without(refused("/namespaces/team-b/" + plural + "/" + other, 403), other));
      EXPECT_EQ(without(existing, "team-b"),
                without(refused("/namespaces/team-c/" + plural + "/" + name, 403), "team-c"));
    }
    refused("/namespaces/team-b/" + plural + "?watch=true&resourceVersion=1", 403);
    refused("/namespaces/team-b/" + plural + "?names=secret-1&form=yaml", 403);
    refused("/namespaces/team-b/" + plural + "?fieldSelector=metadata.name%3Dsecret-1", 403);
  }
  refused("/namespaces/team-b/secrets/secret-1", 404);
  views.trust({});
  refused("/namespaces/team-a/podviews", 401);
}

TEST_F(views_of_teams, a_pod_of_the_other_team_is_as_unknown_in_ones_own_namespace_as_one_that_no_one_has_made) {
  for (const std::string plural : {"podviews", "holdings"}) {
    std::vector<std::string> texts;
    for (const std::string name : {"secret-1", "none"}) {
      looks = 0;
      api.targets.clear();
      const auto answer = get("/namespaces/team-a/" + plural + "/" + name + "?form=text");
      texts.push_back(std::to_string(answer.status) + without(answer.body, name));
      EXPECT_EQ(looks, 1);
      EXPECT_TRUE(api.targets.empty()) << "nothing is read of it";
    }
    EXPECT_EQ(texts.front(), texts.back());
  }
  read();
  EXPECT_EQ(fleet(cluster, {}, "team-a").pods.size(), 3u) << "a list is made of the pods of its namespace alone";
}

TEST_F(views_of_teams, what_is_declared_is_the_same_for_all_who_may_ask) {
  const cli_test::texts labels{{"features.cpaas.io/type", "CustomResourceLimitation"},
                               {"features.cpaas.io/group", "lab"},
                               {"features.cpaas.io/enabled", "true"}};
  const cli_test::texts data{{"key", "example.com/fpga"}, {"dataType", "integer"},  {"group", "lab"},
                             {"limits", "optional"},      {"requests", "disabled"}, {"note", "secret"}};
  api.bodies["/api/v1/namespaces/kube-public/configmaps"] =
      cli_test::list_body({cli_test::config_map("cf-crl-lab-fpga", labels, data)});
  api.rights["a"].insert({"declarations", ""});  // as the role of all signed-in people grants it
  const auto table = get("/namespaces/team-a/declarations?form=table");
  EXPECT_EQ(table.status, 200) << table.body;
  EXPECT_THAT(table.body, HasSubstr("example.com/fpga"));
  EXPECT_EQ(get("/namespaces/no-such-team/declarations?form=table").body, table.body);
  const auto list = json::parse(get("/namespaces/team-a/declarations").body);
  EXPECT_EQ(list["kind"], "DeclarationList");
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "cf-crl-lab-fpga");
  EXPECT_EQ(list["items"][0]["view"]["key"], "example.com/fpga");
  EXPECT_EQ(get("/namespaces/team-a/declarations/cf-crl-lab-fpga").status, 200);
  EXPECT_EQ(get("/namespaces/team-a/declarations/cf-crl-lab-none").status, 404);
  const auto source = json::parse(get("/namespaces/team-a/declarations?form=source&declared=kube-public").body);
  const auto declared = declared_in(source["text"].get<std::string>());
  ASSERT_TRUE(declared);
  ASSERT_EQ(declared->config_maps.size(), 1u);
  EXPECT_EQ(declared->config_maps.front().data.value_or("key", ""), "example.com/fpga");
  for (const auto* form : {"", "?form=table", "?form=wide", "?form=json", "?form=yaml", "?form=name", "?form=source"})
    EXPECT_THAT(get(std::string("/namespaces/team-a/declarations") + form).body, Not(HasSubstr("secret"))) << form;
  EXPECT_EQ(get("/namespaces/team-a/nodeviews?form=source").status, 400);
}

TEST_F(views_of_teams, no_other_namespace_is_looked_at_for_what_is_declared) {
  api.targets.clear();
  EXPECT_EQ(get("/namespaces/team-a/declarations?declared=secret").status, 400);
  EXPECT_EQ(get("/namespaces/team-a/declarations?declared=none").status, 400);
  EXPECT_TRUE(api.targets.empty());
  EXPECT_EQ(get("/namespaces/team-a/declarations").status, 503) << "the server may not read them";
}

TEST_F(views_of_teams, pods_that_are_nested_without_end_are_refused) {
  constexpr std::size_t levels = 24'000;  // as many as a head has room for
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    std::string pods = R"([{"name": "a", "namespace": "team-a", "pod": {"spec": )";
    for (std::size_t i = 0; i < levels; ++i) pods += open;
    pods += "1";
    for (std::size_t i = 0; i < levels; ++i) pods += close;
    const auto text = kube::base64_encode(pods + "}}]");
    std::string query;
    for (const char c : text) query += c == '+' ? "%2B" : std::string(1, c);
    EXPECT_EQ(get("/namespaces/team-a/simulations?pods=" + query).status, 400);
  }
}

TEST_F(views_of_teams, other_paths_methods_and_watches_are_refused) {
  for (const auto* path : {"/nodeviews", "/namespaces/team-a/secrets", "/namespaces/team-a", "/namespaces/../nodeviews",
                           "/namespaces/team-a/podviews/a/log", "/namespaces/team-a%2Fx/podviews"})
    EXPECT_EQ(get(path).status, 404) << path;
  EXPECT_EQ(get("/namespaces/team-a/podviews?watch=true").status, 405);
  for (const auto* method : {"POST", "PUT", "PATCH", "DELETE"})
    EXPECT_EQ(get("/namespaces/team-a/podviews", method).status, 405) << method;
  EXPECT_EQ(get("/namespaces/team-a/podviews?form=xml").status, 400);
  EXPECT_EQ(get("/namespaces/team-a/podviews?labelSelector=a").status, 400);
}

TEST_F(views_of_teams, trying_pods_books_nothing_and_takes_none_of_another_namespace) {
  const auto before = get("/namespaces/team-a/nodeviews").body;
  const auto pods = json::array({pod_of_share("new", "team-a", "20"), pod_of_share("large", "team-a", "100")});
  const auto first = get(simulating(pods));
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_THAT(first.body, HasSubstr("team-a/new"));
  EXPECT_EQ(get(simulating(pods)).body, first.body);
  EXPECT_EQ(get("/namespaces/team-a/nodeviews").body, before);
  EXPECT_TRUE(cluster.book->open().empty());
  EXPECT_EQ(get(simulating(json::array({pod_of_share("secret-1", "team-b", "20")}))).status, 400);
  EXPECT_EQ(get("/namespaces/team-a/simulations").status, 400);
}

TEST_F(views_of_teams, discovery_says_what_there_is_to_read) {
  const auto found = json::parse(get("").body);
  EXPECT_EQ(found["groupVersion"], "view.quartermaster.io/v1alpha1");
  for (const auto& resource : found["resources"])
    for (const auto& verb : resource["verbs"]) EXPECT_TRUE(verb == "get" || verb == "list") << resource;
}

}  // namespace
}  // namespace cli::console
