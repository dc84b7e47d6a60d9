// A person who may see one namespace alone: what commands ask of the console's server, and what they say.

#include "cli/views/view_reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/program.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_server.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view views = "/apis/view.quartermaster.io";

/// The API server of alice, who has `view` in namespace red. Her context names that. The server has a thread of its
/// own, because a command blocks.
class alice : public testing::Test {
 protected:
  alice() : server_(loop_, ca_.issue(), [this](const kube_test::seen_request& seen) { return answer(seen); }) {
    folder_.write("ca.crt", ca_.pem());
    folder_.write("kubeconfig",
                  "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, "
                  "user: u, namespace: red}}], users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: "
                  "{server: '" +
                      server_.url() + "', certificate-authority: '" + folder_.path("ca.crt") + "'}}]}");
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~alice() override { loop_.stop(); }

  int run(std::vector<std::string> words) {
    words.insert(words.end(), {"--kubeconfig", folder_.path("kubeconfig")});
    {
      const std::scoped_lock lock(mutex_);
      paths_.clear();
    }
    testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
    const int rc = run_program("quartermaster", std::move(words));
    out = testing::internal::GetCapturedStdout(), err = testing::internal::GetCapturedStderr();
    return rc;
  }
  /// Paths of the aggregated API, without what they are asked with.
  std::vector<std::string> view_paths() {
    const std::scoped_lock lock(mutex_);
    return paths_;
  }

  std::string file(const std::string& name, const std::string& text) {
    folder_.write(name, text);
    return folder_.path(name);
  }

  bool has_views = true;
  std::string declarations = R"({"configMaps": []})";  ///< as the console's server has them
  std::string out, err;

 private:
  kube_test::reply answer(const kube_test::seen_request& seen) {
    const auto path = seen.target.substr(0, seen.target.find('?'));
    const bool is_view = path.starts_with(views);
    if (is_view) {
      const std::scoped_lock lock(mutex_);
      paths_.push_back(path);
    }
    if (is_view && has_views && path == views) return json_reply(200, {{"kind", "APIGroup"}});
    if (is_view && has_views && seen.target.contains("form=source"))
      return json_reply(200, {{"kind", "Answer"}, {"text", declarations}, {"note", ""}, {"exitCode", 0}});
    if (is_view && has_views && path.contains("/namespaces/red/"))
      return json_reply(200, {{"kind", "Answer"}, {"text", "ROWS\n"}, {"note", ""}, {"exitCode", 0}});
    if (path == "/apis/quartermaster.io/v1alpha1")
      return json_reply(
          200, {{"kind", "APIResourceList"},
                {"resources",
                 {{{"name", "acceleratorpolicies"}}, {{"name", "acceleratornodes"}}, {{"name", "resourcerules"}}}}});
    return json_reply(403, {{"kind", "Status"},
                            {"code", 403},
                            {"reason", "Forbidden"},
                            {"message",
                             "x is forbidden: User \"alice\" cannot list resource \"nodes\" in API group \"\" at "
                             "the cluster scope"}});
  }
  static kube_test::reply json_reply(int status, const nlohmann::json& body) {
    auto out = kube_test::reply::of(status, body.dump());
    out.headers = {"Content-Type: application/json"};
    return out;
  }

  std::mutex mutex_;
  std::vector<std::string> paths_;
  kube_test::scratch_folder folder_;
  boost::asio::io_context loop_{1};
  kube_test::test_ca ca_;
  kube_test::test_server server_;
  std::jthread thread_;
};

const std::vector<std::pair<std::vector<std::string>, std::string>>& listings() {
  static const std::vector<std::pair<std::vector<std::string>, std::string>> all{
      {{"inspect", "pods"}, "podviews"},
      {{"top", "pods"}, "holdings"},
      {{"report", "chargeback", "--month", "2026-11"}, "bills/2026-11"}};
  return all;
}

TEST_F(alice, gets_the_namespace_of_her_context_where_she_names_none_and_a_line_says_so) {
  for (const auto& [words, plural] : listings()) {
    EXPECT_EQ(run(words), 0) << err;
    EXPECT_EQ(out, "ROWS\n");
    EXPECT_THAT(err, HasSubstr(words::english("transport.own_namespace", {{"namespace", "red"}}) + "\n"));
    EXPECT_THAT(view_paths(), Contains("/apis/view.quartermaster.io/v1alpha1/namespaces/red/" + plural));
    auto with_namespace = words;
    with_namespace.insert(with_namespace.end(), {"-n", "red"});
    EXPECT_EQ(run(with_namespace), 0);
    EXPECT_EQ(out, "ROWS\n");
    EXPECT_THAT(err, Not(HasSubstr("-n names another"))) << "she has named it";
  }
}

TEST_F(alice, is_refused_all_namespaces_when_she_asks_for_all) {
  for (const auto& [words, plural] : listings()) {
    auto all = words;
    all.insert(all.end(), {"-n", "red", "-A"});
    EXPECT_EQ(run(all), 1) << "as kubectl has it, -A counts";
    EXPECT_EQ(out, "");
    const auto line = words::english("transport.refused.cluster",
                                     {{"person", "alice"}, {"verb", "list"}, {"resource", "nodes"}, {"reason", ""}});
    EXPECT_THAT(err, StartsWith("quartermaster: " + words::english("transport.forbidden", {{"detail", line}}) + "\n"));
    EXPECT_THAT(view_paths(), IsEmpty());
  }
}

TEST_F(alice, sees_the_smallest_right_that_suffices_elsewhere) {
  const std::string view = "--namespace=blue --clusterrole=view --user=alice\n",
                    user = "--clusterrole=quartermaster-user";
  for (const auto& words : {std::vector<std::string>{"top", "pods", "-n", "blue"}, {"inspect", "pods", "-n", "blue"}}) {
    EXPECT_EQ(run(words), 1);
    ASSERT_THAT(err, HasSubstr(view));
    ASSERT_THAT(err, HasSubstr(user));
    EXPECT_LT(err.find(view), err.find(user));
  }
  EXPECT_EQ(run({"report", "chargeback", "-n", "blue"}), 1);
  EXPECT_THAT(err, HasSubstr(view));
  has_views = false;
  EXPECT_EQ(run({"top", "pods", "-n", "blue"}), 1);
  EXPECT_THAT(err, Not(HasSubstr(view))) << "without the API no role in a namespace suffices";
  EXPECT_THAT(err, HasSubstr(user));
  EXPECT_EQ(run({"inspect", "nodes"}), 1);
  EXPECT_THAT(err, HasSubstr("--clusterrole=quartermaster-everyone --user=alice\n"));
}

TEST_F(alice, sees_what_is_declared) {
  EXPECT_EQ(run({"inspect", "resources"}), 0) << err;
  EXPECT_EQ(out, "ROWS\n");
  EXPECT_THAT(err, HasSubstr(words::english("transport.views")));
  EXPECT_THAT(view_paths(), Contains("/apis/view.quartermaster.io/v1alpha1/namespaces/red/declarations"));
  has_views = false;
  EXPECT_EQ(run({"inspect", "resources"}), 1);
  EXPECT_EQ(out, "");
  EXPECT_THAT(err, HasSubstr(words::english("transport.grant.declarations", {{"namespace", "kube-public"}})));
}

TEST_F(alice, has_her_pods_held_to_what_is_declared) {
  declarations = R"({"configMaps": [{"namespace": "kube-public", "name": "cf-crl-lab-fpga", "created": 1,
    "labels": {"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/group": "lab",
               "features.cpaas.io/enabled": "true"},
    "data": {"key": "example.com/fpga", "dataType": "integer", "group": "lab", "limits": "disabled",
             "requests": "disabled"}}]})";
  const auto pod = file("pod.yaml",
                        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m, image: x, "
                        "resources: {limits: {example.com/fpga: 1}}}]}}\n");
  EXPECT_EQ(run({"lint", "--cluster", pod}), 3) << err;
  EXPECT_THAT(out, HasSubstr("[resource_forbidden]"));
  EXPECT_THAT(err, HasSubstr(words::english("transport.views")));
  has_views = false;
  EXPECT_EQ(run({"lint", "--cluster", pod}), 3);
  EXPECT_THAT(err, HasSubstr(words::english("transport.grant.declarations", {{"namespace", "kube-public"}})));
  EXPECT_THAT(out, testing::Not(HasSubstr("[resource_forbidden]"))) << "no one says what is declared";
}

}  // namespace
}  // namespace cli
