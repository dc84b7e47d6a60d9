// The fixture changes under a program: temperatures, lost and new cards, a driver that goes and comes, a broken file.
#include <thread>

#include "library_under_test.hpp"

namespace {

using namespace nvml_test;

return_code temperature(device card, unsigned& celsius) { return call("nvmlDeviceGetTemperature", card, 0, &celsius); }
unsigned count() {
  unsigned out = 99;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &out), nvml::success);
  return out;
}

TEST(state, calls_before_init_and_after_shutdown_are_refused) {
  const node node("t4");
  unsigned number = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &number), nvml::uninitialized);
  EXPECT_EQ(call("nvmlShutdown"), nvml::uninitialized);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::success);
  EXPECT_EQ(call("nvmlInitWithFlags", 0U), nvml::success);
  EXPECT_EQ(call("nvmlShutdown"), nvml::success);
  EXPECT_EQ(count(), 1U);  // one user is left
  EXPECT_EQ(call("nvmlShutdown"), nvml::success);
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &number), nvml::uninitialized);
}

TEST(state, a_changed_fact_is_seen_at_the_next_call) {
  session session("t4");
  const auto card = card_at(0);
  auto content = session.node.content();
  for (const unsigned degrees : {40U, 91U}) {
    content["cards"][0]["temperature_c"] = degrees;
    session.node.replace(content);
    unsigned celsius = 0;
    EXPECT_EQ(temperature(card, celsius), nvml::success);
    EXPECT_EQ(celsius, degrees);
  }
}

TEST(state, a_null_fact_is_not_supported_and_a_wanted_error_is_returned) {
  session session("t4");
  auto content = session.node.content();
  content["cards"][0]["memory_temperature_c"] = nullptr;
  content["cards"][0]["power_usage_mw"] = nullptr;
  content["cards"][0]["errors"] = {{"nvmlDeviceGetTemperature", "unknown"}, {"nvmlDeviceGetUUID", "gpu_is_lost"}};
  session.node.replace(content);
  unsigned number = 0;
  char uuid[96];
  EXPECT_EQ(call("nvmlDeviceGetPowerUsage", card_at(0), &number), nvml::not_supported);
  EXPECT_EQ(temperature(card_at(0), number), nvml::unknown);
  EXPECT_EQ(call("nvmlDeviceGetUUID", card_at(0), &uuid[0], 96U), nvml::gpu_is_lost);
}

TEST(state, a_card_that_falls_off_the_bus_stays_in_the_count_until_the_next_init) {
  session session("t4_pair");
  const auto card = card_at(1);
  auto content = session.node.content();
  content["cards"][1]["lost"] = true;
  session.node.replace(content);
  unsigned celsius = 0;
  EXPECT_EQ(temperature(card, celsius), nvml::gpu_is_lost);
  EXPECT_EQ(temperature(card_at(0), celsius), nvml::success);
  EXPECT_EQ(count(), 2U);
  device handle = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &handle), nvml::gpu_is_lost);
  EXPECT_EQ(call("nvmlShutdown"), nvml::success);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::success);
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &handle), nvml::invalid_argument);
}

TEST(state, a_card_that_is_plugged_in_is_seen_after_the_next_init_and_handles_stay) {
  session session("t4_pair");
  const auto both = session.node.content();
  auto single = both;
  single["cards"].erase(0);
  session.node.replace(single);
  EXPECT_EQ(call("nvmlShutdown"), nvml::success);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::success);
  const auto card = card_at(0);
  EXPECT_EQ(count(), 1U);
  session.node.replace(both);
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(call("nvmlShutdown"), nvml::success);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::success);
  EXPECT_EQ(count(), 2U);
  EXPECT_EQ(card_at(1), card);  // a lower address came before it
}

TEST(state, a_driver_that_is_reloaded_is_away_for_a_time) {
  session session("t4");
  const auto card = card_at(0);
  const auto loaded = session.node.content();
  auto away = loaded;
  away["driver"] = nullptr;
  session.node.replace(away);
  unsigned celsius = 0;
  EXPECT_EQ(temperature(card, celsius), nvml::driver_not_loaded);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::driver_not_loaded);
  session.node.replace(loaded);
  EXPECT_EQ(temperature(card, celsius), nvml::success);
}

TEST(state, a_kernel_module_of_another_version_refuses_init) {
  node node("t4");
  auto content = node.content();
  content["driver"]["kernel_module"] = "535.154.05";
  node.replace(content);
  EXPECT_EQ(call("nvmlInit_v2"), nvml::version_mismatch);
}

struct broken_case {
  const char* name;
  const char* pointer;
  json value;
  const char* message;
  friend void PrintTo(const broken_case& broken, std::ostream* stream) { *stream << broken.name; }
};
class broken : public testing::TestWithParam<broken_case> {};

TEST_P(broken, the_call_fails_and_one_line_names_file_place_and_what_is_allowed) {
  const auto& expected = GetParam();
  session session("a100_mig");
  const auto card = card_at(0);
  const auto good = session.node.content();
  auto content = good;
  content[json::json_pointer(expected.pointer)] = expected.value;
  session.node.replace(content);
  testing::internal::CaptureStderr();
  unsigned celsius = 0;
  EXPECT_EQ(temperature(card, celsius), nvml::unknown);
  EXPECT_EQ(temperature(card, celsius), nvml::unknown);
  const auto line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line,
            "libnvidia-ml stand-in: " + (session.node.folder / "node.json").string() + ": " + expected.message + "\n");
  session.node.replace(good);
  EXPECT_EQ(temperature(card, celsius), nvml::success);
}

INSTANTIATE_TEST_SUITE_P(
    fixtures, broken,
    testing::Values(
        broken_case{"wrong_type", "/cards/0/temperature_c", "hot",
                    R"(/cards/0/temperature_c: "hot" is not allowed; allowed are a whole number from 0)"},
        broken_case{
            "wrong_word", "/cards/1/compute_mode", "fast",
            R"(/cards/1/compute_mode: "fast" is not allowed; allowed are default, exclusive_thread, prohibited, )"
            "exclusive_process"},
        broken_case{
            "unknown_model", "/cards/0/model", "t5",
            R"(/cards/0/model: "t5" is not allowed; allowed are a100_sxm4_80gb, h100_sxm5_80gb, l40s, rtx4090, )"
            "t4, v100_sxm2_16gb"},
        broken_case{"unknown_key", "/driver/versoin", "550",
                    "/driver/versoin: unknown key; allowed are version, cuda, kernel_module, branch"},
        broken_case{"unknown_profile", "/cards/0/mig/instances/0/profile", "9g.90gb",
                    R"(/cards/0/mig/instances/0/profile: "9g.90gb" is not allowed; allowed are 1g.10gb, 1g.10gb+me, )"
                    "1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"}),
    [](const auto& broken) { return std::string(broken.param.name); });

TEST(state, a_file_that_is_no_json_fails_with_its_line) {
  session session("t4");
  session.node.replace(std::string("{\"cards\": [\n  oops"));
  testing::internal::CaptureStderr();
  unsigned number = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &number), nvml::unknown);
  const auto line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find("parse error at line 2"), std::string::npos) << line;
  EXPECT_NE(line.find("allowed is one JSON object"), std::string::npos) << line;
}

TEST(state, handles_of_others_and_null_targets_are_refused) {
  const session session("t4");
  unsigned celsius = 0;
  int stranger = 0;
  EXPECT_EQ(temperature(nullptr, celsius), nvml::invalid_argument);
  EXPECT_EQ(temperature(reinterpret_cast<device>(&stranger), celsius), nvml::invalid_argument);
  EXPECT_EQ(call("nvmlDeviceGetTemperature", card_at(0), 0, static_cast<unsigned*>(nullptr)), nvml::invalid_argument);
  char small[4];
  EXPECT_EQ(call("nvmlDeviceGetName", card_at(0), &small[0], 4U), nvml::insufficient_size);
}

TEST(state, threads_read_while_the_file_is_replaced) {
  session session("a100x8");
  const auto content = session.node.content();
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < 4; ++index)
    threads.emplace_back([index] {
      for (int round = 0; round < 200; ++round) {
        unsigned celsius = 0;
        EXPECT_EQ(temperature(card_at(index), celsius), nvml::success);
        EXPECT_EQ(text("nvmlDeviceGetName", card_at(7 - index)), "NVIDIA A100-SXM4-80GB");
      }
    });
  for (int round = 0; round < 20; ++round) session.node.replace(content);
  for (auto& thread : threads) thread.join();
}

}  // namespace
