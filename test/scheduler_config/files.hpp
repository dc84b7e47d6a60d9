#pragma once
// The files of test/golden/scheduler_config.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler_config/judge/verdict.hpp"

namespace scheduler_config {

inline const std::filesystem::path golden_files = std::filesystem::path(TEST_DATA) / "golden/scheduler_config";

inline std::string slurp(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream out;
  out << stream.rdbuf();
  return out.str();
}

inline std::vector<std::filesystem::path> files_in(std::string_view folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(golden_files / folder)) {
    if (entry.path().extension() != ".txt") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

/// One edit of base.yaml, as test/scheduler_config makes it too.
struct mutant {
  std::string name, text, code;
  std::string before;         ///< the code of versions older than `since`
  int since = 0, until = 99;  ///< minor versions

  std::string code_on(int minor) const { return minor < since ? before : minor > until ? std::string() : code; }
};

inline std::vector<mutant> mutants() {
  const auto base = slurp(golden_files / "base.yaml");
  const auto table = text::yaml::parse(slurp(golden_files / "mutants.yaml"));
  std::vector<mutant> out;
  for (const auto* row : table->documents.at(0)->items) {
    const std::string before(text::yaml::text_at(row, "from")), after(text::yaml::text_at(row, "to"));
    auto& made = out.emplace_back();
    made.name = text::yaml::text_at(row, "name");
    made.code = text::yaml::text_at(row, "code");
    made.before = text::yaml::text_at(row, "before");
    if (const auto since = text::yaml::text_at(row, "since"); !since.empty())
      made.since = std::stoi(std::string(since));
    if (const auto until = text::yaml::text_at(row, "until"); !until.empty())
      made.until = std::stoi(std::string(until));
    made.text = base;
    const auto match = base.find(before);
    if (match == base.npos) throw std::runtime_error(made.name + ": no such text in base.yaml");
    made.text.replace(match, before.size(), after);
    made.text += text::yaml::text_at(row, "append");
  }
  return out;
}

}  // namespace scheduler_config
