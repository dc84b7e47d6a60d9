// What nvidia-smi prints for the fixtures, and its exit codes.
#include <gmock/gmock.h>
#include <unistd.h>

#include "test/facts_in.hpp"

#include "library_under_test.hpp"

namespace {

using namespace nvml_test;
using testing::HasSubstr;

TEST(smi, lists_cards_and_mig_devices) {
  const node node("a100_mig");
  const auto [code, output] = smi("-L");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(output,
            "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a1160000-0000-4000-8000-000000000000)\n"
            "  MIG 3g.40gb      Device  0: (UUID: MIG-a1160000-0000-5000-8000-000000000001)\n"
            "  MIG 1g.10gb      Device  1: (UUID: MIG-a1160000-0000-5000-8000-000000000002)\n"
            "  MIG 1g.10gb      Device  2: (UUID: MIG-a1160000-0000-5000-8000-000000000003)\n"
            "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-a1160000-0000-4000-8000-000000000001)\n");
}

TEST(smi, answers_queries_with_and_without_header_and_units) {
  const node node("t4");
  EXPECT_EQ(
      smi("--query-gpu=index,name,memory.total,pci.bus_id,compute_cap --format=csv").output,
      "index, name, memory.total [MiB], pci.bus_id, compute_cap\n0, Tesla T4, 15360 MiB, 00000000:00:04.0, 7.5\n");
  EXPECT_EQ(smi("--query-gpu=power.draw,mig.mode.current,ecc.mode.current --format=csv,noheader,nounits").output,
            "9.50, [N/A], Enabled\n");
}

TEST(smi, prints_the_table_of_cards_and_processes) {
  node node("a100_mig");
  auto content = node.content();
  content["cards"][0]["processes"] = {
      {{"pid", 4711}, {"name", "python3"}, {"memory_mib", 1024}, {"gpu_instance", 1}, {"compute_instance", 0}}};
  node.replace(content);
  const auto [code, output] = smi("");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, HasSubstr("Driver Version: 550.54.15"));
  EXPECT_THAT(output, HasSubstr("CUDA Version: 12.4"));
  EXPECT_THAT(output, HasSubstr("61MiB /  81920MiB"));
  EXPECT_THAT(output, HasSubstr("Enabled |"));
  EXPECT_THAT(output, HasSubstr("4711      C   python3"));
}

TEST(smi, draws_how_cards_are_connected) {
  {
    const node node("a100x8");
    EXPECT_THAT(smi("topo -m").output, HasSubstr("GPU0\t X \tNV12\tNV12"));
    EXPECT_THAT(smi("topo -m").output, HasSubstr("48-63,176-191\t3\n"));
  }
  {
    const node node("t4_pair");
    EXPECT_EQ(smi("topo -m").output,
              "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-7\t0\nGPU1\tPHB\t X \t0-7\t0\n");
  }
  const node node("l40s");
  EXPECT_THAT(smi("topo -m").output, HasSubstr("GPU0\t X \tNODE\tSYS\tSYS"));
}

TEST(smi, chooses_cards_by_index_uuid_and_address) {
  const node node("t4_pair");
  const std::string query = " --query-gpu=index --format=csv,noheader";
  EXPECT_EQ(smi("-i 1" + query).output, "1\n");
  EXPECT_EQ(smi("-i GPU-74200000-0000-4000-8000-000000000001" + query).output, "1\n");
  EXPECT_EQ(smi("-i 00000000:00:05.0" + query).output, "1\n");
  EXPECT_EQ(smi("-i 5" + query).code, 6);
}

TEST(smi, checks_settings_and_says_what_it_set) {
  const node node("t4");
  EXPECT_EQ(smi("-c FAST").code, 2);
  if (geteuid() != 0) {
    EXPECT_EQ(smi("-pm 1").code, 4) << "insufficient permissions";
    return;
  }
  EXPECT_THAT(smi("-c EXCLUSIVE_PROCESS").output,
              words::has_in_order({"compute mode to EXCLUSIVE_PROCESS", "GPU 00000000:00:04.0.\n", "All done.\n"}));
  EXPECT_THAT(smi("-pm 1").output,
              words::has_in_order({"persistence mode to Enabled", "GPU 00000000:00:04.0.\n", "All done.\n"}));
}

TEST(smi, ends_with_the_codes_of_the_real_program) {
  node node("t4_pair");
  EXPECT_EQ(smi("--fast").code, 2);
  EXPECT_THAT(smi("--fast").output, words::has_in_order({"Option --fast is not recognized", "'nvidia-smi -h'"}));
  EXPECT_EQ(smi("--query-gpu=speed --format=csv").code, 2);
  EXPECT_EQ(smi("--query-gpu=name").code, 2);
  EXPECT_EQ(smi("--help").code, 0);
  auto content = node.content();
  content["cards"][0]["errors"] = {{"nvmlDeviceGetUUID", "gpu_is_lost"}};
  node.replace(content);
  EXPECT_EQ(smi("-L").code, 15);
  content["driver"] = nullptr;
  node.replace(content);
  EXPECT_EQ(smi("").code, 9);
  EXPECT_THAT(smi("").output, HasSubstr("couldn't communicate with the NVIDIA driver"));
}

}  // namespace
