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

}  // namespace
}  // namespace cli
