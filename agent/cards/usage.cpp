#include "agent/cards/usage.hpp"

#include <algorithm>

#include "agent/cards/inventory.hpp"
#include "text/escape.hpp"

namespace agent::cards {
namespace {

constexpr std::uint64_t kib = 1024, ppm_in_percent = 10'000;

/// A number that the card may not have.
template <class Number>
std::optional<Number> number_of(const nvml_library& nvml, const nvml_function<nvml::device, Number*>& call,
                                nvml::device device) {
  Number out = 0;
  if (nvml(call, device, &out) != nvml::success) return std::nullopt;
  return out;
}

std::string uuid_of(const nvml_library& nvml, nvml::device device) {
  char text[97] = {};  // ends also where NVML's text does not
  return nvml(call::uuid, device, &text[0], 96U) == nvml::success ? text::utf8_clean(&text[0]) : "";
}

void read_memory(const nvml_library& nvml, nvml::device device, card_usage& card) {
  nvml::memory_v2 now{};
  now.version = nvml::version_word<nvml::memory_v2>(2);
  if (nvml(call::memory_info_v2, device, &now) == nvml::success) {
    card.memory_total = now.total;
    card.memory_used = now.used;
    card.memory_reserved = now.reserved;
    return;
  }
  nvml::memory old{};  // here the driver's own memory counts as used
  if (nvml(call::memory_info, device, &old) != nvml::success) return;
  card.memory_total = old.total;
  card.memory_used = old.used;
}

std::optional<std::uint64_t> number_in(const nvml::field_value& value) {
  if (value.status != nvml::success) return std::nullopt;
  if (value.type == nvml::value_unsigned_int) return value.value.unsigned_int;
  if (value.type == nvml::value_unsigned_long || value.type == nvml::value_unsigned_long_long)
    return value.value.unsigned_long;
  return std::nullopt;
}

void read_links(const nvml_library& nvml, nvml::device device, card_usage& card) {
  nvml::field_value fields[2] = {};
  fields[0].field = nvml::field_nvlink_transmitted;
  fields[1].field = nvml::field_nvlink_received;
  for (auto& field : fields) {
    field.scope = nvml::all_links;
    field.status = nvml::not_supported;
  }
  if (nvml(call::field_values, device, 2, &fields[0]) != nvml::success) return;
  const auto bytes = [](std::optional<std::uint64_t> kibibytes) {
    return kibibytes ? std::optional(*kibibytes * kib) : std::nullopt;
  };
  card.nvlink_transmitted = bytes(number_in(fields[0]));
  card.nvlink_received = bytes(number_in(fields[1]));
}

void read_mig_devices(const nvml_library& nvml, nvml::device device, card_usage& card) {
  unsigned is_cut = 0, will_be_cut = 0;
  if (nvml(call::mig_mode, device, &is_cut, &will_be_cut) != nvml::success || is_cut == 0) return;
  constexpr unsigned most = 16;
  const auto count = std::min(number_of(nvml, call::max_mig_devices, device).value_or(0), most);
  for (unsigned index = 0; index < count; ++index) {
    nvml::device part = nullptr;
    if (nvml(call::mig_device, device, index, &part) != nvml::success) continue;
    if (auto uuid = uuid_of(nvml, part); !uuid.empty()) card.mig_uuids.push_back(std::move(uuid));
  }
}

constexpr nvml::return_code too_small = nvml::insufficient_size;

/// For calls that get the size of an array and say how many entries there are.
template <class Entry>
nvml::return_code fill(std::vector<Entry>& entries, auto call) {
  constexpr unsigned most = 65'536;
  auto code = too_small;
  unsigned count = 64;
  for (int attempt = 0; attempt < 4 && code == too_small; ++attempt) {
    entries.assign(std::min(count, most), {});
    count = static_cast<unsigned>(entries.size());
    code = call(&count, entries.data());
    if (code == too_small) count = std::max<unsigned>(count, static_cast<unsigned>(entries.size())) + 16;
  }
  entries.resize(code == nvml::success ? std::min<std::size_t>(count, entries.size()) : 0);
  return code;
}

/// One list by process. A process may have parts of a card that is cut: those are added up.
std::map<unsigned, std::optional<std::uint64_t>> memory_by_process(const std::vector<nvml::process>& list) {
  std::map<unsigned, std::optional<std::uint64_t>> out;
  for (const auto& process : list) {
    auto& memory = out.try_emplace(process.pid, 0).first->second;
    const bool is_said = memory && process.used_memory != nvml::no_value;
    if (!is_said || __builtin_add_overflow(*memory, process.used_memory, &*memory)) memory.reset();
  }
  return out;
}

}  // namespace

std::vector<card_usage> usage_reader::read(const nvml_library& nvml) {
  std::vector<card_usage> out;
  unsigned cards = 0;
  if (nvml(call::count, &cards) != nvml::success) return out;
  for (unsigned index = 0; index < std::min(cards, most_cards); ++index) {
    nvml::device device = nullptr;
    if (nvml(call::handle_by_index, index, &device) != nvml::success) continue;
    card_usage card;
    card.uuid = uuid_of(nvml, device);
    if (card.uuid.empty() || std::ranges::find(out, card.uuid, &card_usage::uuid) != out.end()) continue;
    // Processes first: what they have is then part of what is used.
    read_processes(nvml, device, card);
    read_memory(nvml, device, card);
    nvml::utilization busy{};
    if (nvml(call::utilization, device, &busy) == nvml::success)
      card.utilization_ppm = std::min<std::uint64_t>(busy.gpu, 100) * ppm_in_percent;
    constexpr int core_sensor = 0;
    unsigned celsius = 0;
    if (nvml(call::temperature, device, core_sensor, &celsius) == nvml::success) card.temperature_celsius = celsius;
    card.power_mw = number_of(nvml, call::power, device);
    card.energy_mj = number_of(nvml, call::energy, device);
    card.throttle_reasons = number_of(nvml, call::throttle_reasons, device);
    read_links(nvml, device, card);
    read_mig_devices(nvml, device, card);
    out.push_back(std::move(card));
  }
  std::erase_if(last_sample_,
                [&](const auto& entry) { return std::ranges::find(out, entry.first, &card_usage::uuid) == out.end(); });
  return out;
}

void usage_reader::read_processes(const nvml_library& nvml, nvml::device device, card_usage& card) {
  std::map<unsigned, process_usage> by_pid;
  std::vector<nvml::process> list;
  for (const auto* function : {&call::compute_processes, &call::graphics_processes, &call::mps_processes}) {
    const auto code =
        fill(list, [&](unsigned* count, nvml::process* target) { return nvml(*function, device, count, target); });
    card.lists_processes = card.lists_processes || code == nvml::success;
    for (const auto& [pid, memory] : memory_by_process(list)) {
      const auto [entry, is_new] = by_pid.try_emplace(pid);
      auto& process = entry->second;
      process.pid = pid;
      // A process that is in two lists has its memory once.
      process.memory = is_new ? memory : memory && process.memory ? std::max(memory, process.memory) : std::nullopt;
      process.is_mps_client = process.is_mps_client || function == &call::mps_processes;
    }
  }
  std::vector<nvml::process_sample> samples;
  auto& last = last_sample_[card.uuid];
  const auto code = fill(samples, [&, since = last](unsigned* count, nvml::process_sample* target) {
    return nvml(call::process_utilization, device, target, count, since);
  });
  card.samples_processes = code == nvml::success || code == nvml::not_found || code == nvml::no_data;
  std::map<unsigned, std::pair<std::uint64_t, std::uint64_t>> sums;  // percent, samples
  for (const auto& sample : samples) {
    last = std::max(last, sample.time);
    auto& [percent, count] = sums[sample.pid];
    percent += std::min(sample.sm, 100U);
    ++count;
  }
  for (auto& [pid, process] : by_pid) {
    if (const auto sum = sums.find(pid); sum != sums.end())
      process.utilization_ppm = sum->second.first * ppm_in_percent / sum->second.second;
    process.owner = owner_of(proc_, pid);
    card.processes.push_back(std::move(process));
  }
}

}  // namespace agent::cards
