// --query-gpu: a table of fields, each with the function it reads and its unit.
#include <algorithm>
#include <ctime>

#include "../words.hpp"
#include "views.hpp"

namespace smi {
namespace {

struct query {
  const library& nvml;
  device card;
  std::size_t count;
};

struct field {
  std::string_view names;  // separated by a space
  std::string_view unit;
  std::string (*read)(const query&);
};

constexpr auto missing = "[N/A]";

template <class Number>
std::string number(const query& query, const char* function) {
  const auto value = query.nvml.number<Number>(function, query.card);
  return value ? std::to_string(*value) : missing;
}
std::string text(const query& query, const char* function) {
  return query.nvml.text(function, query.card).value_or(missing);
}
std::string toggle(const query& query, const char* function) {
  const auto value = query.nvml.number<int>(function, query.card);
  return !value ? missing : *value ? "Enabled" : "Disabled";
}
std::string watts(const query& query, const char* function) {
  const auto value = query.nvml.number<unsigned>(function, query.card);
  return value ? printed("%.2f", *value / 1000.0) : missing;
}
std::string memory(const query& query, std::uint64_t nvml::memory_v2::* member) {
  nvml::memory_v2 amounts{
      .version = nvml::version_word<nvml::memory_v2>(2), .total = 0, .reserved = 0, .free = 0, .used = 0};
  if (query.nvml.call("nvmlDeviceGetMemoryInfo_v2", query.card, &amounts)) return missing;
  return std::to_string(amounts.*member >> 20);
}
std::string rate(const query& query, unsigned nvml::utilization::* member) {
  nvml::utilization rates{};
  if (query.nvml.call("nvmlDeviceGetUtilizationRates", query.card, &rates)) return missing;
  return std::to_string(rates.*member);
}
std::string temperature(const query& query) {
  unsigned celsius = 0;
  return query.nvml.call("nvmlDeviceGetTemperature", query.card, 0, &celsius) ? missing : std::to_string(celsius);
}
std::string memory_temperature(const query& query) {
  constexpr unsigned memory_temperature_field = 82;
  nvml::field_value value{};
  value.field = memory_temperature_field;
  const auto code = query.nvml.call("nvmlDeviceGetFieldValues", query.card, 1, &value);
  return code || value.status ? "N/A" : std::to_string(value.value.unsigned_long);
}
std::string clock(const query& query, const char* function, unsigned type) {
  unsigned mhz = 0;
  return query.nvml.call(function, query.card, type, &mhz) ? missing : std::to_string(mhz);
}
// The first or the second of two modes: current and pending.
std::string mode(const query& query, const char* function, bool is_pending) {
  unsigned current = 0, pending = 0;
  if (query.nvml.call(function, query.card, &current, &pending)) return missing;
  return (is_pending ? pending : current) ? "Enabled" : "Disabled";
}
std::string compute_mode(const query& query) {
  const auto mode = query.nvml.number<int>("nvmlDeviceGetComputeMode", query.card);
  constexpr const char* names[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
  return mode ? names[*mode & 3] : missing;
}
std::string capability(const query& query) {
  int major = 0, minor = 0;
  if (query.nvml.call("nvmlDeviceGetCudaComputeCapability", query.card, &major, &minor)) return missing;
  return printed("%d.%d", major, minor);
}
std::string ecc_errors(const query& query, unsigned error, unsigned counter) {
  std::uint64_t count = 0;
  if (query.nvml.call("nvmlDeviceGetTotalEccErrors", query.card, error, counter, &count)) return missing;
  return std::to_string(count);
}
std::string remapped(const query& query, std::size_t index) {
  unsigned values[4] = {};
  const auto code =
      query.nvml.call("nvmlDeviceGetRemappedRows", query.card, &values[0], &values[1], &values[2], &values[3]);
  if (code) return missing;
  return index < 2 ? std::to_string(values[index]) : values[index] ? "Yes" : "No";
}
std::string reasons(const query& query) {
  const auto mask = query.nvml.number<std::uint64_t>("nvmlDeviceGetCurrentClocksEventReasons", query.card);
  return mask ? printed("0x%016llx", static_cast<unsigned long long>(*mask)) : missing;
}
std::string now() {
  char text[32];
  const auto time = std::time(nullptr);
  std::tm local{};
  std::strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S.000", localtime_r(&time, &local));
  return text;
}

const field fields[] = {
    {"timestamp", "", [](const query&) { return now(); }},
    {"count", "", [](const query& query) { return std::to_string(query.count); }},
    {"index", "", [](const query& query) { return number<unsigned>(query, "nvmlDeviceGetIndex"); }},
    {"name gpu_name", "", [](const query& query) { return text(query, "nvmlDeviceGetName"); }},
    {"uuid gpu_uuid", "", [](const query& query) { return text(query, "nvmlDeviceGetUUID"); }},
    {"serial gpu_serial", "", [](const query& query) { return text(query, "nvmlDeviceGetSerial"); }},
    {"vbios_version", "", [](const query& query) { return text(query, "nvmlDeviceGetVbiosVersion"); }},
    {"driver_version", "", [](const query& query) { return query.nvml.system_text("nvmlSystemGetDriverVersion"); }},
    {"pci.bus_id gpu_bus_id", "", [](const query& query) { return std::string(query.nvml.pci(query.card).bus_id); }},
    {"pci.device_id", "", [](const query& query) { return printed("0x%08X", query.nvml.pci(query.card).device_id); }},
    {"pci.sub_device_id", "",
     [](const query& query) { return printed("0x%08X", query.nvml.pci(query.card).subsystem_id); }},
    {"pcie.link.gen.current pcie.link.gen.gpucurrent", "",
     [](const query& query) { return number<unsigned>(query, "nvmlDeviceGetCurrPcieLinkGeneration"); }},
    {"pcie.link.gen.max", "",
     [](const query& query) { return number<unsigned>(query, "nvmlDeviceGetMaxPcieLinkGeneration"); }},
    {"pcie.link.width.current", "",
     [](const query& query) { return number<unsigned>(query, "nvmlDeviceGetCurrPcieLinkWidth"); }},
    {"pcie.link.width.max", "",
     [](const query& query) { return number<unsigned>(query, "nvmlDeviceGetMaxPcieLinkWidth"); }},
    {"memory.total", "MiB", [](const query& query) { return memory(query, &nvml::memory_v2::total); }},
    {"memory.reserved", "MiB", [](const query& query) { return memory(query, &nvml::memory_v2::reserved); }},
    {"memory.used", "MiB", [](const query& query) { return memory(query, &nvml::memory_v2::used); }},
    {"memory.free", "MiB", [](const query& query) { return memory(query, &nvml::memory_v2::free); }},
    {"utilization.gpu", "%", [](const query& query) { return rate(query, &nvml::utilization::gpu); }},
    {"utilization.memory", "%", [](const query& query) { return rate(query, &nvml::utilization::memory); }},
    {"temperature.gpu", "", temperature},
    {"temperature.memory", "", memory_temperature},
    {"power.draw", "W", [](const query& query) { return watts(query, "nvmlDeviceGetPowerUsage"); }},
    {"power.limit", "W", [](const query& query) { return watts(query, "nvmlDeviceGetPowerManagementLimit"); }},
    {"enforced.power.limit", "W", [](const query& query) { return watts(query, "nvmlDeviceGetEnforcedPowerLimit"); }},
    {"power.default_limit", "W",
     [](const query& query) { return watts(query, "nvmlDeviceGetPowerManagementDefaultLimit"); }},
    {"clocks.sm clocks.current.sm", "MHz",
     [](const query& query) { return clock(query, "nvmlDeviceGetClockInfo", 1); }},
    {"clocks.gr clocks.current.graphics", "MHz",
     [](const query& query) { return clock(query, "nvmlDeviceGetClockInfo", 0); }},
    {"clocks.mem clocks.current.memory", "MHz",
     [](const query& query) { return clock(query, "nvmlDeviceGetClockInfo", 2); }},
    {"clocks.max.sm", "MHz", [](const query& query) { return clock(query, "nvmlDeviceGetMaxClockInfo", 1); }},
    {"clocks.max.mem clocks.max.memory", "MHz",
     [](const query& query) { return clock(query, "nvmlDeviceGetMaxClockInfo", 2); }},
    {"clocks_throttle_reasons.active clocks_event_reasons.active", "", reasons},
    {"pstate", "", [](const query& query) { return "P" + number<int>(query, "nvmlDeviceGetPerformanceState"); }},
    {"persistence_mode", "", [](const query& query) { return toggle(query, "nvmlDeviceGetPersistenceMode"); }},
    {"display_active", "", [](const query& query) { return toggle(query, "nvmlDeviceGetDisplayActive"); }},
    {"compute_mode", "", compute_mode},
    {"compute_cap", "", capability},
    {"mig.mode.current", "", [](const query& query) { return mode(query, "nvmlDeviceGetMigMode", false); }},
    {"mig.mode.pending", "", [](const query& query) { return mode(query, "nvmlDeviceGetMigMode", true); }},
    {"ecc.mode.current", "", [](const query& query) { return mode(query, "nvmlDeviceGetEccMode", false); }},
    {"ecc.mode.pending", "", [](const query& query) { return mode(query, "nvmlDeviceGetEccMode", true); }},
    {"ecc.errors.corrected.volatile.total", "", [](const query& query) { return ecc_errors(query, 0, 0); }},
    {"ecc.errors.corrected.aggregate.total", "", [](const query& query) { return ecc_errors(query, 0, 1); }},
    {"ecc.errors.uncorrected.volatile.total", "", [](const query& query) { return ecc_errors(query, 1, 0); }},
    {"ecc.errors.uncorrected.aggregate.total", "", [](const query& query) { return ecc_errors(query, 1, 1); }},
    {"remapped_rows.correctable", "", [](const query& query) { return remapped(query, 0); }},
    {"remapped_rows.uncorrectable", "", [](const query& query) { return remapped(query, 1); }},
    {"remapped_rows.pending", "", [](const query& query) { return remapped(query, 2); }},
    {"remapped_rows.failure", "", [](const query& query) { return remapped(query, 3); }},
};

const field& find_field(const std::string& name) {
  for (const auto& field : fields)
    if (std::ranges::count(parts(std::string(field.names), ' '), name)) return field;
  throw end{2, "Field \"" + name + "\" is not a valid field to query."};
}

}  // namespace

std::string field_names() {
  std::string text;
  for (const auto& field : fields) text.append("  ").append(field.names).append("\n");
  return text;
}

std::string csv_view(const library& nvml, const std::vector<device>& cards, const std::string& names,
                     const csv_format& format) {
  std::string out;
  const auto wanted = parts(names, ',');
  for (const auto& name : wanted) {
    const auto& field = find_field(name);
    const bool has_unit = format.has_units && !field.unit.empty();
    out.append(out.empty() ? "" : ", ").append(name).append(has_unit ? " [" + std::string(field.unit) + "]" : "");
  }
  out = format.has_header ? out + "\n" : "";
  for (const auto card : cards) {
    for (bool is_first = true; const auto& name : wanted) {
      const auto& field = find_field(name);
      const auto value = field.read({nvml, card, cards.size()});
      const bool has_unit = format.has_units && !field.unit.empty() && value != missing;
      out.append(is_first ? "" : ", ").append(value).append(has_unit ? " " + std::string(field.unit) : "");
      is_first = false;
    }
    out += "\n";
  }
  return out;
}

}  // namespace smi
