#pragma once
// The driver's library libnvidia-ml.so.1, loaded at run time and never linked: a machine without a driver is a value.
// A call may hang while a driver is sick, so all calls belong on one thread of their own (watcher.hpp).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "agent/cards/nvml_abi.hpp"

namespace agent::cards {

/// A function of NVML: its name in the library, and its arguments.
template <class... Arguments>
struct nvml_function {
  const char* name;
};

/// When a thread last went into the driver or came back from it, in milliseconds of the steady clock. Another thread
/// may read it: a call that hangs gives no sign of life.
class sign_of_life {
 public:
  void give() { last_ = now(); }
  std::chrono::milliseconds age() const { return std::chrono::milliseconds(now() - last_); }

 private:
  static std::int64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  }
  std::atomic<std::int64_t> last_{now()};
};

class nvml_library {
 public:
  /// @param root the node's file system as this process sees it: "/", or where it is mounted
  /// @return an error in one line: where the library was looked for, or what the loader says
  static std::expected<nvml_library, std::string> load(const std::string& root);
  /// Stays loaded until the process ends: threads of the driver may still be in it.
  explicit nvml_library(void* handle) : handle_(handle) {}
  /// Each call gives a sign before and after it. `life` must outlive this.
  void give_signs(sign_of_life& life) { life_ = &life; }

  /// function_not_found where the driver is too old to have it.
  template <class... Arguments>
  nvml::return_code operator()(const nvml_function<Arguments...>& function,
                               std::type_identity_t<Arguments>... arguments) const {
    const auto address = reinterpret_cast<nvml::return_code (*)(Arguments...)>(find(function.name));
    if (!address) return nvml::function_not_found;
    if (life_) life_->give();
    const auto code = address(arguments...);
    if (life_) life_->give();
    return code;
  }
  /// "Driver Not Loaded", in the library's own words.
  std::string error_text(nvml::return_code code) const;

 private:
  void* find(const char* name) const;
  void* handle_;
  sign_of_life* life_ = nullptr;
};

/// The functions that are used; NVML's API reference has their meaning.
namespace call {
using nvml::device;
inline constexpr nvml_function<> init{"nvmlInit_v2"};
inline constexpr nvml_function<> shutdown{"nvmlShutdown"};
inline constexpr nvml_function<char*, unsigned> driver_version{"nvmlSystemGetDriverVersion"};
inline constexpr nvml_function<int*> cuda_version{"nvmlSystemGetCudaDriverVersion_v2"};
inline constexpr nvml_function<unsigned*> count{"nvmlDeviceGetCount_v2"};
inline constexpr nvml_function<unsigned, device*> handle_by_index{"nvmlDeviceGetHandleByIndex_v2"};
inline constexpr nvml_function<const char*, device*> handle_by_uuid{"nvmlDeviceGetHandleByUUID"};
inline constexpr nvml_function<device, int*> compute_mode{"nvmlDeviceGetComputeMode"};
inline constexpr nvml_function<device, int> set_compute_mode{"nvmlDeviceSetComputeMode"};
// From branch R615 on; the first one as root. MIG devices have none.
inline constexpr nvml_function<device, nvml::memory_limits*> set_memory_limits{"nvmlDeviceSetMemoryLimits_v1"};
inline constexpr nvml_function<device, nvml::memory_limits_in_use*> memory_limits{"nvmlDeviceGetMemoryLimits_v1"};
inline constexpr nvml_function<device, char*, unsigned> uuid{"nvmlDeviceGetUUID"};
inline constexpr nvml_function<device, char*, unsigned> name{"nvmlDeviceGetName"};
inline constexpr nvml_function<device, unsigned*> minor_number{"nvmlDeviceGetMinorNumber"};
inline constexpr nvml_function<device, nvml::pci_info*> pci_info{"nvmlDeviceGetPciInfo_v3"};
inline constexpr nvml_function<device, nvml::memory*> memory_info{"nvmlDeviceGetMemoryInfo"};
inline constexpr nvml_function<device, int*, int*> compute_capability{"nvmlDeviceGetCudaComputeCapability"};
inline constexpr nvml_function<device, unsigned, unsigned long*, unsigned> memory_affinity{
    "nvmlDeviceGetMemoryAffinity"};
inline constexpr nvml_function<device, unsigned*, unsigned*> mig_mode{"nvmlDeviceGetMigMode"};
inline constexpr nvml_function<device, device, int*> common_ancestor{"nvmlDeviceGetTopologyCommonAncestor"};
inline constexpr nvml_function<device, unsigned, int*> nvlink_state{"nvmlDeviceGetNvLinkState"};
inline constexpr nvml_function<device, unsigned, nvml::pci_info*> nvlink_peer{"nvmlDeviceGetNvLinkRemotePciInfo_v2"};
inline constexpr nvml_function<device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows{
    "nvmlDeviceGetRemappedRows"};
inline constexpr nvml_function<device, nvml::memory_v2*> memory_info_v2{"nvmlDeviceGetMemoryInfo_v2"};
inline constexpr nvml_function<device, nvml::utilization*> utilization{"nvmlDeviceGetUtilizationRates"};
inline constexpr nvml_function<device, int, unsigned*> temperature{"nvmlDeviceGetTemperature"};
inline constexpr nvml_function<device, unsigned*> power{"nvmlDeviceGetPowerUsage"};
inline constexpr nvml_function<device, std::uint64_t*> energy{"nvmlDeviceGetTotalEnergyConsumption"};
inline constexpr nvml_function<device, std::uint64_t*> throttle_reasons{"nvmlDeviceGetCurrentClocksThrottleReasons"};
inline constexpr nvml_function<device, int, nvml::field_value*> field_values{"nvmlDeviceGetFieldValues"};
inline constexpr nvml_function<device, unsigned*, nvml::process*> compute_processes{
    "nvmlDeviceGetComputeRunningProcesses_v3"};
inline constexpr nvml_function<device, unsigned*, nvml::process*> graphics_processes{
    "nvmlDeviceGetGraphicsRunningProcesses_v3"};
inline constexpr nvml_function<device, unsigned*, nvml::process*> mps_processes{
    "nvmlDeviceGetMPSComputeRunningProcesses_v3"};
inline constexpr nvml_function<device, nvml::process_sample*, unsigned*, std::uint64_t> process_utilization{
    "nvmlDeviceGetProcessUtilization"};
inline constexpr nvml_function<device, unsigned*> max_mig_devices{"nvmlDeviceGetMaxMigDeviceCount"};
inline constexpr nvml_function<device, unsigned, device*> mig_device{"nvmlDeviceGetMigDeviceHandleByIndex"};
inline constexpr nvml_function<device, unsigned, unsigned, std::uint64_t*> total_ecc_errors{
    "nvmlDeviceGetTotalEccErrors"};
inline constexpr nvml_function<device, int*> retirement_pending{"nvmlDeviceGetRetiredPagesPendingStatus"};
inline constexpr nvml_function<device, int*> persistence_mode{"nvmlDeviceGetPersistenceMode"};
inline constexpr nvml_function<device, nvml::fabric_info*> fabric_info{"nvmlDeviceGetGpuFabricInfo"};
inline constexpr nvml_function<nvml::event_set**> event_set_create{"nvmlEventSetCreate"};
inline constexpr nvml_function<nvml::event_set*> event_set_free{"nvmlEventSetFree"};
inline constexpr nvml_function<device, std::uint64_t, nvml::event_set*> register_events{"nvmlDeviceRegisterEvents"};
inline constexpr nvml_function<nvml::event_set*, nvml::event_data*, unsigned> event_wait{"nvmlEventSetWait_v2"};
}  // namespace call

}  // namespace agent::cards
