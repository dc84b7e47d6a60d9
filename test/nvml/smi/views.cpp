// The list (-L), the default table and the matrix of `topo -m`.
#include "views.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <span>

namespace smi {
namespace {

std::vector<device> mig_devices(const library& nvml, device card) {
  std::vector<device> out;
  const auto count = nvml.number<unsigned>("nvmlDeviceGetMaxMigDeviceCount", card).value_or(0);
  for (unsigned index = 0; index < count; ++index) {
    device mig = nullptr;
    if (!nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", card, index, &mig)) out.push_back(mig);
  }
  return out;
}

std::string profile_of(const std::string& name) {  // "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
  const auto place = name.rfind(" MIG ");
  return place == std::string::npos ? name : name.substr(place + 5);
}

std::string watts(std::optional<unsigned> milliwatts) {
  return milliwatts ? printed("%uW", (*milliwatts + 500) / 1000) : "N/A";
}

std::string card_rows(const library& nvml, device card, unsigned index) {
  nvml::memory_v2 memory{
      .version = nvml::version_word<nvml::memory_v2>(2), .total = 0, .reserved = 0, .free = 0, .used = 0};
  nvml.call("nvmlDeviceGetMemoryInfo_v2", card, &memory);
  nvml::utilization rates{};
  const bool has_rates = !nvml.call("nvmlDeviceGetUtilizationRates", card, &rates);
  unsigned celsius = 0, mig = 0, pending = 0;
  nvml.call("nvmlDeviceGetTemperature", card, 0, &celsius);
  const bool has_mig = !nvml.call("nvmlDeviceGetMigMode", card, &mig, &pending);
  std::uint64_t errors = 0;
  const bool has_ecc = !nvml.call("nvmlDeviceGetTotalEccErrors", card, 1U, 0U, &errors);
  const auto fan = nvml.number<unsigned>("nvmlDeviceGetFanSpeed", card);
  constexpr const char* modes[] = {"Default", "E. Thread", "Prohibited", "E. Process"};
  const auto power = watts(nvml.number<unsigned>("nvmlDeviceGetPowerUsage", card)) + " / " +
                     printed("%5s", watts(nvml.number<unsigned>("nvmlDeviceGetPowerManagementLimit", card)).c_str());
  const auto used = printed("%lluMiB / %6lluMiB", static_cast<unsigned long long>(memory.used >> 20),
                            static_cast<unsigned long long>(memory.total >> 20));
  auto out =
      printed("|%4u  %-26.26s %6s  |   %s %-3s |%21s |\n", index, nvml.text("nvmlDeviceGetName", card)->c_str(),
              nvml.number<int>("nvmlDeviceGetPersistenceMode", card).value_or(0) ? "On" : "Off", nvml.pci(card).bus_id,
              nvml.number<int>("nvmlDeviceGetDisplayActive", card).value_or(0) ? "On" : "Off",
              (has_ecc ? std::to_string(errors) : "N/A").c_str());
  out += printed("|%4s %4uC    P%-2d%23s |%23s |%9s %11s |\n", (fan ? std::to_string(*fan) + "%" : "N/A").c_str(),
                 celsius, nvml.number<int>("nvmlDeviceGetPerformanceState", card).value_or(0), power.c_str(),
                 used.c_str(), (has_rates ? std::to_string(rates.gpu) + "%" : "N/A").c_str(),
                 modes[nvml.number<int>("nvmlDeviceGetComputeMode", card).value_or(0) & 3]);
  return out + printed("|%41s|%24s|%21s |\n", "", "", !has_mig ? "N/A" : mig ? "Enabled" : "Disabled");
}

std::string process_rows(const library& nvml, device card, unsigned index) {
  std::string out;
  for (const auto& [function, kind] : {std::pair{"nvmlDeviceGetComputeRunningProcesses_v3", "C"},
                                       std::pair{"nvmlDeviceGetGraphicsRunningProcesses_v3", "G"},
                                       std::pair{"nvmlDeviceGetMPSComputeRunningProcesses_v3", "M+C"}}) {
    nvml::process processes[128];
    unsigned count = std::size(processes);
    if (nvml.call(function, card, &count, &processes[0])) continue;
    for (const auto& process : std::span(processes, count)) {
      char name[64] = "[Not Found]";
      nvml.call("nvmlSystemGetProcessName", process.pid, &name[0], static_cast<unsigned>(sizeof name));
      const auto id = [](unsigned number) { return number == nvml::no_instance ? "N/A" : std::to_string(number); };
      out += printed("|%5u %4s %4s %10u %6s   %-30.30s %8lluMiB |\n", index, id(process.gpu_instance).c_str(),
                     id(process.compute_instance).c_str(), process.pid, kind, name,
                     static_cast<unsigned long long>(process.used_memory >> 20));
    }
  }
  return out;
}

// "NV12" for links, otherwise the place where the two PCIe paths meet.
std::string relation(const library& nvml, device left, device right) {
  const auto links = [&nvml](device card, device other) {
    const std::string place = nvml.pci(other).bus_id;
    unsigned count = 0;
    for (unsigned index = 0; index < nvml::max_links; ++index) {
      int is_active = 0, type = 0;
      nvml::pci_info peer{};
      if (nvml.call("nvmlDeviceGetNvLinkState", card, index, &is_active) || !is_active) continue;
      if (nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", card, index, &peer)) continue;
      nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", card, index, &type);
      count += type == nvml::peer_switch || place == peer.bus_id;
    }
    return count;
  };
  if (const auto count = std::min(links(left, right), links(right, left))) return "NV" + std::to_string(count);
  int level = nvml::across_nodes;
  nvml.call("nvmlDeviceGetTopologyCommonAncestor", left, right, &level);
  switch (level) {
    case nvml::single:
      return "PIX";
    case nvml::multiple:
      return "PXB";
    case nvml::host_bridge:
      return "PHB";
    case nvml::same_node:
      return "NODE";
    default:
      return "SYS";
  }
}

std::string processors(const library& nvml, device card) {
  constexpr unsigned words = 16, bits = 64;
  unsigned long mask[words] = {};
  if (nvml.call("nvmlDeviceGetCpuAffinity", card, words, &mask[0])) return "N/A";
  const auto is_set = [&mask](unsigned number) {
    return number < words * bits && (mask[number / bits] >> number % bits & 1);
  };
  std::string out;
  for (unsigned number = 0; number < words * bits; ++number) {
    if (!is_set(number)) continue;
    const auto first = number;
    while (is_set(number + 1)) ++number;
    out += (out.empty() ? "" : ",") + std::to_string(first) + (number == first ? "" : "-" + std::to_string(number));
  }
  return out;
}

}  // namespace

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    const auto first = text.find_first_not_of(' ', begin);
    out.push_back(first < end ? text.substr(first, end - first) : "");
    begin = end + 1;
  }
  return out;
}

std::string printed(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string list_view(const library& nvml, const std::vector<device>& cards) {
  std::string out;
  for (unsigned index = 0; const auto card : cards) {
    out += printed("GPU %u: %s (UUID: %s)\n", index++, nvml.text("nvmlDeviceGetName", card)->c_str(),
                   nvml.text("nvmlDeviceGetUUID", card)->c_str());
    for (unsigned number = 0; const auto mig : mig_devices(nvml, card))
      out += printed("  MIG %-12s Device %2u: (UUID: %s)\n", profile_of(*nvml.text("nvmlDeviceGetName", mig)).c_str(),
                     number++, nvml.text("nvmlDeviceGetUUID", mig)->c_str());
  }
  return out;
}

std::string table_view(const library& nvml, const std::vector<device>& cards) {
  const auto driver = nvml.system_text("nvmlSystemGetDriverVersion");
  const auto line = [](char sign) {
    return (sign == '+' ? "+" : "|") + std::string(41, sign == '+' ? '-' : sign) + "+" +
           std::string(24, sign == '+' ? '-' : sign) + "+" + std::string(22, sign == '+' ? '-' : sign) +
           (sign == '=' ? "|\n" : "+\n");
  };
  auto out =
      "+" + std::string(89, '-') + "+\n" +
      printed("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver.c_str(), driver.c_str(),
              nvml.cuda().c_str()) +
      line('-') + "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n" +
      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n" +
      "|                                         |                        |               MIG M. |\n" + line('=');
  std::string processes;
  for (unsigned index = 0; const auto card : cards) {
    out += card_rows(nvml, card, index) + line('+');
    processes += process_rows(nvml, card, index++);
  }
  out += "\n+" + std::string(89, '-') +
         "+\n| Processes:\n|  GPU   GI   CI        PID   Type   Process name"
         "                    GPU Memory |\n";
  return out + (processes.empty() ? "|  No running processes found\n" : processes) + "+" + std::string(89, '-') + "+\n";
}

std::string topology_view(const library& nvml, const std::vector<device>& cards) {
  std::string out;
  for (unsigned index = 0; index < cards.size(); ++index) out += "\tGPU" + std::to_string(index);
  out += "\tCPU Affinity\tNUMA Affinity\n";
  for (unsigned index = 0; const auto card : cards) {
    out += "GPU" + std::to_string(index++);
    for (const auto other : cards) out += "\t" + (card == other ? " X " : relation(nvml, card, other));
    const auto node = nvml.number<unsigned>("nvmlDeviceGetNumaNodeId", card);
    out += "\t" + processors(nvml, card) + "\t" + (node ? std::to_string(*node) : "N/A") + "\n";
  }
  return out;
}

}  // namespace smi
