#include "scheduler_config/url.hpp"

#include <gtest/gtest.h>

namespace scheduler_config {
namespace {

TEST(extender_url, knows_the_names_that_only_the_dns_of_the_cluster_has) {
  for (const auto* host : {"gpu-quota-admission", "gpu-quota-admission.kube-system", "extender.default", "a.b.svc",
                           "a.b.svc.cluster.local", "A.Monitoring", "my-extender."})
    EXPECT_TRUE(is_service_name(host)) << host;
  for (const auto* host : {"localhost", "LocalHost", "127.0.0.1", "10.0.0.1", "::1", "fd00::7", "example.com",
                           "extender.example.com", "gpu.internal", "node-1.local", "extender.corp", "gpu.cn",
                           "extender.kube-system.example", "localhost.localdomain", "host.xn--p1ai", ""})
    EXPECT_FALSE(is_service_name(host)) << host;
}

}  // namespace
}  // namespace scheduler_config
