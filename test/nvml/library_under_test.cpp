#include "library_under_test.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace nvml_test {
namespace {

namespace files = std::filesystem;

std::string slurp(const files::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string text(const char* name, device card) {
  char out[96] = "";
  EXPECT_EQ(call(name, card, &out[0], 96U), nvml::success) << name;
  return out;
}

device card_at(unsigned index) {
  device card = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", index, &card), nvml::success) << index;
  return card;
}

device mig_at(device card, unsigned index) {
  device mig = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetMigDeviceHandleByIndex", card, index, &mig), nvml::success) << index;
  return mig;
}

node::node(const std::string& name) {
  auto pattern = (files::temp_directory_path() / "nvml.XXXXXX").string();
  folder = mkdtemp(pattern.data());
  files::copy(files::path(NVML_FIXTURES) / "models.json", folder / "models.json");
  files::copy(files::path(NVML_FIXTURES) / (name + ".json"), folder / "node.json");
  setenv("QM_NVML_FIXTURE", (folder / "node.json").c_str(), 1);
}

node::~node() { files::remove_all(folder); }

json node::content() const { return json::parse(slurp(folder / "node.json")); }

void node::replace(const json& content) { replace(content.dump()); }

void node::replace(const std::string& content) {
  std::ofstream(folder / "new.json") << content;
  files::rename(folder / "new.json", folder / "node.json");
}

session::session(const std::string& name) : node(name) { EXPECT_EQ(call("nvmlInit_v2"), nvml::success); }
session::~session() { EXPECT_EQ(call("nvmlShutdown"), nvml::success); }

outcome smi(const std::string& arguments) {
  const auto library = files::path(NVML_LIBRARY).parent_path().string();
  const auto command = "LD_LIBRARY_PATH=" + library + " " NVML_SMI " " + arguments + " 2>&1";
  auto* const pipe = popen(command.c_str(), "r");
  outcome out{-1, {}};
  for (int sign = std::fgetc(pipe); sign != EOF; sign = std::fgetc(pipe)) out.output += static_cast<char>(sign);
  out.code = WEXITSTATUS(pclose(pipe));
  return out;
}

}  // namespace nvml_test
