// Start, stop, versions, and the names of errors.
#include <fstream>

#include "../call.hpp"

using namespace nvml;

namespace {

const json& driver_of(const fixture& fixture) { return fixture.node["driver"]; }

int cuda_version(const fixture& fixture) {  // "12.4" is 12040
  const auto text = driver_of(fixture)["cuda"].get<std::string>();
  const auto dot = text.find('.');
  return std::stoi(text) * 1000 + (dot == std::string::npos ? 0 : std::stoi(text.substr(dot + 1)) * 10);
}

return_code cuda(int* version) {
  return answer([&] {
    require(version);
    *version = cuda_version(*session::instance().current());
  });
}

}  // namespace

NVML_EXPORT nvmlInit() {
  return answer([] {
    if (auto code = session::instance().start()) throw failure{code};
  });
}
NVML_EXPORT nvmlInit_v2() { return nvmlInit(); }
NVML_EXPORT nvmlInitWithFlags(unsigned) { return nvmlInit(); }
NVML_EXPORT nvmlShutdown() { return session::instance().stop(); }

NVML_EXPORT nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return answer([&] { copy(driver_of(*session::instance().current())["version"], version, length); });
}

// The real library's version is its CUDA major and the driver's version.
NVML_EXPORT nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return answer([&] {
    const auto now = session::instance().current();
    copy(std::to_string(cuda_version(*now) / 1000) + "." + driver_of(*now)["version"].get<std::string>(), version,
         length);
  });
}

NVML_EXPORT nvmlSystemGetCudaDriverVersion(int* version) { return cuda(version); }
NVML_EXPORT nvmlSystemGetCudaDriverVersion_v2(int* version) { return cuda(version); }

NVML_EXPORT nvmlSystemGetDriverBranch(driver_branch* target, unsigned length) {
  return answer([&] {
    const auto now = session::instance().current();
    require(target);
    if (target->version != version_word<driver_branch>(1)) throw failure{argument_version_mismatch};
    const auto& driver = driver_of(*now);
    if (!driver.contains("branch")) throw failure{not_supported};
    copy(driver["branch"], target->branch, std::min<unsigned>(length, sizeof target->branch));
  });
}

/// The name that the fixture has for the process, otherwise the one of /proc.
NVML_EXPORT nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return answer([&] {
    const auto now = session::instance().current();
    for (const auto& card : now->node["cards"])
      for (const auto& process : card.value("processes", json::array()))
        if (process["pid"] == pid && process.contains("name")) return copy(process["name"], name, length);
    std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
    std::string line;
    if (!std::getline(file, line)) throw failure{not_found};
    copy(line, name, length);
  });
}

NVML_EXPORT nvmlGetExcludedDeviceCount(unsigned* count) {
  return answer([&] {
    require(count);
    *count = 0;
  });
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(return_code code) {
  switch (code) {
    case success:
      return "Success";
    case uninitialized:
      return "Uninitialized";
    case invalid_argument:
      return "Invalid Argument";
    case not_supported:
      return "Not Supported";
    case no_permission:
      return "Insufficient Permissions";
    case already_initialized:
      return "Already Initialized";
    case not_found:
      return "Not Found";
    case insufficient_size:
      return "Insufficient Size";
    case insufficient_power:
      return "Insufficient External Power";
    case driver_not_loaded:
      return "Driver Not Loaded";
    case timeout:
      return "Timeout";
    case irq_issue:
      return "Interrupt Request Issue";
    case library_not_found:
      return "NVML Shared Library Not Found";
    case function_not_found:
      return "Function Not Found";
    case corrupted_inforom:
      return "Corrupted infoROM";
    case gpu_is_lost:
      return "GPU is lost";
    case reset_required:
      return "GPU requires reset";
    case operating_system:
      return "The operating system has blocked the request";
    case version_mismatch:
      return "RM has detected an NVML/RM version mismatch.";
    case in_use:
      return "In use by another client";
    case memory_error:
      return "Insufficient Memory";
    case no_data:
      return "No data";
    case argument_version_mismatch:
      return "Argument version mismatch";
    case not_ready:
      return "Not Ready";
    case gpu_not_found:
      return "GPU not found";
    case invalid_state:
      return "Invalid state";
    case unknown:
      break;
  }
  return "Unknown Error";
}
