// `quartermaster version`: what it says of the operator of a cluster, and of a cluster in which none runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/cluster/operator_lease.hpp"
#include "test/cli/cluster/served_program.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// The operator's lease, renewed now.
std::string operator_lease(const std::string& holder) {
  std::string time, spec, out;
  protozero::pbf_writer(time).add_int64(1, std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  protozero::pbf_writer writer(spec);
  writer.add_string(1, holder);
  writer.add_int32(2, 15);
  writer.add_message(4, time);
  protozero::pbf_writer whole(out);
  whole.add_message(1, cli_test::metadata("gpu-system", "quartermaster"));
  whole.add_message(2, spec);
  return out;
}

/// A cluster with a lease and the Deployment of the chart.
kube_test::test_server::handler installed(const std::string& holder) {
  return [holder](const kube_test::seen_request& seen) {
    if (seen.target.contains("/leases")) return cli_test::protobuf_reply(cli_test::list_body({operator_lease(holder)}));
    if (!seen.target.contains("/deployments")) return cli_test::empty_cluster(seen);
    const json deployment = {
        {"metadata", {{"labels", {{"app.kubernetes.io/version", "0.9.9"}}}}},
        {"spec", {{"template", {{"spec", {{"containers", json::array({{{"image", "quartermaster:0.9.9"}}})}}}}}}}};
    return cli_test::reply_of(
        "application/json",
        json{{"kind", "DeploymentList"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", json::array({deployment})}}
            .dump());
  };
}

std::string last_line(const std::string& text) {
  const auto begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin + 1, text.size() - begin - 2);
}

TEST(version, of_a_cluster_without_a_lease_no_operator_runs) {
  cli_test::served_program program(&cli_test::empty_cluster);
  ASSERT_EQ(program.run({"version"}), 0) << program.err;
  EXPECT_EQ(last_line(program.out), words::english("version.none", {{"reason", words::english("version.no_lease")}}));
  ASSERT_EQ(program.run({"version", "-o", "json"}), 0);
  EXPECT_EQ(json::parse(program.out).at("operator").at("runs"), false);
}

TEST(version, one_that_no_one_holds_the_lease_of_does_not_run) {
  cli_test::served_program program(installed(""));
  ASSERT_EQ(program.run({"version"}), 0) << program.err;
  EXPECT_EQ(last_line(program.out),
            words::english("version.stopped",
                           {{"version", "0.9.9"},
                            {"namespace", "gpu-system"},
                            {"image", "quartermaster:0.9.9"},
                            {"reason", words::english("version.no_holder", {{"namespace", "gpu-system"}})}}));
  ASSERT_EQ(program.run({"version", "-o", "json"}), 0);
  const auto answer = json::parse(program.out).at("operator");
  EXPECT_EQ(answer.at("runs"), false);
  EXPECT_EQ(answer.at("version"), "0.9.9");
}

TEST(version, one_that_renews_its_lease_runs) {
  cli_test::served_program program(installed("pod-a"));
  ASSERT_EQ(program.run({"version"}), 0) << program.err;
  EXPECT_EQ(last_line(program.out),
            words::english("version.operator",
                           {{"version", "0.9.9"}, {"namespace", "gpu-system"}, {"image", "quartermaster:0.9.9"}}));
  ASSERT_EQ(program.run({"version", "-o", "yaml"}), 0);
  EXPECT_THAT(program.out, HasSubstr("runs: true"));
}

TEST(version, a_lease_looks_fresh_for_as_long_as_it_says) {
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
  kube::lease lease;
  lease.duration_seconds = 15;
  lease.renewed_us = (now - std::chrono::seconds(10)).count();
  EXPECT_TRUE(looks_fresh(lease));
  lease.renewed_us = (now - std::chrono::seconds(30)).count();
  EXPECT_FALSE(looks_fresh(lease));
}

}  // namespace
}  // namespace cli
