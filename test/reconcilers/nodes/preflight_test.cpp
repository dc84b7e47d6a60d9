#include "reconcilers/nodes/preflight.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "test/words.hpp"
#include "text/escape.hpp"

namespace reconcilers {
namespace {

using api::check, api::check_row, api::check_state;
using testing::HasSubstr;
using text::language;

node_facts good_node() {
  node_facts out;
  out.kubelet = "v1.36.3";
  out.platform = "linux/amd64";
  out.driver = "550.144.03";
  out.cuda = "12.4";
  out.compute_capability = "8.0";
  out.mig = "none";
  out.rdma_resource = "rdma/hca";
  out.product = "NVIDIA-A100-SXM4-80GB";
  out.cards = 8;
  return out;
}

std::vector<check_row> good_rows() {
  return {{"driver", check_state::ok, "550.144.03"},
          {"cuda", check_state::ok, "12.4"},
          {"container_toolkit", check_state::ok, "1.17.8"},
          {"default_runtime", check_state::ok, "nvidia"},
          {"cgroup", check_state::ok, "v1"},
          {"rdma", check_state::ok, "available"},
          {"fabric_manager", check_state::ok, "550.144.03"}};
}

node_facts with(node_facts known, std::vector<check_row> rows) {
  take_in(known, std::move(rows));
  return known;
}

/// Not needed: there is no such row.
preflight_row row_of(const node_facts& known, const modules::module_type& mode, check check,
                     std::string_view runtime_class = {}) {
  const auto rows = preflight(known, mode, runtime_class);
  const auto match = std::ranges::find(rows, to_string(check), &preflight_row::name);
  return match == rows.end() ? preflight_row{{{}, check_state::not_needed, {}}} : *match;
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
    const auto rows = preflight(with(good_node(), good_rows()), mode);
    EXPECT_GE(rows.size(), 6U);
    for (const auto& row : rows)
      EXPECT_EQ(row.state, check_state::ok) << mode.name << ": " << text_of(row, language::en);
  }
}

TEST(preflight, S1_a_node_nobody_reports_on_fails_nothing) {
  for (const auto& mode : modules::catalogue()) {
    for (const auto& row : preflight({}, mode)) {
      EXPECT_EQ(row.state, check_state::unknown) << row.name;
      EXPECT_EQ(remedy_of(row, language::en), "");
    }
  }
}

// One judge: state, words and remedy of the agent stand, whatever labels say. Where a mode does not care, there is no
// row.
TEST(preflight, S1_a_row_of_the_agent_is_the_verdict) {
  for (const auto& entry : api::checks()) {
    if (!entry.by_agent.warns && !entry.by_agent.fails) continue;
    for (const auto state : {check_state::warning, check_state::failed, check_state::unknown}) {
      const auto remedy = state == check_state::unknown ? std::string() : "modprobe nvidia";
      const auto known = with(good_node(), {{std::string(entry.name), state, "missing", remedy}});
      for (const auto& mode : modules::catalogue()) {
        if (entry.id == check::default_runtime && mode.name == "vgpu") continue;
        const auto row = row_of(known, mode, entry.id);
        EXPECT_EQ(row.state, state) << entry.name << " " << mode.name;
        EXPECT_THAT(text_of(row, language::en), HasSubstr("missing")) << entry.name;
        EXPECT_EQ(remedy_of(row, language::en), remedy) << entry.name;
      }
    }
  }
}

// None hides another, and none is named that is there.
TEST(preflight, S1_every_combination_of_missing_parts_names_exactly_those) {
  const std::vector<std::string> parts{"driver", "container_toolkit", "default_runtime", "fabric_manager"};
  for (const auto& mode : modules::catalogue()) {
    for (unsigned missing = 0; missing < 1U << parts.size(); ++missing) {
      auto rows = good_rows();
      std::set<std::string> expected, found;
      for (unsigned part = 0; part < parts.size(); ++part) {
        if (!(missing >> part & 1U)) continue;
        std::ranges::find(rows, parts[part], &check_row::name)->state = check_state::failed;
        if (parts[part] != "default_runtime" || mode.name != "vgpu") expected.insert(parts[part]);
      }
      for (const auto& row : preflight(with(good_node(), rows), mode))
        if (row.state == check_state::failed) found.insert(row.name);
      EXPECT_EQ(found, expected) << mode.name;
    }
  }
}

TEST(preflight, a_row_of_the_agent_is_read_in_the_language_of_its_reader) {
  const text::parameter path{"path", "/etc/cdi/nvidia.yaml"};
  const auto known =
      with(good_node(), {api::row_of(check::cdi, check_state::failed, {}, {api::check_cause::cdi_incomplete, {path}})});
  const auto row = row_of(known, modules::pgpu, check::cdi);
  EXPECT_EQ(row.found, words::english("preflight_cause.cdi_incomplete.found", {path}));
  EXPECT_EQ(row.remedy, words::english("preflight_cause.cdi_incomplete.remedy", {path}));
  EXPECT_THAT(text_of(row, language::zh), HasSubstr(words::chinese("preflight_cause.cdi_incomplete.found", {path})));
  EXPECT_EQ(remedy_of(row, language::zh), words::chinese("preflight_cause.cdi_incomplete.remedy", {path}));
}

TEST(preflight, an_advice_of_a_row_is_read_in_the_same_language) {
  const auto known = with(good_node(), {api::row_of(check::default_runtime, check_state::warning, "runc",
                                                    {api::check_cause::default_broken, {{"advice", "k0s"}}})});
  const auto row = row_of(known, modules::pgpu, check::default_runtime);
  EXPECT_THAT(text_of(row, language::zh), HasSubstr("runc"));
  for (const auto locale : {language::en, language::zh}) {
    const text::parameter advice{"advice", text::message("preflight_advice.k0s.remedy", locale)};
    EXPECT_EQ(remedy_of(row, locale), text::message("preflight_cause.default_broken.remedy", locale, {advice}));
  }
}

// An agent of a newer version has causes, parameters and advice that this program does not know; one of an older
// version has none.
TEST(preflight, a_row_of_an_unknown_cause_shows_its_own_text) {
  const std::map<std::string, std::string, std::less<>> path{{"path", "/etc/cdi/a.yaml"}};
  const check_row own{"cdi", check_state::failed, "something new", "do something new"};
  auto newer = own, with_other_parameters = own, strange = own;
  newer.cause = "of_the_next_version";
  newer.parameters = path;
  with_other_parameters.cause = "cdi_incomplete";
  with_other_parameters.parameters = {{"file", "/etc/cdi/a.yaml"}};
  strange.cause = "../finding.remedy";
  for (const auto& reported : {own, newer, with_other_parameters, strange}) {
    const auto row = row_of(with(good_node(), {reported}), modules::pgpu, check::cdi);
    for (const auto locale : {language::en, language::zh}) {
      EXPECT_THAT(text_of(row, locale), HasSubstr("something new")) << reported.cause;
      EXPECT_EQ(remedy_of(row, locale), "do something new") << reported.cause;
    }
  }
  auto with_new_advice = own;
  with_new_advice.name = "default_runtime";
  with_new_advice.cause = "default_broken";
  with_new_advice.parameters = {{"advice", "of_the_next_version"}};
  EXPECT_EQ(remedy_text(with_new_advice, language::zh), "do something new");
}

// Someone who has taken a node over writes anything into its rows.
TEST(preflight, words_of_a_row_are_bounded_and_parameters_are_not_words) {
  check_row row{"cdi", check_state::failed, "f", "r"};
  row.cause = "cdi_other_driver";
  row.parameters = {{"path", std::string(100'000, 'a')}, {"drivers", "{driver}"}, {"driver", "\xff{path}"}};
  for (const auto locale : {language::en, language::zh}) {
    EXPECT_LE(found_text(row, locale).size(), 3 * api::longest_check_text);
    EXPECT_LE(remedy_text(row, locale).size(), 3 * api::longest_check_text);
    EXPECT_EQ(text::utf8_clean(found_text(row, locale)), found_text(row, locale));
  }
  EXPECT_THAT(found_text(row, language::en), HasSubstr("{driver}")) << "what stands in a value is not filled in";
  row.parameters.clear();
  for (int i = 0; i < 1000; ++i) row.parameters[std::to_string(i)] = "x";
  EXPECT_EQ(found_text(row, language::en), "f");
}

TEST(preflight, the_default_runtime_does_not_matter_to_pods_that_name_a_runtime_class) {
  const auto known = with(good_node(), {{"default_runtime", check_state::warning, "runc", "name the RuntimeClass"}});
  EXPECT_EQ(row_of(known, modules::pgpu, check::default_runtime).state, check_state::warning);
  EXPECT_EQ(row_of(known, modules::pgpu, check::default_runtime, "nvidia").state, check_state::not_needed);
  EXPECT_EQ(row_of(known, modules::vgpu, check::default_runtime).state, check_state::not_needed);
}

TEST(preflight, S19_mps_wants_volta_and_cuda_11_5) {
  struct fixture {
    const char *card, *compute, *driver, *cuda;
    std::vector<std::string> fails;
  };
  const fixture table[] = {
      {"P4", "6.1", "535.183.01", "12.2", {"compute_capability"}},
      {"V100", "7.0", "550.144.03", "12.4", {}},
      {"V100 on an old driver", "7.0", "470.256.02", "11.4", {"cuda"}},
      {"V100 on the first driver of 11.5", "7.0", "495.29.05", "11.5", {}},
      {"V100, one step before it", "7.0", "495.29.04", "", {"cuda"}},
      {"T4", "7.5", "535.183.01", "12.2", {}},
      {"A100", "8.0", "550.144.03", "12.4", {}},
      {"P4 on an old driver", "6.1", "470.256.02", "11.4", {"cuda", "compute_capability"}},
      {"T4 with a driver of 2016", "7.5", "375.26", "", {"driver"}},
  };
  for (const auto& entry : table) {
    auto known = good_node();
    known.compute_capability = entry.compute;
    known.driver = entry.driver;
    known.cuda = entry.cuda;
    known.cards = 1;
    std::vector<std::string> failed;
    for (const auto& row : preflight(known, modules::mps)) {
      if (row.state == check_state::failed) failed.push_back(row.name);
    }
    EXPECT_EQ(failed, entry.fails) << entry.card;
    EXPECT_EQ(row_of(known, modules::pgpu, check::compute_capability).state, check_state::not_needed) << entry.card;
  }
}

TEST(preflight, S19_S20_mig_is_refused_by_mps_and_vgpu_and_allowed_by_pgpu) {
  auto known = good_node();
  known.mig = "mixed";
  EXPECT_EQ(row_of(known, modules::mps, check::mig).state, check_state::failed);
  EXPECT_EQ(row_of(known, modules::vgpu, check::mig).state, check_state::failed);
  EXPECT_EQ(row_of(known, modules::pgpu, check::mig).state, check_state::not_needed);
  EXPECT_EQ(remedy_of(row_of(known, modules::mps, check::mig), language::en), words::english("preflight.mig.remedy"));
}

TEST(preflight, S1_versions_at_their_edges) {
  const auto of_driver = [](const char* found) {
    auto known = good_node();
    known.driver = found;
    return row_of(known, modules::pgpu, check::driver).state;
  };
  EXPECT_EQ(of_driver("384.81"), check_state::ok);
  EXPECT_EQ(of_driver("384.81-rc.1"), check_state::ok);
  EXPECT_EQ(of_driver("384.9"), check_state::failed);
  EXPECT_EQ(of_driver("1000.1"), check_state::ok) << "a thousand is more than 384";
  EXPECT_EQ(of_driver("who knows"), check_state::unknown);
  auto known = good_node();
  known.kubelet = "v1.24.17";
  EXPECT_EQ(row_of(known, modules::pgpu, check::kubernetes).state, check_state::failed);
  known.platform = "linux/s390x";
  EXPECT_EQ(row_of(known, modules::vgpu, check::platform).state, check_state::failed);
}

TEST(preflight, S67_rdma_is_a_matter_of_adapter_modules_driver_and_plugin) {
  auto known = with(good_node(), good_rows());
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).state, check_state::ok);
  known.rdma_resource.clear();
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).state, check_state::warning) << "no plugin offers the adapter";
  known = good_node();
  known.rdma = "capable";
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).state, check_state::warning) << "modules are not loaded";
  known.rdma = "available";
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).state, check_state::ok);
  known.driver = "470.256.02";
  const auto old = row_of(known, modules::pgpu, check::rdma);
  EXPECT_EQ(old.state, check_state::warning);
  EXPECT_THAT(
      remedy_of(old, language::en),
      HasSubstr(words::english("preflight.rdma.remedy",
                               {{"needed", words::english("preflight.or_newer", {{"version", "driver 471"}})}})));
  known.rdma.clear();
  EXPECT_EQ(row_of(known, modules::pgpu, check::rdma).state, check_state::not_needed) << "most nodes have none";

  auto node = labelled({{"node.kubernetes.io/instance-type", "ecs.ebmgn7ex.32xlarge"}});
  EXPECT_EQ(facts_of(node).rdma, "capable");
  node = labelled({{"feature.node.kubernetes.io/rdma.available", "true"}});
  node.allocatable = {{"rdma/hca_shared", 100}};
  EXPECT_EQ(facts_of(node).rdma, "available");
  EXPECT_EQ(facts_of(node).rdma_resource, "rdma/hca_shared");
}

// Without an agent no one has looked for it. An agent that sees no switch has no row.
TEST(preflight, S1_fabric_manager_matters_on_nvswitch_machines_only) {
  const auto state_for = [](const char* product, const char* compute, int cards, std::vector<check_row> rows = {}) {
    auto known = good_node();
    known.product = product;
    known.compute_capability = compute;
    known.cards = cards;
    return row_of(with(known, std::move(rows)), modules::pgpu, check::fabric_manager).state;
  };
  EXPECT_EQ(state_for("NVIDIA-H100-80GB-HBM3", "9.0", 8), check_state::unknown);
  EXPECT_EQ(state_for("NVIDIA-H100-80GB-HBM3", "9.0", 8, {{"driver", check_state::ok, "550.144.03"}}),
            check_state::not_needed);
  EXPECT_EQ(state_for("NVIDIA-A100-SXM4-80GB", "8.0", 4), check_state::not_needed);
  EXPECT_EQ(state_for("NVIDIA-H100-PCIe", "9.0", 8), check_state::not_needed);
  EXPECT_EQ(state_for("NVIDIA-H200-NVL", "9.0", 8), check_state::not_needed);
  EXPECT_EQ(state_for("Tesla-V100-SXM2-32GB", "7.0", 8), check_state::not_needed) << "DGX-1 has no switches";
}

TEST(preflight, S1_gpu_manager_reads_cgroup_v1_only_which_is_a_warning) {
  const auto known = with(good_node(), {{"cgroup", check_state::ok, "v2"}});
  EXPECT_EQ(row_of(known, modules::vgpu, check::cgroup).state, check_state::warning);
  EXPECT_THAT(remedy_of(row_of(known, modules::vgpu, check::cgroup), language::en),
              HasSubstr(words::english("preflight.cgroup.remedy")));
  EXPECT_EQ(row_of(known, modules::pgpu, check::cgroup).state, check_state::ok);
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

TEST(preflight, what_the_agent_found_takes_the_place_of_labels) {
  const auto known = with(facts_of(labelled({{"nvidia.com/cuda.driver-version.full", "550.144.03"}})),
                          {{"driver", check_state::ok, "470.256.02"},
                           {"cuda", check_state::ok, "11.4"},
                           {"from_a_newer_agent", check_state::warning, "x", "y"},
                           {"cgroup", check_state::unknown, "no mount"}});
  EXPECT_EQ(known.driver, "470.256.02");
  EXPECT_EQ(row_of(known, modules::mps, check::cuda).state, check_state::failed) << "the mode needs more";
  EXPECT_EQ(row_of(known, modules::pgpu, check::cuda).state, check_state::ok);
  const auto rows = preflight(known, modules::pgpu);
  EXPECT_EQ(rows.back(), (preflight_row{{"from_a_newer_agent", check_state::warning, "x", "y"}, true}));
  EXPECT_EQ(text_of(rows.back(), language::en),
            words::english("verify.step.reported", {{"check", "from_a_newer_agent"}, {"found", "x"}}));
  EXPECT_EQ(text_of(row_of(known, modules::pgpu, check::cgroup), language::en),
            words::english("preflight.cgroup.title") + words::english("preflight.not_reported") +
                words::english("preflight.detail", {{"text", "no mount"}}));
}

}  // namespace
}  // namespace reconcilers
