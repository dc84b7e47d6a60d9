// Limits of memory by cgroup: what a driver of branch R615 answers, and that an older one has no such function.
#include <unistd.h>

#include <filesystem>

#include "library_under_test.hpp"

namespace {

using namespace nvml_test;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

struct limits : testing::Test {
  nvml_test::session session{"t4"};
  std::string cgroup = (session.node.folder / "pod").string();

  limits() {
    std::filesystem::create_directory(cgroup);
    change([](json& content) { content["driver"]["version"] = "615.71.09"; });
  }
  template <class Change>
  void change(Change change) {
    auto content = session.node.content();
    change(content);
    session.node.replace(content);
  }
  static return_code set(const std::string& cgroup, std::uint64_t reserved, std::uint64_t most) {
    nvml::memory_limits limits{cgroup.c_str(), reserved, most};
    return call("nvmlDeviceSetMemoryLimits_v1", card_at(0), &limits);
  }
  static return_code read(const std::string& cgroup, std::uint64_t& most) {
    nvml::memory_limits_in_use limits{cgroup.c_str(), 7, 7, 7};
    const auto code = call("nvmlDeviceGetMemoryLimits_v1", card_at(0), &limits);
    most = limits.most;
    return code;
  }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root sets limits";
  }
};

TEST_F(limits, are_kept_and_end_with_their_cgroup) {
  std::uint64_t most = 0;
  EXPECT_EQ(read(cgroup, most), nvml::not_found);
  EXPECT_EQ(set(cgroup, gib, 4 * gib), nvml::success);
  EXPECT_EQ(read(cgroup, most), nvml::success);
  EXPECT_EQ(most, 4 * gib);
  EXPECT_EQ(set(cgroup, 0, nvml::no_memory_limit), nvml::success);
  EXPECT_EQ(read(cgroup, most), nvml::success);
  EXPECT_EQ(most, nvml::no_memory_limit);
  std::filesystem::remove(cgroup);
  EXPECT_EQ(read(cgroup, most), nvml::operating_system);
  EXPECT_EQ(set(cgroup, 0, gib), nvml::operating_system);
}

TEST_F(limits, that_are_wrong_are_refused) {
  EXPECT_EQ(set(cgroup, 2 * gib, gib), nvml::invalid_argument);
  EXPECT_EQ(set(cgroup, 0, 17 * gib), nvml::invalid_argument) << "more than the card has";
  EXPECT_EQ(call("nvmlDeviceSetMemoryLimits_v1", card_at(0), static_cast<nvml::memory_limits*>(nullptr)),
            nvml::invalid_argument);
  std::filesystem::permissions(session.node.folder, std::filesystem::perms(0755));
  ASSERT_EQ(::seteuid(65534), 0);
  EXPECT_EQ(set(cgroup, 0, gib), nvml::no_permission);
  ASSERT_EQ(::seteuid(0), 0);
}

TEST_F(limits, can_be_ignored_switched_off_and_made_to_fail) {
  std::uint64_t most = 0;
  change([](json& content) { content["cards"][0]["memory_limits"] = "ignored"; });
  EXPECT_EQ(set(cgroup, 0, gib), nvml::success);
  EXPECT_EQ(read(cgroup, most), nvml::not_found);
  change([](json& content) { content["cards"][0]["memory_limits"] = "off"; });
  EXPECT_EQ(set(cgroup, 0, gib), nvml::not_supported);
  change([](json& content) {
    content["cards"][0].erase("memory_limits");
    content["cards"][0]["errors"] = {{"nvmlDeviceSetMemoryLimits_v1", "unknown"}};
  });
  EXPECT_EQ(set(cgroup, 0, gib), nvml::unknown);
}

TEST_F(limits, are_unknown_to_older_drivers_and_to_cards_that_are_cut) {
  std::uint64_t most = 0;
  change([](json& content) { content["driver"]["version"] = "610.43.02"; });
  EXPECT_EQ(set(cgroup, 0, gib), nvml::function_not_found);
  EXPECT_EQ(read(cgroup, most), nvml::function_not_found);
  change([](json& content) {
    content["driver"]["version"] = "615.71.09";
    content["cards"][0]["mig"] = {{"enabled", true}};
  });
  EXPECT_EQ(set(cgroup, 0, gib), nvml::not_supported);
}

}  // namespace
