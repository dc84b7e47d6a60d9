#pragma once
// A machine with a driver: the stand-in of test/nvml below a root of its own, and a fixture that a test may change.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace agent::cards {

inline std::string text_at(const nlohmann::json& content, const std::string& path) {
  return content.at(nlohmann::json::json_pointer(path)).get<std::string>();
}

class machine {
 public:
  explicit machine(const std::string& fixture) {
    namespace files = std::filesystem;
    auto pattern = (files::temp_directory_path() / "cards.XXXXXX").string();
    root = mkdtemp(pattern.data());
    files::create_directories(root / "usr/lib64");
    files::create_directories(root / "gpus");
    files::create_symlink(files::absolute(NVML_LIBRARY), root / "usr/lib64/libnvidia-ml.so.1");
    files::copy("test/nvml/fixtures/models.json", root / "models.json");
    files::copy("test/nvml/fixtures/" + fixture + ".json", root / "node.json");
    setenv("QM_NVML_FIXTURE", (root / "node.json").c_str(), 1);
  }
  ~machine() { std::filesystem::remove_all(root); }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  nlohmann::json content() const { return nlohmann::json::parse(std::ifstream(root / "node.json")); }
  /// As tests of a running program do: a new file is renamed over the old one.
  void replace(const nlohmann::json& content) const {
    std::ofstream(root / "new.json") << content.dump();
    std::filesystem::rename(root / "new.json", root / "node.json");
  }

  std::filesystem::path root;
};

}  // namespace agent::cards
