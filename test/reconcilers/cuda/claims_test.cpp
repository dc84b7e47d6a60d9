// The lint of claims finds each of those the manuals make and this product does not. The page of those it makes is made
// of the tests.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "test/facts_in.hpp"

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

/// What claims.sh prints of the tree in `folder`. Findings end with "claims.sh found something".
std::string claims_of(const std::filesystem::path& folder, const std::string& option = "") {
  const auto output = folder / "output";
  const auto command = std::string(SOURCE_ROOT) + "/test/claims.sh " + option + " " + folder.string() + " >" +
                       output.string() + " || echo claims.sh found something >>" + output.string();
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT: our own script
  return text_of(output);
}

TEST(claims, the_page_has_each_row_with_its_tests_and_what_does_not_fit_is_named) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("claims-tree-" + std::to_string(getpid()));
  const auto put = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << text;
  };
  put("docs/claims.md", "");
  put("test/claims.txt", "# rows\nS1 One.\nS2 Two. | Not tried.\nF42b Three.\n");
  put("test/CMakeLists.txt",
      "lane(f 1.37 short 1 8)\nboth(e2e 1 1 8)\nlane(g 1.30 ci 1 8)\nlane(gg - all 1 8 SCRIPT g/run.sh)\n");
  put("test/g/g_test.go", "func TestS1_on_the_oldest(t *testing.T) {\n");
  put("test/a_test.cpp", "TEST(a, S1_is_so) {\n}\nTEST_F(a,\n       F42b_S1_has_a_long_name) {\n}\n");
  put("test/b_test.go", "func TestS1_goes_on_long(t *testing.T) {\n");
  put("test/e2e/c/chainsaw-test.yaml", "metadata:\n  name: s1-c\n");
  put("bench/d/run.sh", "#!/bin/sh\n# Rows of docs/claims.md: F42b.\n");
  EXPECT_EQ(claims_of(folder), "");
  EXPECT_EQ(claims_of(folder, "--check"), "");
  const auto page = text_of(folder / "docs/claims.md");
  for (const auto* part :
       {"| S1 | One. | [a_test.cpp](../test/a_test.cpp): `a.S1_is_so`, `a.F42b_S1_has_a_long_name`<br>"
        "[b_test.go](../test/b_test.go): `TestS1_goes_on_long` (long)<br>"
        "[e2e/c/chainsaw-test.yaml](../test/e2e/c/chainsaw-test.yaml): `s1-c`<br>"
        "[g/g_test.go](../test/g/g_test.go): `TestS1_on_the_oldest` (ci) |",
        "| F42b | Three. | [bench/d/run.sh](../bench/d/run.sh)<br>[a_test.cpp](../test/a_test.cpp): `a.F42b_",
        "| S2 | Two. | Not tried. |"})
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;

  put("test/a_test.cpp", "TEST(a, S9_is_not_there) {\n}\nTEST(a, S2_is_so) {\n}\n");
  put("bench/d/run.sh", "#!/bin/sh\n");
  EXPECT_THAT(
      claims_of(folder, "--check"),
      words::has_in_order({"claims: test/a_test.cpp: a.S9_is_not_there ", "S9", "\nclaims: test/claims.txt:3: S2 ",
                           "\nclaims: test/claims.txt:4: ", "F42b", "\nclaims: docs/claims.md ", "./dev fmt\n"}));
  EXPECT_EQ(text_of(folder / "docs/claims.md"), page) << "--check writes nothing";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace reconcilers::cuda
