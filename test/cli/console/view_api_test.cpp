#include "cli/console/view_api.hpp"

#include "kube/config.hpp"
#include "test/cli/console/two_teams.hpp"
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
  view_api views{view_api::dependencies{.known = cluster,
                                        .api = client,
                                        .not_ready = [this] { return text::phrase{not_ready}; },
                                        .now = [this] { return now; },
                                        .wall = [] { return 1'800'000'000; },
                                        .people = {1000, 1000, 16}}};

  views_of_teams() {
    for (const auto* plural : {"nodeviews", "podviews", "holdings", "bills", "simulations"})
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
