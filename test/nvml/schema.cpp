#include "schema.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "words.hpp"

namespace nvml {
namespace {

using nlohmann::json;
enum class type { text, flag, count, word, words, object, list };

struct row {
  std::string_view key;
  nvml::type type;
  std::span<const word> (*words)() = nullptr;
  bool required = false;
};

constexpr row node_rows[] = {{"source", type::list},
                             {"models", type::text},
                             {"driver", type::object},
                             {"defaults", type::object},
                             {"cards", type::list, nullptr, true},
                             {"events", type::list},
                             {"hangs", type::flag}};
constexpr row driver_rows[] = {{"version", type::text, nullptr, true},
                               {"cuda", type::text, nullptr, true},
                               {"kernel_module", type::text},
                               {"branch", type::text}};
constexpr row event_rows[] = {{"sequence", type::count, nullptr, true},
                              {"card", type::text, nullptr, true},
                              {"type", type::word, event_types},
                              {"xid", type::count},
                              {"gpu_instance", type::count},
                              {"compute_instance", type::count}};
constexpr row card_rows[] = {{"uuid", type::text, nullptr, true},
                             {"pci_bus_id", type::text, nullptr, true},
                             {"minor", type::count, nullptr, true},
                             {"model", type::text},
                             {"name", type::text, nullptr, true},
                             {"serial", type::text},
                             {"board_part", type::text},
                             {"vbios", type::text},
                             {"gsp_firmware", type::text},
                             {"brand", type::word, brands},
                             {"architecture", type::word, architectures},
                             {"compute_capability", type::text},
                             {"cuda_cores", type::count},
                             {"multiprocessors", type::count},
                             {"memory_bus_bits", type::count},
                             {"pci_device_id", type::text},
                             {"pci_subsystem_id", type::text},
                             {"pci_class", type::text},
                             {"pcie_path", type::text},
                             {"pcie_generation", type::count},
                             {"pcie_generation_max", type::count},
                             {"pcie_width", type::count},
                             {"pcie_width_max", type::count},
                             {"pcie_replays", type::count},
                             {"pcie_rx_kib_s", type::count},
                             {"pcie_tx_kib_s", type::count},
                             {"numa_node", type::count},
                             {"cpus", type::text},
                             {"module_id", type::count},
                             {"memory_total_mib", type::count},
                             {"memory_reserved_mib", type::count},
                             {"memory_used_mib", type::count},
                             {"bar1_total_mib", type::count},
                             {"bar1_used_mib", type::count},
                             {"temperature_c", type::count},
                             {"memory_temperature_c", type::count},
                             {"temperature_slowdown_c", type::count},
                             {"temperature_shutdown_c", type::count},
                             {"temperature_max_c", type::count},
                             {"memory_temperature_max_c", type::count},
                             {"fan_percent", type::count},
                             {"power_usage_mw", type::count},
                             {"power_limit_mw", type::count},
                             {"power_default_mw", type::count},
                             {"power_min_mw", type::count},
                             {"power_max_mw", type::count},
                             {"energy_mj", type::count},
                             {"utilisation_gpu", type::count},
                             {"utilisation_memory", type::count},
                             {"utilisation_encoder", type::count},
                             {"utilisation_decoder", type::count},
                             {"clock_graphics_mhz", type::count},
                             {"clock_sm_mhz", type::count},
                             {"clock_memory_mhz", type::count},
                             {"clock_video_mhz", type::count},
                             {"clock_graphics_max_mhz", type::count},
                             {"clock_sm_max_mhz", type::count},
                             {"clock_memory_max_mhz", type::count},
                             {"clock_video_max_mhz", type::count},
                             {"throttle_reasons", type::words, throttle_reasons},
                             {"performance_state", type::count},
                             {"compute_mode", type::word, compute_modes},
                             {"persistence", type::flag},
                             {"display", type::flag},
                             {"ecc", type::flag},
                             {"ecc_pending", type::flag},
                             {"ecc_corrected", type::count},
                             {"ecc_uncorrected", type::count},
                             {"ecc_corrected_total", type::count},
                             {"ecc_uncorrected_total", type::count},
                             {"remapped_correctable", type::count},
                             {"remapped_uncorrectable", type::count},
                             {"remap_pending", type::flag},
                             {"remap_failed", type::flag},
                             {"remap_histogram", type::list},
                             {"retired_single_bit", type::count},
                             {"retired_double_bit", type::count},
                             {"retired_pending", type::flag},
                             {"p2p", type::flag},
                             {"nvlink_version", type::count},
                             {"nvlinks", type::list},
                             {"nvlink_tx_kib", type::count},
                             {"nvlink_rx_kib", type::count},
                             {"fabric", type::object},
                             {"mig_profiles", type::list},
                             {"mig", type::object},
                             {"processes", type::list},
                             {"lost", type::flag},
                             {"memory_limits", type::word, memory_limit_ways},
                             {"errors", type::object}};
constexpr row link_rows[] = {{"peer", type::text, nullptr, true}, {"count", type::count}, {"down", type::flag}};
constexpr row fabric_rows[] = {{"state", type::word, fabric_states, true},
                               {"status", type::word, errors},
                               {"clique", type::count},
                               {"cluster", type::text},
                               {"health_mask", type::count},
                               {"health_summary", type::count}};
constexpr row mig_rows[] = {{"enabled", type::flag, nullptr, true}, {"pending", type::flag}, {"instances", type::list}};
constexpr row instance_rows[] = {{"id", type::count, nullptr, true},
                                 {"profile", type::text, nullptr, true},
                                 {"start", type::count},
                                 {"compute", type::list, nullptr, true}};
constexpr row compute_rows[] = {{"id", type::count, nullptr, true},
                                {"slices", type::count, nullptr, true},
                                {"uuid", type::text, nullptr, true},
                                {"start", type::count},
                                {"memory_used_mib", type::count}};
constexpr row process_rows[] = {{"pid", type::count, nullptr, true},
                                {"kind", type::text},
                                {"name", type::text},
                                {"memory_mib", type::count},
                                {"gpu_instance", type::count},
                                {"compute_instance", type::count},
                                {"sm", type::count},
                                {"memory", type::count},
                                {"encoder", type::count},
                                {"decoder", type::count},
                                {"time_us", type::count}};

// "" when the value has the row's type, otherwise what is allowed.
std::string allowed(const row& row, const json& value) {
  if (value.is_null()) return {};  // the same as an absent key; a card may so drop a fact of its model
  const auto is_word = [&row](const json& text) {
    return text.is_string() && number_for(row.words(), text.get_ref<const std::string&>());
  };
  switch (row.type) {
    case type::text:
      return value.is_string() ? "" : "a text";
    case type::flag:
      return value.is_boolean() ? "" : "true or false";
    case type::count:
      return value.is_number_unsigned() ? "" : "a whole number from 0";
    case type::object:
      return value.is_object() ? "" : "an object or null";
    case type::list:
      return value.is_array() ? "" : "a list";
    case type::word:
      return is_word(value) ? "" : list(row.words());
    case type::words:
      return value.is_array() && std::ranges::all_of(value, is_word) ? "" : "a list with words of " + list(row.words());
  }
  return {};
}

std::string keys(std::span<const row> rows) {
  std::string text;
  for (const auto& row : rows) text.append(text.empty() ? "" : ", ").append(row.key);
  return text;
}

std::string fault(const std::string& place, const json& object, std::span<const row> rows) {
  if (!object.is_object()) return place + ": not an object; allowed keys are " + keys(rows);
  for (const auto& [key, value] : object.items()) {
    const auto row = std::ranges::find(rows, key, &row::key);
    if (row == rows.end()) return place + "/" + key + ": unknown key; allowed are " + keys(rows);
    if (const auto choice = allowed(*row, value); !choice.empty())
      return place + "/" + key + ": " + value.dump() + " is not allowed; allowed are " + choice;
  }
  for (const auto& row : rows)
    if (row.required && !object.contains(row.key)) return place + ": the key " + std::string(row.key) + " is missing";
  return {};
}

std::string fault_in_list(const std::string& place, const json& object, const char* key, std::span<const row> rows) {
  if (!object.contains(key)) return {};
  for (std::size_t index = 0; const auto& item : object[key])
    if (auto text = fault(place + "/" + key + "/" + std::to_string(index++), item, rows); !text.empty()) return text;
  return {};
}

std::string fault_in_mig(const std::string& place, const json& card) {
  if (!card.contains("mig") || card["mig"].is_null()) return {};
  const auto& mig = card["mig"];
  if (auto text = fault(place + "/mig", mig, mig_rows); !text.empty()) return text;
  if (auto text = fault_in_list(place + "/mig", mig, "instances", instance_rows); !text.empty()) return text;
  for (std::size_t index = 0; const auto& instance : mig.value("instances", json::array())) {
    const auto here = place + "/mig/instances/" + std::to_string(index++);
    if (auto text = fault_in_list(here, instance, "compute", compute_rows); !text.empty()) return text;
    std::string names;
    for (const auto& profile : card.value("mig_profiles", json::array())) {
      if (profile["name"] == instance["profile"]) names.clear();
      if (profile["name"] == instance["profile"]) break;
      names += (names.empty() ? "" : ", ") + profile["name"].get<std::string>();
    }
    if (!names.empty())
      return here + "/profile: " + instance["profile"].dump() + " is not allowed; allowed are " + names;
  }
  return {};
}

std::string fault_in_errors(const std::string& place, const json& card) {
  if (!card.contains("errors")) return {};
  for (const auto& [function, error] : card["errors"].items())
    if (!error.is_string() || !number_for(errors(), error.get_ref<const std::string&>()))
      return place + "/errors/" + function + ": " + error.dump() + " is not allowed; allowed are " + list(errors());
  return {};
}

std::string fault_in_card(const std::string& place, const json& card) {
  if (auto text = fault(place, card, card_rows); !text.empty()) return text;
  if (auto text = fault_in_list(place, card, "nvlinks", link_rows); !text.empty()) return text;
  if (auto text = fault_in_list(place, card, "processes", process_rows); !text.empty()) return text;
  if (card.contains("fabric") && !card["fabric"].is_null())
    if (auto text = fault(place + "/fabric", card["fabric"], fabric_rows); !text.empty()) return text;
  if (auto text = fault_in_mig(place, card); !text.empty()) return text;
  return fault_in_errors(place, card);
}

}  // namespace

std::string fault_in(const json& node) {
  if (auto text = fault("", node, node_rows); !text.empty()) return text;
  if (node.contains("driver") && !node["driver"].is_null())
    if (auto text = fault("/driver", node["driver"], driver_rows); !text.empty()) return text;
  for (std::size_t index = 0; const auto& card : node["cards"])
    if (auto text = fault_in_card("/cards/" + std::to_string(index++), card); !text.empty()) return text;
  return fault_in_list("", node, "events", event_rows);
}

}  // namespace nvml
