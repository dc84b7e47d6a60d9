#include "cli/controller/fleet_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;

struct fleet_metrics_test : testing::Test {
  controller::store<api::accelerator_node> nodes;
  controller::store<kube::daemon_set> daemon_sets;
  controller::registry registry;
  bool is_leader = true;

  fleet_metrics_test() {
    registry.collect(
        [this](controller::metric_text& text) { write_fleet_metrics({nodes, daemon_sets}, is_leader, text); });
  }
  void node(const std::string& name, const std::string& phase, const std::string& since) {
    api::accelerator_node out;
    out.key.name = name;
    out.mode.requested_mode = "vgpu";
    out.mode.phase = phase;
    out.mode.since = since;
    nodes.put(out);
  }
  void plugin(const std::string& name, const std::string& module, std::int32_t desired, std::int32_t ready) {
    kube::daemon_set out;
    out.key = {"quartermaster", name};
    out.labels =
        kube::packed_map::of({{"app.kubernetes.io/managed-by", "quartermaster"}, {"quartermaster.io/module", module}});
    out.desired = desired;
    out.ready = ready;
    out.updated = 1;
    daemon_sets.put(out);
  }
};

TEST_F(fleet_metrics_test, a_node_says_its_phase_and_since_when) {
  node("gpu-1", "Stuck", "2026-01-02T03:04:05Z");
  node("gpu-2", "", "");
  node("gpu-3", "Ready", "yesterday");
  const auto text = registry.text();
  EXPECT_THAT(text,
              HasSubstr(R"(quartermaster_node_phase_since_timestamp_seconds{node="gpu-1",mode="vgpu",phase="Stuck"} )"
                        "1767323045\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpu-2")));
  EXPECT_THAT(text, Not(HasSubstr("gpu-3")));
}

TEST_F(fleet_metrics_test, a_module_is_the_sum_over_its_node_sets) {
  plugin("gpu-manager-daemonset", "vgpu", 3, 2);
  plugin("gpu-manager-daemonset-large", "vgpu", 4, 4);
  kube::daemon_set other;
  other.key = {"quartermaster", "somebody-elses"};
  other.desired = 100;
  daemon_sets.put(other);
  const auto text = registry.text();
  EXPECT_THAT(text, HasSubstr("quartermaster_module_nodes{module=\"vgpu\",state=\"desired\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_module_nodes{module=\"vgpu\",state=\"ready\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_module_nodes{module=\"vgpu\",state=\"updated\"} 2\n"));
}

TEST_F(fleet_metrics_test, a_replica_that_stands_by_has_no_series) {
  node("gpu-1", "Ready", "2026-01-02T03:04:05Z");
  plugin("gpu-manager-daemonset", "vgpu", 3, 3);
  is_leader = false;
  const auto text = registry.text();
  EXPECT_THAT(text, HasSubstr("# TYPE quartermaster_module_nodes gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("quartermaster_module_nodes{")));
  EXPECT_THAT(text, Not(HasSubstr("quartermaster_node_phase_since_timestamp_seconds{")));
}

}  // namespace
}  // namespace cli
