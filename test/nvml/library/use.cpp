// Memory, utilisation, temperature and clocks: what changes while programs run.
#include <chrono>

#include "../call.hpp"
#include "mig.hpp"

using namespace nvml;

namespace {

struct amounts {
  std::uint64_t total, reserved, used;
};

amounts memory_of(const subject& subject) {
  if (subject.is_mig_device()) {
    const auto memory = mig_memory(subject);
    return {memory.total_mib * mib, 0, memory.used_mib * mib};
  }
  const auto total = static_cast<std::uint64_t>(number(subject, "memory_total_mib"));
  return {total * mib, subject.card.value("memory_reserved_mib", 0UL) * mib,
          subject.card.value("memory_used_mib", 0UL) * mib};
}

const char* const current_clocks[] = {"clock_graphics_mhz", "clock_sm_mhz", "clock_memory_mhz", "clock_video_mhz"};
const char* const highest_clocks[] = {"clock_graphics_max_mhz", "clock_sm_max_mhz", "clock_memory_max_mhz",
                                      "clock_video_max_mhz"};

return_code clock_of(const char* function, device device, unsigned type, const char* const (&keys)[4], unsigned* mhz) {
  if (type >= std::size(keys)) return invalid_argument;
  return answer_fact(function, device, keys[type], mhz);
}

// Rates of a card that is cut by MIG are not known to the driver.
return_code rate(const char* function, device device, const char* key, unsigned* percent) {
  return answer([&] {
    const auto found = find(function, device);
    require(percent);
    if (found.is_cut()) throw failure{not_supported};
    *percent = static_cast<unsigned>(number(found, key));
  });
}

return_code engine(const char* function, device device, const char* key, unsigned* percent, unsigned* period_us) {
  const auto code = rate(function, device, key, percent);
  if (code == success && period_us) *period_us = 167000;
  return code;
}

}  // namespace

// `used` of the first form includes what the driver reserves.
NVML_EXPORT nvmlDeviceGetMemoryInfo(device device, memory* target) {
  return answer([&] {
    const auto amounts = memory_of(find("nvmlDeviceGetMemoryInfo", device));
    require(target);
    const auto used = amounts.used + amounts.reserved;
    *target = {amounts.total, amounts.total - used, used};
  });
}

NVML_EXPORT nvmlDeviceGetMemoryInfo_v2(device device, memory_v2* target) {
  return answer([&] {
    const auto amounts = memory_of(find("nvmlDeviceGetMemoryInfo_v2", device));
    require(target);
    if (target->version != version_word<memory_v2>(2)) throw failure{argument_version_mismatch};
    *target = {target->version, amounts.total, amounts.reserved, amounts.total - amounts.used - amounts.reserved,
               amounts.used};
  });
}

NVML_EXPORT nvmlDeviceGetBAR1MemoryInfo(device device, memory* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetBAR1MemoryInfo", device);
    require(target);
    const auto total = static_cast<std::uint64_t>(number(found, "bar1_total_mib")) * mib;
    const auto used = found.card.value("bar1_used_mib", 0UL) * mib;
    *target = {total, total - used, used};
  });
}

NVML_EXPORT nvmlDeviceGetUtilizationRates(device device, utilization* target) {
  if (!target) return invalid_argument;
  const auto code = rate("nvmlDeviceGetUtilizationRates", device, "utilisation_gpu", &target->gpu);
  return code ? code : rate("nvmlDeviceGetUtilizationRates", device, "utilisation_memory", &target->memory);
}
NVML_EXPORT nvmlDeviceGetEncoderUtilization(device device, unsigned* percent, unsigned* period_us) {
  return engine("nvmlDeviceGetEncoderUtilization", device, "utilisation_encoder", percent, period_us);
}
NVML_EXPORT nvmlDeviceGetDecoderUtilization(device device, unsigned* percent, unsigned* period_us) {
  return engine("nvmlDeviceGetDecoderUtilization", device, "utilisation_decoder", percent, period_us);
}

NVML_EXPORT nvmlDeviceGetTemperature(device device, int sensor, unsigned* celsius) {
  if (sensor != 0) return invalid_argument;
  return answer_fact("nvmlDeviceGetTemperature", device, "temperature_c", celsius);
}
NVML_EXPORT nvmlDeviceGetTemperatureV(device device, temperature* target) {
  if (!target || target->sensor != 0) return invalid_argument;
  if (target->version != version_word<temperature>(1)) return argument_version_mismatch;
  return answer_fact("nvmlDeviceGetTemperatureV", device, "temperature_c", &target->celsius);
}
NVML_EXPORT nvmlDeviceGetTemperatureThreshold(device device, unsigned threshold, unsigned* celsius) {
  constexpr const char* keys[] = {"temperature_shutdown_c", "temperature_slowdown_c", "memory_temperature_max_c",
                                  "temperature_max_c"};
  if (threshold >= std::size(keys)) return threshold < 8 ? not_supported : invalid_argument;
  return answer_fact("nvmlDeviceGetTemperatureThreshold", device, keys[threshold], celsius);
}

NVML_EXPORT nvmlDeviceGetClockInfo(device device, unsigned type, unsigned* mhz) {
  return clock_of("nvmlDeviceGetClockInfo", device, type, current_clocks, mhz);
}
NVML_EXPORT nvmlDeviceGetMaxClockInfo(device device, unsigned type, unsigned* mhz) {
  return clock_of("nvmlDeviceGetMaxClockInfo", device, type, highest_clocks, mhz);
}
NVML_EXPORT nvmlDeviceGetMaxCustomerBoostClock(device device, unsigned type, unsigned* mhz) {
  return clock_of("nvmlDeviceGetMaxCustomerBoostClock", device, type, highest_clocks, mhz);
}
NVML_EXPORT nvmlDeviceGetApplicationsClock(device device, unsigned type, unsigned* mhz) {
  return clock_of("nvmlDeviceGetApplicationsClock", device, type, highest_clocks, mhz);
}
NVML_EXPORT nvmlDeviceGetDefaultApplicationsClock(device device, unsigned type, unsigned* mhz) {
  return clock_of("nvmlDeviceGetDefaultApplicationsClock", device, type, highest_clocks, mhz);
}
NVML_EXPORT nvmlDeviceGetClock(device device, unsigned type, unsigned id, unsigned* mhz) {
  return clock_of("nvmlDeviceGetClock", device, type, id == 0 ? current_clocks : highest_clocks, mhz);
}
