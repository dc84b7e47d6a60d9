// Functions that return one fact of a card: each is a row with the fixture's key.
#include "../call.hpp"

using namespace nvml;

#define NVML_FACT(name, type, key) \
  NVML_EXPORT name(device device, type* target) { return answer_fact(#name, device, key, target); }
#define NVML_TEXT(name, key)                                       \
  NVML_EXPORT name(device device, char* target, unsigned length) { \
    return answer_text(#name, device, key, target, length);        \
  }
#define NVML_PAIR(name, type, first, second)                        \
  NVML_EXPORT name(device device, type* target, type* other) {      \
    const auto code = answer_fact(#name, device, first, target);    \
    return code ? code : answer_fact(#name, device, second, other); \
  }

NVML_TEXT(nvmlDeviceGetSerial, "serial")
NVML_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NVML_TEXT(nvmlDeviceGetBoardPartNumber, "board_part")

NVML_FACT(nvmlDeviceGetMinorNumber, unsigned, "minor")
NVML_FACT(nvmlDeviceGetModuleId, unsigned, "module_id")
NVML_FACT(nvmlDeviceGetBrand, int, "brand")
NVML_FACT(nvmlDeviceGetArchitecture, unsigned, "architecture")
NVML_FACT(nvmlDeviceGetNumGpuCores, unsigned, "cuda_cores")
NVML_FACT(nvmlDeviceGetMemoryBusWidth, unsigned, "memory_bus_bits")
NVML_FACT(nvmlDeviceGetNumaNodeId, unsigned, "numa_node")
NVML_FACT(nvmlDeviceGetDisplayMode, int, "display")
NVML_FACT(nvmlDeviceGetDisplayActive, int, "display")
NVML_FACT(nvmlDeviceGetFanSpeed, unsigned, "fan_percent")
NVML_FACT(nvmlDeviceGetPerformanceState, int, "performance_state")
NVML_FACT(nvmlDeviceGetPowerState, int, "performance_state")

NVML_FACT(nvmlDeviceGetPowerUsage, unsigned, "power_usage_mw")
NVML_FACT(nvmlDeviceGetPowerManagementLimit, unsigned, "power_limit_mw")
NVML_FACT(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit_mw")
NVML_FACT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_default_mw")
NVML_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, unsigned, "power_min_mw", "power_max_mw")
NVML_FACT(nvmlDeviceGetTotalEnergyConsumption, std::uint64_t, "energy_mj")

NVML_FACT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_generation_max")
NVML_FACT(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie_generation_max")
NVML_FACT(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_width_max")
NVML_FACT(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_generation")
NVML_FACT(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width")
NVML_FACT(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie_replays")

NVML_FACT(nvmlDeviceGetCurrentClocksThrottleReasons, std::uint64_t, "throttle_reasons")
NVML_FACT(nvmlDeviceGetCurrentClocksEventReasons, std::uint64_t, "throttle_reasons")

NVML_EXPORT nvmlDeviceGetPowerManagementMode(device device, int* mode) {
  unsigned limit = 0;
  const auto code = answer_fact("nvmlDeviceGetPowerManagementMode", device, "power_limit_mw", &limit);
  if (code == success && mode) *mode = 1;
  return code;
}

NVML_EXPORT nvmlDeviceGetSupportedClocksThrottleReasons(device device, std::uint64_t* reasons) {
  const auto code = answer_fact("nvmlDeviceGetSupportedClocksThrottleReasons", device, "throttle_reasons", reasons);
  if (code == success) *reasons = 0x1ff;
  return code;
}
NVML_EXPORT nvmlDeviceGetSupportedClocksEventReasons(device device, std::uint64_t* reasons) {
  return nvmlDeviceGetSupportedClocksThrottleReasons(device, reasons);
}

NVML_EXPORT nvmlDeviceGetPcieThroughput(device device, int counter, unsigned* kib_per_second) {
  return answer_fact("nvmlDeviceGetPcieThroughput", device, counter == 0 ? "pcie_tx_kib_s" : "pcie_rx_kib_s",
                     kib_per_second);
}

NVML_EXPORT nvmlDeviceGetBusType(device device, unsigned* bus) {
  return answer([&] {
    find("nvmlDeviceGetBusType", device);
    require(bus);
    *bus = 2;  // PCIe
  });
}

NVML_EXPORT nvmlDeviceGetAddressingMode(device device, addressing_mode* mode) {
  return answer([&] {
    find("nvmlDeviceGetAddressingMode", device);
    require(mode);
    if (mode->version != version_word<addressing_mode>(1)) throw failure{argument_version_mismatch};
    mode->value = 0;
  });
}

NVML_EXPORT nvmlDeviceGetVirtualizationMode(device device, int* mode) {
  return answer([&] {
    find("nvmlDeviceGetVirtualizationMode", device);
    require(mode);
    *mode = 0;
  });
}
