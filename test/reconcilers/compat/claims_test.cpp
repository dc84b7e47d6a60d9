// The lint of claims finds each of those the manuals make and this product does not.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace reconcilers::compat {
namespace {

bool refused(const std::string& line) {
  const auto file = std::filesystem::path(testing::TempDir()) / "claims.md";
  std::ofstream(file) << "# Title\n\n" << line << "\n";
  const auto command = std::string(SOURCE_ROOT) + "/test/forbidden_claims.sh " + file.string() + " >/dev/null";
  return std::system(command.c_str()) != 0;  // NOLINT: our own script
}

TEST(claims, S10_S18_S79_claims_we_do_not_make_are_refused) {
  for (const auto* line :
       {"PCIe passthrough with IOMMU isolation", "needs SR-IOV", "needs SRIOV support", "latency falls by 30-50 %",
        "30–50% lower latency", "30% to 50% faster", "快 30% 到 50%", "3x QPS", "gives 3× QPS", "three times the QPS",
        "QPS rises by 3x", "QPS 提升 3 倍", "share a remote GPU", "支持远程 GPU"})
    EXPECT_TRUE(refused(line)) << line;
}

TEST(claims, S79_what_is_said_openly_and_what_only_looks_alike_is_let_be) {
  for (const auto* line : {"remote GPUs are not in scope", "远程 GPU 不在范围内", "between 30 and 500 nodes",
                           "QPS of 50", "1.3x", "the ratio is 3x", "exclusive device nodes and cgroup"})
    EXPECT_FALSE(refused(line)) << line;
}

}  // namespace
}  // namespace reconcilers::compat
