// Persistence and compute mode. A change needs root, as with the driver, and lasts as long as this process.
#include <unistd.h>

#include "../call.hpp"
#include "../words.hpp"

using namespace nvml;

NVML_EXPORT nvmlDeviceGetPersistenceMode(device device, int* mode) {
  return answer_fact("nvmlDeviceGetPersistenceMode", device, "persistence", mode);
}
NVML_EXPORT nvmlDeviceGetComputeMode(device device, int* mode) {
  return answer_fact("nvmlDeviceGetComputeMode", device, "compute_mode", mode);
}

NVML_EXPORT nvmlDeviceSetPersistenceMode(device device, int mode) {
  return answer([&] {
    const auto found = find("nvmlDeviceSetPersistenceMode", device);
    if (geteuid() != 0) throw failure{no_permission};
    if (mode != 0 && mode != 1) throw failure{invalid_argument};
    found.fact("persistence");
    session::instance().set(found.handle.uuid, "persistence", mode == 1);
  });
}

NVML_EXPORT nvmlDeviceSetComputeMode(device device, int mode) {
  return answer([&] {
    const auto found = find("nvmlDeviceSetComputeMode", device);
    if (geteuid() != 0) throw failure{no_permission};
    const auto text = text_for(compute_modes(), mode, "");
    if (text.empty()) throw failure{invalid_argument};
    if (text == "exclusive_thread") throw failure{not_supported};  // gone from the driver, still a value
    session::instance().set(found.handle.uuid, "compute_mode", text);
  });
}
