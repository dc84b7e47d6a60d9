#include "nvml.hpp"

#include <dlfcn.h>

namespace smi {
namespace {

constexpr int driver_exit = 9, library_exit = 12, lost_exit = 15, other_exit = 255;

}  // namespace

library::library() : handle_(dlopen("libnvidia-ml.so.1", RTLD_LAZY)) {
  if (!handle_)
    throw end{
        library_exit,
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display "
        "Driver is properly installed and present in your system."};
  const auto code = call("nvmlInit_v2");
  if (code == nvml::driver_not_loaded)
    throw end{driver_exit,
              "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
              "NVIDIA driver is installed and running."};
  if (code == nvml::version_mismatch) throw end{18, "Failed to initialize NVML: Driver/library version mismatch"};
  if (code) throw end{other_exit, "Failed to initialize NVML: " + text_of(code)};
}

library::~library() {
  if (handle_) call("nvmlShutdown");
}

void* library::symbol(const char* name) const { return dlsym(handle_, name); }

std::string library::text_of(return_code code) const {
  using function = const char* (*)(return_code);
  const auto address = reinterpret_cast<function>(symbol("nvmlErrorString"));
  return address ? address(code) : "Unknown Error";
}

void library::check(return_code code, device card) const {
  if (code != nvml::gpu_is_lost) return;
  nvml::pci_info info{};
  const auto place = call("nvmlDeviceGetPciInfo_v3", card, &info) ? std::string() : std::string(info.bus_id_legacy);
  throw end{lost_exit, "Unable to determine the device handle for GPU" + place + ": " + text_of(code)};
}

std::optional<std::string> library::text(const char* name, device card) const {
  char value[96];
  const auto code = call(name, card, &value[0], static_cast<unsigned>(sizeof value));
  check(code, card);
  return code ? std::nullopt : std::optional<std::string>(value);
}

std::string library::system_text(const char* name) const {
  char value[96];
  return call(name, &value[0], static_cast<unsigned>(sizeof value)) ? "N/A" : value;
}

std::string library::cuda() const {
  int version = 0;
  call("nvmlSystemGetCudaDriverVersion_v2", &version);
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::vector<device> library::cards() const {
  unsigned count = 0;
  call("nvmlDeviceGetCount_v2", &count);
  std::vector<device> out;
  for (unsigned index = 0; index < count; ++index) {
    device card = nullptr;
    const auto code = call("nvmlDeviceGetHandleByIndex_v2", index, &card);
    if (code)
      throw end{lost_exit,
                "Unable to determine the device handle for GPU " + std::to_string(index) + ": " + text_of(code)};
    out.push_back(card);
  }
  return out;
}

nvml::pci_info library::pci(device card) const {
  nvml::pci_info info{};
  check(call("nvmlDeviceGetPciInfo_v3", card, &info), card);
  return info;
}

}  // namespace smi
