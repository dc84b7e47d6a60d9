// What each fixture's cards are.
#include <unistd.h>

#include "library_under_test.hpp"

namespace {

using namespace nvml_test;

struct expectation {
  const char* fixture;
  unsigned cards;
  const char* name;
  std::uint64_t memory_mib;
  int major, minor;
  unsigned architecture, device_id, links;
  const char* driver;
  friend void PrintTo(const expectation& expected, std::ostream* stream) { *stream << expected.fixture; }
};

class inventory : public testing::TestWithParam<expectation> {};

TEST_P(inventory, every_card_has_the_facts_of_its_model) {
  const auto& expected = GetParam();
  const session session(expected.fixture);
  unsigned count = 0;
  ASSERT_EQ(call("nvmlDeviceGetCount_v2", &count), nvml::success);
  ASSERT_EQ(count, expected.cards);
  char driver[80];
  ASSERT_EQ(call("nvmlSystemGetDriverVersion", &driver[0], 80U), nvml::success);
  EXPECT_STREQ(driver, expected.driver);
  for (unsigned index = 0; index < count; ++index) {
    const auto card = card_at(index);
    EXPECT_EQ(text("nvmlDeviceGetName", card), expected.name);
    EXPECT_EQ(value<nvml::memory>("nvmlDeviceGetMemoryInfo", card).total >> 20, expected.memory_mib);
    int major = 0, minor = 0;
    EXPECT_EQ(call("nvmlDeviceGetCudaComputeCapability", card, &major, &minor), nvml::success);
    EXPECT_EQ(std::pair(major, minor), std::pair(expected.major, expected.minor));
    EXPECT_EQ(value<unsigned>("nvmlDeviceGetArchitecture", card), expected.architecture);
    EXPECT_EQ(value<nvml::pci_info>("nvmlDeviceGetPciInfo_v3", card).device_id, expected.device_id);
    EXPECT_EQ(value<unsigned>("nvmlDeviceGetIndex", card), index);
    unsigned links = 0;
    for (unsigned link = 0; link < nvml::max_links; ++link) {
      int is_active = 0;
      links += call("nvmlDeviceGetNvLinkState", card, link, &is_active) == nvml::success && is_active;
    }
    EXPECT_EQ(links, expected.links);
  }
}

INSTANTIATE_TEST_SUITE_P(
    fixtures, inventory,
    testing::Values(expectation{"t4", 1, "Tesla T4", 15360, 7, 5, 6, 0x1eb810de, 0, "535.183.01"},
                    expectation{"t4_pair", 2, "Tesla T4", 15360, 7, 5, 6, 0x1eb810de, 0, "535.183.01"},
                    expectation{"v100", 1, "Tesla V100-SXM2-16GB", 16384, 7, 0, 5, 0x1db110de, 0, "535.183.01"},
                    expectation{"a100x8", 8, "NVIDIA A100-SXM4-80GB", 81920, 8, 0, 7, 0x20b210de, 12, "550.54.15"},
                    expectation{"h100x8", 8, "NVIDIA H100 80GB HBM3", 81559, 9, 0, 9, 0x233010de, 18, "550.90.07"},
                    expectation{"l40s", 4, "NVIDIA L40S", 46068, 8, 9, 8, 0x26b910de, 0, "570.86.15"},
                    expectation{"rtx4090", 1, "NVIDIA GeForce RTX 4090", 24564, 8, 9, 8, 0x268410de, 0, "560.35.03"},
                    expectation{"a100_mig", 2, "NVIDIA A100-SXM4-80GB", 81920, 8, 0, 7, 0x20b210de, 0, "550.54.15"},
                    expectation{"t4_lost", 1, "Tesla T4", 15360, 7, 5, 6, 0x1eb810de, 0, "535.183.01"}),
    [](const auto& expected) { return std::string(expected.param.fixture); });

TEST(cards, are_found_by_uuid_serial_and_both_forms_of_address) {
  const session session("t4_pair");
  const auto card = card_at(1);
  const auto uuid = text("nvmlDeviceGetUUID", card), serial = text("nvmlDeviceGetSerial", card);
  device found = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found), nvml::success);
  EXPECT_EQ(found, card);
  EXPECT_EQ(call("nvmlDeviceGetHandleBySerial", serial.c_str(), &found), nvml::success);
  EXPECT_EQ(found, card);
  for (const char* place : {"00000000:00:05.0", "0000:00:05.0", "00:05.0"}) {
    EXPECT_EQ(call("nvmlDeviceGetHandleByPciBusId_v2", place, &found), nvml::success) << place;
    EXPECT_EQ(found, card);
  }
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", "GPU-none", &found), nvml::not_found);
}

TEST(cards, older_forms_of_the_address_do_not_write_beyond_their_struct) {
  const session session("t4");
  nvml::pci_info info;
  std::memset(&info, 0x55, sizeof info);
  ASSERT_EQ(call("nvmlDeviceGetPciInfo", card_at(0), static_cast<void*>(&info)), nvml::success);
  EXPECT_STREQ(info.bus_id_legacy, "0000:00:04.0");
  EXPECT_EQ(info.device_id, 0x1eb810deU);
  EXPECT_EQ(info.subsystem_id, 0x55555555U);
}

TEST(cards, a_geforce_card_has_no_serial_and_no_peers) {
  const session session("rtx4090");
  char serial[30];
  EXPECT_EQ(call("nvmlDeviceGetSerial", card_at(0), &serial[0], 30U), nvml::not_supported);
  unsigned current = 0, pending = 0;
  EXPECT_EQ(call("nvmlDeviceGetMigMode", card_at(0), &current, &pending), nvml::not_supported);
  std::uint64_t errors = 0;
  EXPECT_EQ(call("nvmlDeviceGetTotalEccErrors", card_at(0), 1U, 0U, &errors), nvml::not_supported);
}

TEST(memory, the_second_form_has_what_the_driver_reserves) {
  const session session("t4");
  nvml::memory_v2 memory{
      .version = nvml::version_word<nvml::memory_v2>(2), .total = 0, .reserved = 0, .free = 0, .used = 0};
  ASSERT_EQ(call("nvmlDeviceGetMemoryInfo_v2", card_at(0), &memory), nvml::success);
  EXPECT_EQ(memory.total, memory.reserved + memory.free + memory.used);
  EXPECT_EQ(value<nvml::memory>("nvmlDeviceGetMemoryInfo", card_at(0)).used, memory.reserved + memory.used);
  memory.version = 7;
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo_v2", card_at(0), &memory), nvml::argument_version_mismatch);
}

TEST(processes, each_form_and_kind_has_its_own_list) {
  session session("t4");
  auto content = session.node.content();
  content["cards"][0]["processes"] = {{{"pid", 7}, {"memory_mib", 100}, {"sm", 40}, {"name", "train"}},
                                      {{"pid", 8}, {"memory_mib", 5}, {"kind", "mps"}}};
  session.node.replace(content);
  nvml::process processes[4];
  unsigned count = 0;
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", card_at(0), &count, &processes[0]),
            nvml::insufficient_size);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", card_at(0), &count, &processes[0]), nvml::success);
  EXPECT_EQ(processes[0].pid, 7U);
  EXPECT_EQ(processes[0].used_memory >> 20, 100U);
  EXPECT_EQ(processes[0].gpu_instance, nvml::no_instance);
  EXPECT_EQ(call("nvmlDeviceGetMPSComputeRunningProcesses_v3", card_at(0), &count, &processes[0]), nvml::success);
  EXPECT_EQ(processes[0].pid, 8U);
  char name[32];
  EXPECT_EQ(call("nvmlSystemGetProcessName", 7U, &name[0], 32U), nvml::success);
  EXPECT_STREQ(name, "train");
  nvml::process_sample samples[4];
  count = 4;
  EXPECT_EQ(call("nvmlDeviceGetProcessUtilization", card_at(0), &samples[0], &count, std::uint64_t{0}), nvml::success);
  EXPECT_EQ(samples[0].sm, 40U);
  EXPECT_EQ(call("nvmlDeviceGetProcessUtilization", card_at(0), &samples[0], &count, std::uint64_t{9}), nvml::no_data);
}

TEST(settings, compute_mode_is_kept_in_the_process) {
  const session session("t4");
  EXPECT_EQ(value<int>("nvmlDeviceGetComputeMode", card_at(0)), 0);
  if (geteuid() != 0) {
    EXPECT_EQ(call("nvmlDeviceSetComputeMode", card_at(0), 3), nvml::no_permission);
    return;
  }
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", card_at(0), 3), nvml::success);
  EXPECT_EQ(value<int>("nvmlDeviceGetComputeMode", card_at(0)), 3);
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", card_at(0), 9), nvml::invalid_argument);
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", card_at(0), 0), nvml::success);
}

}  // namespace
