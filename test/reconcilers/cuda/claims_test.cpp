// The lint of claims finds each of those the manuals make and this product does not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace reconcilers::cuda {
namespace {

bool refused(const std::string& line) {
  const auto file = std::filesystem::path(testing::TempDir()) / ("claims-" + std::to_string(getpid()) + ".md");
  std::ofstream(file) << "# Title\n\n" << line << "\n";
  const auto command = std::string(SOURCE_ROOT) + "/test/forbidden_claims.sh " + file.string() + " >/dev/null";
  const bool found = std::system(command.c_str()) != 0;  // NOLINT: our own script
  std::filesystem::remove(file);
  return found;
}

TEST(claims, S10_S18_S79_claims_we_do_not_make_are_refused) {
  for (const auto* line :
       {"PCIe passthrough with IOMMU isolation", "needs SR-IOV", "needs SRIOV support", "latency falls by 30-50 %",
        "30–50% lower latency", "30% to 50% faster", "快 30% 到 50%", "3x QPS", "gives 3× QPS", "three times the QPS",
        "QPS rises by 3x", "QPS 提升 3 倍", "share a remote GPU", "支持远程 GPU"})
    EXPECT_TRUE(refused(line)) << line;
}

TEST(claims, what_is_said_openly_and_what_only_looks_alike_is_let_be) {
  for (const auto* line : {"remote GPUs are not in scope", "远程 GPU 不在范围内", "between 30 and 500 nodes",
                           "QPS of 50", "1.3x", "the ratio is 3x", "exclusive device nodes and cgroup"})
    EXPECT_FALSE(refused(line)) << line;
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

TEST(claims, S79_the_documents_say_that_cards_of_other_machines_are_not_in_scope) {
  EXPECT_NE(text_of(std::filesystem::path(SOURCE_ROOT) / "docs/modules.md").find("Remote GPUs are not in scope"),
            std::string::npos);
}

TEST(claims, the_table_tells_what_ran_in_part_and_of_which_commit_it_is) {
  const auto folder = std::filesystem::path(testing::TempDir());
  std::ofstream(folder / "junit.xml") << R"(<testcase name="kube.a.S1_all" status="run">)" << "\n"
                                      << R"(<testcase name="kube.a.S2_one" status="run">)" << "\n"
                                      << R"(<testcase name="kube.a.S2_other" status="notrun">)" << "\n"
                                      << R"(<testcase name="kube.a.S3_none" status="disabled">)" << "\n"
                                      << R"(<testcase name="kube.a.S4_good" status="run">)" << "\n"
                                      << R"(<testcase name="kube.a.S4_bad" status="fail">)" << "\n";
  const auto output = folder / "table.md";
  const auto command = std::string(SOURCE_ROOT) + "/test/claims.sh " + (folder / "junit.xml").string() + " " +
                       output.string() + " >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT: our own script
  const auto table = text_of(output);
  for (const auto* part : {"Commit ", "| S1 | `kube.a.S1_all` | passed (1) |", "| partly run (1 of 2) |",
                           "| `kube.a.S3_none` | not run |", "| `kube.a.S4_good`<br>`kube.a.S4_bad` | FAILED |"})
    EXPECT_NE(table.find(part), std::string::npos) << part << " in\n" << table;
}

}  // namespace
}  // namespace reconcilers::cuda
