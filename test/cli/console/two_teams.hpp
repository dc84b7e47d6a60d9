#pragma once
// A cluster of two teams that must not see each other: pods in team-a and team-b on shared cards, a node that changes
// its mode, pods that wait, limits in one cohort. All that is team-b's has "secret" in its name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/console/viewer.hpp"
#include "cli/explain/answer_form.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace console_test {

using extender_test::share;
using extender_test::vgpu_node;
using nlohmann::json;

inline kube::pod pod_of(const std::string& ns, const std::string& name, std::int64_t cores, std::int64_t units,
                        const std::string& node = "") {
  auto out = share(name, cores, units, node);
  out.key.ns = ns;
  out.id = kube::uid::parse(ns + "/" + name);
  return out;
}

/// A name that a browser would take for a picture.
inline const std::string hostile_name = "<img-src=x-onerror=alert(1)>";

struct two_teams : testing::Test {
  cli::picture cluster;

  two_teams() {
    begin(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
          cluster.cards);
    for (const auto* name : {"gpu-1", "gpu-2"}) cluster.nodes.put(vgpu_node(name, 1));
    auto changing = vgpu_node("gpu-3", 1);
    changing.taints.push_back({"quartermaster.io/switching", "vgpu.pgpu", "NoSchedule"});
    cluster.nodes.put(changing);
    auto report = extender_test::reported("gpu-3", json::array());
    report.mode.requested_mode = "pgpu";
    report.mode.actual_mode = "vgpu";
    report.mode.phase = "Draining";
    report.mode.reason = "PodsHoldCards";
    report.mode.message = "waits for team-a/mine-3 and team-b/secret-3";
    report.mode.since = "2026-11-01T00:00:00Z";
    report.mode.blockers = {"team-a/mine-3", "team-b/secret-3"};
    cluster.cards.put(report);
    cluster.pods.put(pod_of("team-a", "mine-1", 50, 16, "gpu-1"));
    cluster.pods.put(pod_of("team-b", "secret-1", 30, 16, "gpu-1"));
    cluster.pods.put(pod_of("team-b", "secret-2", 100, 64, "gpu-2"));
    cluster.pods.put(pod_of("team-a", "mine-3", 40, 8, "gpu-3"));
    cluster.pods.put(pod_of("team-b", "secret-3", 60, 8, "gpu-3"));
    cluster.pods.put(pod_of("team-a", hostile_name, 90, 64));
    cluster.pods.put(pod_of("team-b", "secret-waits", 90, 64));
    cluster.quotas.put(limit_of("team-a", "limits", 200));
    cluster.quotas.put(limit_of("team-b", "secret-limits", 300));
  }
  static api::accelerator_quota limit_of(const std::string& ns, const std::string& name, int cores) {
    json spec{{"cohort", "all"}};
    spec["hard"] = json::array({{{"units", "cores"}, {"max", cores}}});
    return extender_test::quota_of(ns, name, spec, static_cast<std::int64_t>(extender_test::next_version()));
  }
  static void begin(auto&... stores) { (stores.begin(), ...); }
  static void commit(auto&... stores) { (stores.commit(), ...); }
  const cli::picture& read() {
    if (!cluster.book) {
      commit(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
             cluster.cards);
      cluster.finish();
    }
    return cluster;
  }

  static cli::console::viewer everyone() {
    cli::console::viewer out;
    out.user = "admin";
    out.nodes = out.all_pods = out.all_quotas = out.declarations = true;
    return out;
  }
  /// Sees the nodes, and of pods those of team-a.
  static cli::console::viewer team_a() {
    cli::console::viewer out;
    out.user = "a";
    out.nodes = out.declarations = true;
    out.namespaces = out.quota_namespaces = {"team-a"};
    return out;
  }
};

}  // namespace console_test
