// test/golden/explain/pods.txt and snapshots.txt: pods as people write them and damaged files of a cluster, with what
// simulate says of each. QM_GOLDEN=write writes the answers.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "cli/cluster/snapshot.hpp"
#include "cli/explain/simulate.hpp"
#include "test/english.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

const std::filesystem::path explain_cases = std::filesystem::path(TEST_DATA) / "golden" / "explain";

std::string file_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Exit code and table, or why there is none.
std::string simulated(const std::string& snapshot, const std::string& pods, text::language locale) {
  picture cluster;
  if (const auto read = read_snapshot(snapshot, cluster); !read) return "1\n" + words_of(read.error(), locale) + "\n";
  const auto file = text::yaml::read("pods.yaml", pods);
  if (!file) return "2\n" + words_of(text::yaml::unreadable(file.error()), locale) + "\n";
  std::vector<tried_pod> all;
  for (const auto& entry : manifests_in(*file))
    if (const auto problem = add_pods(entry, "", all, locale); !problem.empty()) return "2\n" + problem + "\n";
  namespace_limits limits(locale);
  std::ostringstream out;
  const auto rc = simulate(cluster, limits, all, {"table", locale == text::language::zh ? "zh" : "en"}, out);
  return std::to_string(rc) + "\n" + out.str();
}

/// A file of cases: "== NAME", the case, "-- ANSWER" with the lines after it.
void compare_cases(const std::string& name, std::size_t least,
                   const std::function<std::string(const std::string& text, text::language locale)>& answer) {
  std::istringstream file(file_text(explain_cases / name));
  std::string written, line, title, text, expected;
  bool in_answer = false;
  std::size_t count = 0;
  const auto finish = [&] {
    if (title.empty()) return;
    const auto is = answer(text, text::language::en), chinese = answer(text, text::language::zh);
    EXPECT_EQ(is, expected) << title;
    EXPECT_FALSE(words::has_english_sentence(chinese)) << title << ": " << chinese;
    for (const char c : is) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << title;
    written += "== " + title + "\n" + text + "-- " + is;
    ++count;
  };
  while (std::getline(file, line)) {
    if (line.starts_with("== ")) {
      finish();
      title = line.substr(3), text.clear(), expected.clear(), in_answer = false;
    } else if (title.empty()) {
      written += line + "\n";
    } else if (line.starts_with("-- ")) {
      in_answer = true;
      expected = line.substr(3) + "\n";
    } else {
      (in_answer ? expected : text) += line + "\n";
    }
  }
  finish();
  EXPECT_GE(count, least);
  const auto* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(explain_cases / name) << written;
}

TEST(simulate_golden, pods_as_people_write_them) {
  const auto cluster = file_text(explain_cases / "cluster.json");
  compare_cases("pods.txt", 60,
                [&](const std::string& pods, text::language locale) { return simulated(cluster, pods, locale); });
}

TEST(simulate_golden, damaged_files_of_a_cluster) {
  const auto cluster = file_text(explain_cases / "cluster.json");
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: lab}\nspec: {containers: [{name: c, resources: "
      "{limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 8}}}]}\n";
  // Two lines: what is replaced, and by what. Nothing to replace: the whole file.
  compare_cases("snapshots.txt", 40, [&](const std::string& text, text::language locale) {
    const auto end = text.find('\n');
    const auto before = text.substr(0, end), after = text.substr(end + 1, text.size() - end - 2);
    auto snapshot = cluster;
    if (before.empty()) return simulated(after, pod, locale);
    const auto place = snapshot.find(before);
    EXPECT_NE(place, snapshot.npos) << before;
    if (place != snapshot.npos) snapshot.replace(place, before.size(), after);
    return simulated(snapshot, pod, locale);
  });
}

TEST(simulate, a_snapshot_that_is_nested_too_deep_is_none) {
  picture cluster;
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(
      read_snapshot(R"({"apiVersion":"quartermaster.io/v1alpha1","kind":"Snapshot","pods":)" + deep + "}", cluster));
}

}  // namespace
}  // namespace cli
