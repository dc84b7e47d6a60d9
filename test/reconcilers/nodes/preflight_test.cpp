#include "reconcilers/nodes/preflight.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace reconcilers {
namespace {

using text::language;
using verdict = preflight_verdict;
using check = preflight_check;
using testing::HasSubstr;

node_facts good_node() {
  node_facts out;
  out.kubelet = "v1.36.3";
  out.platform = "linux/amd64";
  out.driver = "550.144.03";
  out.cuda = "12.4";
  out.compute_capability = "8.0";
  out.mig = "none";
  out.toolkit = "1.17.8";
  out.default_runtime = "nvidia";
  out.cgroup = "v1";
  out.rdma = "available";
  out.rdma_resource = "rdma/hca";
  out.product = "NVIDIA-A100-SXM4-80GB";
  out.cards = 8;
  out.fabric_manager = "550.144.03";
  return out;
}

preflight_row row_of(const node_facts& known, const modules::module_type& mode, check check) {
  return preflight(known, mode).at(static_cast<std::size_t>(check));
}

kube::node labelled(const std::vector<std::pair<std::string, std::string>>& labels) {
  kube::node out;
  out.key.name = "gpu-1";
  out.kubelet_version = "v1.36.3";
  out.operating_system = "linux";
  out.architecture = "amd64";
  std::vector<kube::packed_map::entry> entries(labels.begin(), labels.end());
  out.labels = kube::packed_map::of(entries);
  return out;
}

TEST(preflight, S1_a_good_node_passes_every_check_of_every_module) {
  for (const auto& mode : modules::catalogue()) {
    const auto rows = preflight(good_node(), mode);
    ASSERT_EQ(rows.size(), preflight_check_count);
    for (const auto& row : rows)
      EXPECT_TRUE(row.is == verdict::passed || row.is == verdict::not_needed)
          << mode.name << ": " << text_of(row, language::en);
  }
}

TEST(preflight, S1_a_node_nobody_reports_on_fails_nothing) {
  for (const auto& mode : modules::catalogue()) {
    for (const auto& row : preflight({}, mode)) {
      EXPECT_TRUE(row.is == verdict::unknown || row.is == verdict::not_needed) << to_string(row.check);
      EXPECT_EQ(remedy_of(row, language::en), "");
    }
  }
}

/// Every combination of four missing parts, as one golden list: bits are driver, toolkit, runtime, fabric manager.
TEST(preflight, S1_every_combination_of_missing_parts_names_exactly_those) {
  std::ostringstream out;
  for (int missing = 0; missing < 16; ++missing) {
    auto known = good_node();
    if (missing & 1) known.driver = "missing";
    if (missing & 2) known.toolkit = "1.6.0";
    if (missing & 4) known.default_runtime = "runc";
    if (missing & 8) known.fabric_manager = "inactive";
    out << "missing:";
    if (missing & 1) out << " driver";
    if (missing & 2) out << " container_toolkit";
    if (missing & 4) out << " default_runtime";
    if (missing & 8) out << " fabric_manager";
    out << "\n";
    for (const auto& row : preflight(known, modules::mps)) {
      if (row.is != verdict::failed) continue;
      out << "  " << to_string(row.check) << "\n";
      if (missing & (missing - 1)) continue;  // the words of each once
      for (const auto entry : {language::en, language::zh})
        out << "    " << text_of(row, entry) << "\n    " << remedy_of(row, entry) << "\n";
    }
  }
  std::ifstream file(TEST_DATA "/golden/preflight.txt");
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(out.str(), golden.str());
}

TEST(preflight, S19_mps_wants_volta_and_cuda_11_5) {
  struct fixture {
    const char *card, *compute, *driver, *cuda;
    std::vector<check> fails;
  };
  const fixture table[] = {
      {"P4", "6.1", "535.183.01", "12.2", {check::compute_capability}},
      {"V100", "7.0", "550.144.03", "12.4", {}},
      {"V100 on an old driver", "7.0", "470.256.02", "11.4", {check::cuda}},
      {"V100 on the first driver of 11.5", "7.0", "495.29.05", "11.5", {}},
      {"V100, one step before it", "7.0", "495.29.04", "", {check::cuda}},
      {"T4", "7.5", "535.183.01", "12.2", {}},
      {"A100", "8.0", "550.144.03", "12.4", {}},
      {"P4 on an old driver", "6.1", "470.256.02", "11.4", {check::cuda, check::compute_capability}},
      {"T4 without a driver", "7.5", "missing", "", {check::driver}},
  };
  for (const auto& entry : table) {
    auto known = good_node();
    known.compute_capability = entry.compute;
    known.driver = entry.driver;
    known.cuda = entry.cuda;
    known.fabric_manager.clear();
    known.cards = 1;
    std::vector<check> failed;
    for (const auto& row : preflight(known, modules::mps)) {
      if (row.is == verdict::failed) failed.push_back(row.check);
    }
    EXPECT_EQ(failed, entry.fails) << entry.card;
    EXPECT_EQ(row_of(known, modules::pgpu, check::compute_capability).is, verdict::not_needed) << entry.card;
  }
}

TEST(preflight, S19_S20_mig_is_refused_by_mps_and_vgpu_and_allowed_by_pgpu) {
  auto known = good_node();
  known.mig = "mixed";
  EXPECT_EQ(row_of(known, modules::mps, check::mig).is, verdict::failed);
  EXPECT_EQ(row_of(known, modules::vgpu, check::mig).is, verdict::failed);
  EXPECT_EQ(row_of(known, modules::pgpu, check::mig).is, verdict::not_needed);
  EXPECT_THAT(remedy_of(row_of(known, modules::mps, check::mig), language::en), HasSubstr("nvidia-smi -mig 0"));
}

TEST(preflight, S1_versions_at_their_edges) {
  const auto toolkit = [](const char* found) {
    auto known = good_node();
    known.toolkit = found;
    return row_of(known, modules::pgpu, check::container_toolkit).is;
  };
  EXPECT_EQ(toolkit("1.7.0"), verdict::passed);
  EXPECT_EQ(toolkit("1.7.0-rc.1"), verdict::passed);
  EXPECT_EQ(toolkit("1.6.99"), verdict::failed);
  EXPECT_EQ(toolkit("1.17.8-1"), verdict::passed) << "17 is more than 7";
  EXPECT_EQ(toolkit("missing"), verdict::failed);
  EXPECT_EQ(toolkit("who knows"), verdict::unknown);
  auto known = good_node();
  known.kubelet = "v1.24.17";
  EXPECT_EQ(row_of(known, modules::pgpu, check::kubernetes).is, verdict::failed);
  known.platform = "linux/s390x";
  EXPECT_EQ(row_of(known, modules::vgpu, check::platform).is, verdict::failed);
}

TEST(preflight, S67_rdma_is_a_matter_of_adapter_modules_driver_and_plugin) {
  auto known = good_node();
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).is, verdict::passed);
  known.rdma_resource.clear();
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).is, verdict::warning) << "no plugin offers the adapter";
  known.rdma = "capable";
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).is, verdict::warning) << "modules are not loaded";
  known = good_node();
  known.driver = "460.32.03";
  const auto old = row_of(known, modules::pgpu, check::rdma);
  EXPECT_EQ(old.is, verdict::warning);
  EXPECT_THAT(remedy_of(old, language::en), HasSubstr("driver later than 470"));
  known.rdma.clear();
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).is, verdict::not_needed) << "most nodes have none";

  auto node = labelled({{"node.kubernetes.io/instance-type", "ecs.ebmgn7ex.32xlarge"}});
  EXPECT_EQ(facts_of(node).rdma, "capable");
  node = labelled({{"feature.node.kubernetes.io/rdma.available", "true"}});
  node.allocatable = {{"rdma/hca_shared", 100}};
  EXPECT_EQ(facts_of(node).rdma, "available");
  EXPECT_EQ(facts_of(node).rdma_resource, "rdma/hca_shared");
}

TEST(preflight, S1_fabric_manager_matters_on_nvswitch_machines_only) {
  const auto verdict_for = [](const char* product, const char* compute, int cards, const char* manager) {
    auto known = good_node();
    known.product = product;
    known.compute_capability = compute;
    known.cards = cards;
    known.fabric_manager = manager;
    return row_of(known, modules::pgpu, check::fabric_manager).is;
  };
  EXPECT_EQ(verdict_for("NVIDIA-H100-80GB-HBM3", "9.0", 8, "inactive"), verdict::failed);
  EXPECT_EQ(verdict_for("NVIDIA-H100-80GB-HBM3", "9.0", 8, "active"), verdict::passed);
  EXPECT_EQ(verdict_for("NVIDIA-H100-80GB-HBM3", "9.0", 8, "550.90.07"), verdict::failed) << "another version";
  EXPECT_EQ(verdict_for("NVIDIA-H100-80GB-HBM3", "9.0", 8, ""), verdict::unknown);
  EXPECT_EQ(verdict_for("NVIDIA-A100-SXM4-80GB", "8.0", 4, "missing"), verdict::not_needed);
  EXPECT_EQ(verdict_for("NVIDIA-H100-PCIe", "9.0", 8, "missing"), verdict::not_needed);
  EXPECT_EQ(verdict_for("NVIDIA-H200-NVL", "9.0", 8, "missing"), verdict::not_needed);
  EXPECT_EQ(verdict_for("Tesla-V100-SXM2-32GB", "7.0", 8, "missing"), verdict::not_needed) << "DGX-1 has no switches";
}

TEST(preflight, S1_gpu_manager_reads_cgroup_v1_only_which_is_a_warning) {
  auto known = good_node();
  known.cgroup = "v2";
  EXPECT_EQ(row_of(known, modules::vgpu, check::cgroup).is, verdict::warning);
  EXPECT_EQ(row_of(known, modules::pgpu, check::cgroup).is, verdict::passed);
}

TEST(preflight, facts_come_from_feature_discovery_labels_new_and_old) {
  const auto now = facts_of(labelled({{"nvidia.com/cuda.driver-version.full", "550.144.03"},
                                      {"nvidia.com/cuda.runtime-version.major", "12"},
                                      {"nvidia.com/cuda.runtime-version.minor", "4"},
                                      {"nvidia.com/gpu.compute.major", "8"},
                                      {"nvidia.com/gpu.compute.minor", "0"},
                                      {"nvidia.com/gpu.count", "8"},
                                      {"nvidia.com/mig.capable", "false"}}));
  EXPECT_EQ(now.driver, "550.144.03");
  EXPECT_EQ(now.cuda, "12.4");
  EXPECT_EQ(now.compute_capability, "8.0");
  EXPECT_EQ(now.cards, 8);
  EXPECT_EQ(now.mig, "none");
  EXPECT_EQ(now.platform, "linux/amd64");
  const auto old = facts_of(labelled({{"nvidia.com/cuda.driver.major", "470"},
                                      {"nvidia.com/cuda.driver.minor", "256"},
                                      {"nvidia.com/cuda.driver.rev", "02"},
                                      {"nvidia.com/cuda.runtime.major", "11"},
                                      {"nvidia.com/cuda.runtime.minor", "4"}}));
  EXPECT_EQ(old.driver, "470.256.02");
  EXPECT_EQ(old.cuda, "11.4");
}

// The agent looks at the program: AKS calls the runtime by its program, and one called nvidia can be broken.
TEST(preflight, of_the_default_runtime_the_agents_verdict_counts_and_not_the_name) {
  const std::vector<std::pair<agent_row, verdict>> cases{
      {{"default_runtime", "nvidia-container-runtime", "ok"}, verdict::passed},
      {{"default_runtime", "nvidia", "warning"}, verdict::failed},
      {{"default_runtime", "nvidia"}, verdict::passed},
      {{"default_runtime", "runc", "warning"}, verdict::failed},
      {{"default_runtime", "not mounted", "unknown"}, verdict::unknown}};
  for (const auto& [reported, expected] : cases) {
    node_facts known;
    take_in(known, std::vector{reported});
    EXPECT_EQ(row_of(known, modules::pgpu, check::default_runtime).is, expected) << reported.found;
  }
}

TEST(preflight, what_the_agent_found_takes_the_place_of_labels) {
  auto known = facts_of(labelled({{"nvidia.com/cuda.driver-version.full", "550.144.03"}}));
  const agent_row reported[] = {{"driver", "470.256.02"},
                                {"container_toolkit", "1.6.0", "failed"},
                                {"from_a_newer_agent", "x", "warning", "y"},
                                {"cgroup", "no mount", "unknown"},
                                {"fabric_manager", "active", "ok"}};
  take_in(known, reported);
  EXPECT_EQ(agent_checks(known), (std::vector<agent_row>{{"from_a_newer_agent", "x", "warning", "y"}}));
  EXPECT_EQ(row_of(known, modules::pgpu, check::cgroup).reason, "no mount");
  EXPECT_THAT(text_of(row_of(known, modules::pgpu, check::cgroup), language::en),
              HasSubstr("cgroup is not reported: no mount"));
  EXPECT_EQ(row_of(known, modules::pgpu, check::fabric_manager).is, verdict::passed) << "the agent has seen a switch";
  EXPECT_EQ(known.driver, "470.256.02");
  EXPECT_EQ(known.toolkit, "1.6.0");
  EXPECT_EQ(known.cgroup, "");
}

}  // namespace
}  // namespace reconcilers
