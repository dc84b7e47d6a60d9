// Processes on a card, per kind, and what they use. `kind` of the fixture: compute (the default), graphics or mps.
#include <algorithm>

#include "../call.hpp"

using namespace nvml;

namespace {

bool is_in(const json& process, const handle& handle) {
  return handle.kind == handle_kind::card ||
         (process.value("gpu_instance", no_instance) == handle.gpu_instance &&
          process.value("compute_instance", no_instance) == handle.compute_instance);
}

std::vector<json> processes(const subject& subject, std::string_view kind) {
  std::vector<json> out;
  for (const auto& process : subject.card.value("processes", json::array()))
    if (is_in(process, subject.handle) && (kind.empty() || process.value("kind", "compute") == kind))
      out.push_back(process);
  return out;
}

void read(const json& source, process& target) {
  target = {source["pid"], source.value("memory_mib", std::uint64_t{0}) * mib,
            source.value("gpu_instance", no_instance), source.value("compute_instance", no_instance)};
}
void read(const json& source, process_v1& target) {
  target = {source["pid"], source.value("memory_mib", std::uint64_t{0}) * mib};
}
void read(const json& source, process_sample& target) {
  const auto percent = [&source](const char* key) { return source.value(key, 0U); };
  target = {source["pid"],      source.value("time_us", std::uint64_t{1}),
            percent("sm"),      percent("memory"),
            percent("encoder"), percent("decoder")};
}
void read(const json& source, process_info& target) {
  const auto percent = [&source](const char* key) { return source.value(key, 0U); };
  target = {source.value("time_us", std::uint64_t{1}),
            source["pid"],
            percent("sm"),
            percent("memory"),
            percent("encoder"),
            percent("decoder"),
            0,
            0};
}

template <class Entry>
std::vector<Entry> entries(const std::vector<json>& sources) {
  std::vector<Entry> out(sources.size());
  for (std::size_t index = 0; index < sources.size(); ++index) read(sources[index], out[index]);
  return out;
}

template <class Entry>
return_code running(const char* function, device device, const char* kind, unsigned* count, Entry* target) {
  return answer([&] { fill(entries<Entry>(processes(find(function, device), kind)), count, target); });
}

std::vector<json> samples_since(const subject& subject, std::uint64_t last_seen) {
  if (subject.is_cut() || subject.is_mig_device()) throw failure{not_supported};
  auto out = processes(subject, "");
  std::erase_if(out, [last_seen](const json& process) {
    return !process.contains("sm") || process.value("time_us", std::uint64_t{1}) <= last_seen;
  });
  return out;
}

}  // namespace

#define NVML_PROCESSES(name, kind)                                         \
  NVML_EXPORT name(device device, unsigned* count, process_v1* target) {   \
    return running(#name, device, kind, count, target);                    \
  }                                                                        \
  NVML_EXPORT name##_v2(device device, unsigned* count, process* target) { \
    return running(#name "_v2", device, kind, count, target);              \
  }                                                                        \
  NVML_EXPORT name##_v3(device device, unsigned* count, process* target) { \
    return running(#name "_v3", device, kind, count, target);              \
  }

NVML_PROCESSES(nvmlDeviceGetComputeRunningProcesses, "compute")
NVML_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
NVML_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, "mps")

/// Samples newer than `last_seen` (microseconds); no_data where there is none, as the driver answers.
NVML_EXPORT nvmlDeviceGetProcessUtilization(device device, process_sample* target, unsigned* count,
                                            std::uint64_t last_seen) {
  return answer([&] {
    const auto samples = samples_since(find("nvmlDeviceGetProcessUtilization", device), last_seen);
    if (samples.empty()) throw failure{no_data};
    fill(entries<process_sample>(samples), count, target);
  });
}

NVML_EXPORT nvmlDeviceGetProcessesUtilizationInfo(device device, process_info_list* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetProcessesUtilizationInfo", device);
    require(target);
    if (target->version != version_word<process_info_list>(1)) throw failure{argument_version_mismatch};
    const auto samples = samples_since(found, target->last_seen);
    if (samples.empty()) throw failure{no_data};
    fill(entries<process_info>(samples), &target->count, target->samples);
  });
}
