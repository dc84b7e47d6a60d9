// ECC, row remapping, retired pages, fabric, and the field values that monitoring reads in one call.
#include <chrono>

#include "../call.hpp"
#include "../words.hpp"
#include "fabric.hpp"

using namespace nvml;

namespace {

// [corrected, uncorrected][since the driver was loaded, for the life of the card]
constexpr const char* ecc_keys[2][2] = {{"ecc_corrected", "ecc_corrected_total"},
                                        {"ecc_uncorrected", "ecc_uncorrected_total"}};

std::uint64_t ecc_count(const subject& subject, unsigned error, unsigned counter) {
  if (error > 1 || counter > 1) throw failure{invalid_argument};
  if (!number(subject, "ecc")) throw failure{not_supported};
  return static_cast<std::uint64_t>(number(subject, ecc_keys[error][counter]));
}

struct field {
  unsigned id;
  const char* key;
  unsigned scale = 1;
};
constexpr field fields[] = {{1, "ecc"},
                            {3, "ecc_corrected"},
                            {4, "ecc_uncorrected"},
                            {5, "ecc_corrected_total"},
                            {6, "ecc_uncorrected_total"},
                            {29, "retired_single_bit"},
                            {30, "retired_double_bit"},
                            {31, "retired_pending"},
                            {82, "memory_temperature_c"},
                            {83, "energy_mj"},
                            {94, "pcie_replays"},
                            {field_nvlink_transmitted, "nvlink_tx_kib"},
                            {field_nvlink_received, "nvlink_rx_kib"},
                            {142, "remapped_correctable"},
                            {143, "remapped_uncorrectable"},
                            {144, "remap_pending"},
                            {145, "remap_failed"},
                            {185, "power_usage_mw"},
                            {186, "power_usage_mw"}};

void read_field(const subject& subject, field_value& value) {
  value.time =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  value.latency_us = 0;
  value.type = value_unsigned_long_long;
  value.status = answer([&] {
    if (value.field == 91) {  // the number of links
      value.value.unsigned_long = link_count(subject.card);
      return;
    }
    const auto row = std::ranges::find(fields, value.field, &field::id);
    if (row == std::end(fields)) throw failure{not_supported};
    value.value.unsigned_long = static_cast<std::uint64_t>(number(subject, row->key));
  });
}

template <class Info>
void fill_fabric(const subject& subject, Info& target) {
  const auto fabric = subject.fact("fabric");
  const auto number_of = [](std::span<const word> words, const std::string& text) { return *number_for(words, text); };
  target.state = static_cast<unsigned char>(number_of(fabric_states(), fabric["state"]));
  target.status = static_cast<return_code>(number_of(errors(), fabric.value("status", "success")));
  target.clique = fabric.value("clique", 0U);
  parse_cluster(fabric.value("cluster", ""), target.cluster);
}

}  // namespace

NVML_EXPORT nvmlDeviceGetEccMode(device device, int* current, int* pending) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetEccMode", device);
    require(current, pending);
    *current = static_cast<int>(number(found, "ecc"));
    *pending = found.card.contains("ecc_pending") ? static_cast<int>(number(found, "ecc_pending")) : *current;
  });
}

NVML_EXPORT nvmlDeviceGetDefaultEccMode(device device, int* mode) {
  const auto code = answer_fact("nvmlDeviceGetDefaultEccMode", device, "ecc", mode);
  if (code == success) *mode = 1;
  return code;
}

NVML_EXPORT nvmlDeviceGetTotalEccErrors(device device, unsigned error, unsigned counter, std::uint64_t* count) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetTotalEccErrors", device);
    require(count);
    *count = ecc_count(found, error, counter);
  });
}

// The fixture counts errors of the card's memory only; other places have none.
NVML_EXPORT nvmlDeviceGetMemoryErrorCounter(device device, unsigned error, unsigned counter, unsigned place,
                                            std::uint64_t* count) {
  constexpr unsigned device_memory = 2, dram = 2;
  return answer([&] {
    const auto found = find("nvmlDeviceGetMemoryErrorCounter", device);
    require(count);
    *count = place == device_memory || place == dram ? ecc_count(found, error, counter) : 0;
  });
}

NVML_EXPORT nvmlDeviceGetDetailedEccErrors(device device, unsigned error, unsigned counter, ecc_counts* counts) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetDetailedEccErrors", device);
    require(counts);
    *counts = {0, 0, ecc_count(found, error, counter), 0};
  });
}

NVML_EXPORT nvmlDeviceGetRemappedRows(device device, unsigned* correctable, unsigned* uncorrectable,
                                      unsigned* is_pending, unsigned* has_failed) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetRemappedRows", device);
    require(correctable, uncorrectable, is_pending, has_failed);
    *correctable = static_cast<unsigned>(number(found, "remapped_correctable"));
    *uncorrectable = static_cast<unsigned>(number(found, "remapped_uncorrectable"));
    *is_pending = static_cast<unsigned>(number(found, "remap_pending"));
    *has_failed = static_cast<unsigned>(number(found, "remap_failed"));
  });
}

NVML_EXPORT nvmlDeviceGetRowRemapperHistogram(device device, remap_histogram* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetRowRemapperHistogram", device);
    require(target);
    const auto banks = found.fact("remap_histogram").get<std::vector<unsigned>>();
    if (banks.size() != 5) throw failure{unknown};
    *target = {banks[0], banks[1], banks[2], banks[3], banks[4]};
  });
}

NVML_EXPORT nvmlDeviceGetRetiredPages(device device, unsigned cause, unsigned* count, std::uint64_t* addresses) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetRetiredPages", device);
    const auto pages = number(found, cause == 0 ? "retired_single_bit" : "retired_double_bit");
    fill(std::vector<std::uint64_t>(static_cast<std::size_t>(pages)), count, addresses);
  });
}

NVML_EXPORT nvmlDeviceGetRetiredPagesPendingStatus(device device, int* is_pending) {
  return answer_fact("nvmlDeviceGetRetiredPagesPendingStatus", device, "retired_pending", is_pending);
}

NVML_EXPORT nvmlDeviceGetFieldValues(device device, int count, field_value* values) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetFieldValues", device);
    require(values);
    if (count < 0) throw failure{invalid_argument};
    for (auto& value : std::span(values, static_cast<std::size_t>(count))) read_field(found, value);
  });
}

NVML_EXPORT nvmlDeviceGetGpuFabricInfo(device device, fabric_info* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuFabricInfo", device);
    require(target);
    fill_fabric(found, *target);
  });
}

/// Serves versions 2 and 3; the caller's version word says which one.
NVML_EXPORT nvmlDeviceGetGpuFabricInfoV(device device, fabric_info_v3* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuFabricInfoV", device);
    require(target);
    const bool is_third = target->version == version_word<fabric_info_v3>(3);
    auto& older = *reinterpret_cast<fabric_info_v2*>(target);
    if (!is_third && older.version != version_word<fabric_info_v2>(2)) throw failure{argument_version_mismatch};
    fill_fabric(found, older);  // version 3 only appends a member
    older.health_mask = found.fact("fabric").value("health_mask", 0U);
    if (is_third) target->health_summary = found.fact("fabric").value("health_summary", static_cast<unsigned char>(0));
  });
}
