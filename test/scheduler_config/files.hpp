#pragma once
// The files of test/golden/scheduler_config.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler_config/judge/verdict.hpp"

namespace reconcilers::scheduler_config {

inline const std::filesystem::path golden_files = std::filesystem::path(TEST_DATA) / "golden/scheduler_config";

inline std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::vector<std::filesystem::path> files_in(std::string_view folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& one : std::filesystem::directory_iterator(golden_files / folder)) {
    if (one.path().extension() != ".txt") out.push_back(one.path());
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
  const auto table = yaml::parse(slurp(golden_files / "mutants.yaml"));
  std::vector<mutant> out;
  for (const auto* row : table->documents.at(0)->items) {
    const std::string from(yaml::text_at(row, "from")), to(yaml::text_at(row, "to"));
    auto& made = out.emplace_back();
    made.name = yaml::text_at(row, "name");
    made.code = yaml::text_at(row, "code");
    if (const auto only = yaml::text_at(row, "only"); !only.empty()) made.only = only == "1.30" ? 30 : 36;
    made.text = base;
    const auto at = base.find(from);
    if (at == base.npos) throw std::runtime_error(made.name + ": no such text in base.yaml");
    made.text.replace(at, from.size(), to);
    made.text += yaml::text_at(row, "append");
  }
  return out;
}

}  // namespace reconcilers::scheduler_config
