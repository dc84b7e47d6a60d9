#include "agent/cards/nvml.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <filesystem>

#include "text/escape.hpp"
#include "text/messages.hpp"

namespace agent::cards {
namespace {

/// Where drivers are installed: distributions, the GPU Operator's driver container, and node images of clouds.
constexpr const char* folders[] = {"usr/lib/x86_64-linux-gnu",
                                   "usr/lib/aarch64-linux-gnu",
                                   "usr/lib64",
                                   "usr/lib",
                                   "usr/lib/wsl/lib",
                                   "usr/local/nvidia/lib64",
                                   "run/nvidia/driver/usr/lib/x86_64-linux-gnu",
                                   "run/nvidia/driver/usr/lib/aarch64-linux-gnu",
                                   "run/nvidia/driver/usr/lib64",
                                   "home/kubernetes/bin/nvidia/lib64",
                                   "opt/nvidia/lib64"};
constexpr const char* file_name = "libnvidia-ml.so.1";

/// The loader finds what was loaded before by its name, also when its file has gone with the driver.
bool has_file(void* handle) {
  link_map* map = nullptr;
  std::error_code ignored;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && std::filesystem::exists(map->l_name, ignored);
}

}  // namespace

std::expected<nvml_library, std::string> nvml_library::load(const std::string& root) {
  if (getauxval(AT_BASE) == 0) return std::unexpected(text::message("nvml.static_program", text::language::en));
  // By its path first: where the driver was exchanged, the loader knows the earlier library by the same name.
  std::string last;
  for (const auto* folder : folders) {
    const auto path = std::filesystem::path(root) / folder / file_name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return nvml_library(handle);
    last = dlerror();
  }
  // In a container of the NVIDIA runtime the library is where the loader looks by itself.
  void* const handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (handle && has_file(handle)) return nvml_library(handle);
  if (last.empty())
    last = handle ? text::message("nvml.file_gone", text::language::en, {{"file", std::string(file_name)}})
                  : std::string(dlerror());
  return std::unexpected(
      text::utf8_clean(text::message("nvml.no_driver", text::language::en, {{"root", root}, {"error", last}}), 8192));
}

void* nvml_library::find(const char* name) const { return dlsym(handle_, name); }

std::string nvml_library::error_text(nvml::return_code code) const {
  const auto words = reinterpret_cast<const char* (*)(nvml::return_code)>(find("nvmlErrorString"));
  return words ? text::utf8_clean(words(code), 200) : "NVML error " + std::to_string(code);
}

}  // namespace agent::cards
