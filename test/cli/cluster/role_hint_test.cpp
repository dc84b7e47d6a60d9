#include "cli/cluster/role_hint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::HasSubstr;

TEST(role_hint, a_refused_read_names_the_role_that_allows_it) {
  const auto hint = [](kube::errc code, std::string message) {
    return role_hint({code, 403, std::move(message), std::nullopt});
  };
  EXPECT_THAT(hint(kube::errc::forbidden, "list nodes: 403 Forbidden"), HasSubstr("ClusterRole quartermaster-user"));
  EXPECT_THAT(hint(kube::errc::forbidden, "get nodes gpu-1: 403 Forbidden"),
              HasSubstr("ClusterRole quartermaster-user"));
  EXPECT_THAT(hint(kube::errc::forbidden, "list configmaps: 403 Forbidden"), HasSubstr("Role quartermaster-user"));
  EXPECT_THAT(hint(kube::errc::forbidden, "list acceleratorusages: 403 Forbidden"),
              HasSubstr("ClusterRole quartermaster-chargeback"));
  EXPECT_EQ(hint(kube::errc::forbidden, "create pods: 403 Forbidden"), "");
  EXPECT_EQ(hint(kube::errc::not_found, "list nodes: 404"), "");
}

TEST(role_hint, golden_of_the_commands_that_would_allow_it) {
  const auto hint = [](const std::string& message) {
    return role_hint({kube::errc::forbidden, 403, message, std::nullopt});
  };
  EXPECT_THAT(hint("list nodes: 403 nodes is forbidden: User \"alice\" cannot list resource \"nodes\""),
              testing::EndsWith("by: kubectl create clusterrolebinding quartermaster-user-alice "
                                "--clusterrole=quartermaster-user --user=alice; and for declarations: kubectl create "
                                "rolebinding quartermaster-user-alice --namespace=kube-public "
                                "--role=quartermaster-user --user=alice"));
  EXPECT_THAT(hint("list configmaps: 403 configmaps is forbidden: User \"system:serviceaccount:lab:sci\" cannot list "
                   "resource \"configmaps\" in API group \"\" in the namespace \"platform\""),
              testing::EndsWith("by: kubectl create rolebinding quartermaster-user-system-serviceaccount-lab-sci "
                                "--namespace=platform --role=quartermaster-user --serviceaccount=lab:sci"));
  EXPECT_THAT(hint("list pods: User \"O'Hara $(x)\" cannot"), HasSubstr("--user='O'\\''Hara $(x)'"));
}

}  // namespace
}  // namespace cli
