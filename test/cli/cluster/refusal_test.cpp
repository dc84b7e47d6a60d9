#include "cli/cluster/refusal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/output/answer.hpp"
#include "test/english.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

/// The roles that are named, in their order.
std::vector<std::string> grants_in(const text::phrase& refused) {
  std::vector<std::string> out;
  for (const auto& argument : refused.arguments)
    if (argument.name == "grant") out.push_back(argument.inner.key);
  return out;
}

text::phrase refused(std::string message, kube::errc code = kube::errc::forbidden) {
  return phrase_of({code, 403, std::move(message), std::nullopt});
}

/// As the API server words it.
std::string of_rbac(const std::string& person, const std::string& resource, const std::string& scope) {
  return "list " + resource + ": 403 Forbidden: " + resource + " is forbidden: User \"" + person +
         "\" cannot list resource \"" + resource + "\" in API group \"\" " + scope;
}

TEST(refusal, a_refused_read_names_the_roles_that_allow_it_the_smallest_first) {
  using testing::ElementsAre, testing::IsEmpty;
  EXPECT_THAT(grants_in(refused("list nodes: 403 Forbidden")), ElementsAre("transport.grant.user"));
  EXPECT_THAT(grants_in(refused("get nodes gpu-1: 403 Forbidden")), ElementsAre("transport.grant.user"));
  EXPECT_THAT(grants_in(refused(of_rbac("a", "pods", "in the namespace \"lab\""))),
              ElementsAre("transport.grant.view", "transport.grant.user"));
  EXPECT_THAT(grants_in(refused("list configmaps: 403 Forbidden")), ElementsAre("transport.grant.declarations"));
  EXPECT_THAT(grants_in(refused("list acceleratorusages: 403 Forbidden")), ElementsAre("transport.grant.usage"));
  EXPECT_THAT(grants_in(refused("create pods: 403 Forbidden")), IsEmpty());
  EXPECT_THAT(grants_in(refused("list nodes: 404", kube::errc::not_found)), IsEmpty());
  const auto nodes = refused("list nodes: 403 Forbidden");
  EXPECT_THAT(grants_in(where_everyone_suffices(nodes)),
              ElementsAre("transport.grant.everyone", "transport.grant.user"));
  EXPECT_THAT(grants_in(where_view_suffices(where_view_suffices(nodes, "lab"), "lab")),
              ElementsAre("transport.grant.view", "transport.grant.user"))
      << "once";
}

TEST(refusal, golden_words_of_every_code_quote_its_line_in_Chinese) {
  for (int i = 0; i <= static_cast<int>(kube::errc::decode); ++i) {
    const kube::error error{static_cast<kube::errc>(i), 0, "list nodes: it is not as it was", std::nullopt};
    const auto phrase = phrase_of(error);
    EXPECT_NE(text::pattern_of(phrase.key, text::language::en), "") << phrase.key;
    EXPECT_NE(text::pattern_of(phrase.key, text::language::zh), "") << phrase.key;
    const auto chinese = words_of(phrase, text::language::zh);
    EXPECT_TRUE(chinese.contains(error.message)) << chinese;
    EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
  }
}

/// As a person reads it.
std::string printed(const text::phrase& refused, text::language locale = text::language::en) {
  std::ostringstream out;
  EXPECT_EQ(failed(refused, locale, out), 1);
  return out.str();
}

TEST(refusal, golden_of_the_line_and_of_the_commands_below_it) {
  const auto nodes = refused(
      R"(list nodes: 403 Forbidden: nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at )"
      R"(the cluster scope)");
  EXPECT_EQ(
      printed(where_everyone_suffices(nodes)),
      "quartermaster: alice may not list nodes of the whole cluster (403)\n"
      "  An administrator grants what suffices here, ClusterRole quartermaster-everyone, by\n"
      "    kubectl create clusterrolebinding quartermaster-everyone-alice --clusterrole=quartermaster-everyone "
      "--user=alice\n"
      "  An administrator grants what all commands but the bill read, ClusterRole and Role quartermaster-user, by\n"
      "    kubectl create clusterrolebinding quartermaster-user-alice --clusterrole=quartermaster-user "
      "--user=alice\n"
      "    kubectl create rolebinding quartermaster-user-alice --namespace=kube-public --role=quartermaster-user "
      "--user=alice\n");
  const auto pods = refused(
      R"(list pods: 403 Forbidden: pods is forbidden: User "system:serviceaccount:lab:sci" cannot list resource "pods" )"
      R"(in API group "" in the namespace "blue": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found)");
  EXPECT_THAT(printed(pods),
              testing::StartsWith("quartermaster: system:serviceaccount:lab:sci may not list pods in namespace blue "
                                  "(403) (RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found)\n"
                                  "  An administrator grants what suffices here, the role view in namespace blue, by\n"
                                  "    kubectl create rolebinding view-system-serviceaccount-lab-sci --namespace=blue "
                                  "--clusterrole=view --serviceaccount=lab:sci\n"));
  EXPECT_THAT(
      printed(refused("list configmaps: 403 Forbidden: configmaps is forbidden: User \"al\" cannot list resource "
                      "\"configmaps\" in API group \"\" in the namespace \"platform\"")),
      testing::EndsWith("\n    kubectl create rolebinding quartermaster-user-al --namespace=platform "
                        "--role=quartermaster-user --user=al\n"));
  EXPECT_FALSE(words::has_english_sentence(words_of(nodes, text::language::zh))) << words_of(nodes, text::language::zh);
}

TEST(refusal, names_of_people_break_no_command_and_no_line) {
  EXPECT_THAT(printed(refused(of_rbac("O'Hara $(x)", "pods", "at the cluster scope"))),
              testing::HasSubstr("--user='O'\\''Hara $(x)'"));
  EXPECT_THAT(printed(refused(of_rbac("a\n    kubectl delete ns x", "pods", "at the cluster scope"))),
              testing::Not(testing::HasSubstr("\n    kubectl delete")));
  const auto strange = refused("list pods: 403 <html>proxy says no</html>");
  EXPECT_THAT(printed(strange), testing::HasSubstr("proxy says no"));
}

}  // namespace
}  // namespace cli
