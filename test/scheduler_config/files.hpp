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
  int only = 0;  ///< minor; 0: both

  std::string code_on(int minor) const { return only == 0 || only == minor ? code : std::string(); }
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
    if (const auto only = text::yaml::text_at(row, "only"); !only.empty()) made.only = only == "1.30" ? 30 : 36;
    made.text = base;
    const auto match = base.find(before);
    if (match == base.npos) throw std::runtime_error(made.name + ": no such text in base.yaml");
    made.text.replace(match, before.size(), after);
    made.text += text::yaml::text_at(row, "append");
  }
  return out;
}

}  // namespace scheduler_config
