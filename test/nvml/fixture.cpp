#include "fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "schema.hpp"

namespace nvml {
namespace {

using nlohmann::json;

// Reads the file and notes its identity. The identity is taken first: a file that is replaced in between is read again
// at the next call.
json load(const std::string& path, fixture& out) {
  out.files.push_back(identity(path));
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": the file cannot be read; QM_NVML_FIXTURE names the fixture");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw std::runtime_error(path + ": " + error.what() + "; allowed is one JSON object");
  }
}

json models_of(const json& node, const std::string& path, fixture& out) {
  if (!node.contains("models")) return json::object();
  if (!node["models"].is_string()) throw std::runtime_error(path + ": /models: allowed is the name of a file");
  return load(path.substr(0, path.rfind('/') + 1) + node["models"].get<std::string>(), out);
}

json merged(const json& card, const json& defaults, const json& models, const std::string& place) {
  json out = json::object();
  if (card.contains("model")) {
    const auto model = models.find(card["model"].is_string() ? card["model"].get<std::string>() : "");
    if (model == models.end()) {
      std::string names;
      for (const auto& [name, facts] : models.items()) names += (names.empty() ? "" : ", ") + name;
      throw std::runtime_error(place + "/model: " + card["model"].dump() + " is not allowed; allowed are " + names);
    }
    out.update(*model);
  }
  out.update(defaults);
  out.update(card);
  out.erase("source");  // models say where their facts come from
  return out;
}

void merge_cards(json& node, const json& models, const std::string& path) {
  if (!node.is_object() || !node.contains("cards") || !node["cards"].is_array()) return;
  const auto defaults = node.value("defaults", json::object());
  for (std::size_t index = 0; auto& card : node["cards"]) {
    const auto place = path + ": /cards/" + std::to_string(index++);
    if (!card.is_object() || !defaults.is_object()) throw std::runtime_error(place + ": allowed is an object");
    card = merged(card, defaults, models, place);
  }
}

}  // namespace

file_identity identity(const std::string& path) {
  struct statx file{};
  // Not stat(): its symbol is newer than the oldest C library that this must load with.
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_MTIME | STATX_SIZE, &file) != 0) return {.path = path};
  return {path, file.stx_ino, file.stx_size, file.stx_mtime.tv_sec, file.stx_mtime.tv_nsec};
}

std::string fixture_path() {
  const char* path = std::getenv("QM_NVML_FIXTURE");
  return path && *path ? path : "/run/nvidia-standin/node.json";
}

fixture read_fixture(const std::string& path) {
  fixture out;
  try {
    out.node = load(path, out);
    merge_cards(out.node, models_of(out.node, path, out), path);
    if (const auto text = fault_in(out.node); !text.empty()) throw std::runtime_error(path + ": " + text);
  } catch (const std::exception& error) {
    out.fault = error.what();
    return out;
  }
  auto& cards = out.node["cards"].get_ref<json::array_t&>();
  std::ranges::sort(cards, {}, [](const json& card) { return card["pci_bus_id"].get<std::string>(); });
  return out;
}

}  // namespace nvml
