#include "words.hpp"

#include <algorithm>

namespace nvml {
namespace {

constexpr word brand_words[] = {{"unknown", 0}, {"quadro", 1},       {"tesla", 2},      {"geforce", 5},    {"titan", 6},
                                {"nvidia", 14}, {"geforce_rtx", 15}, {"titan_rtx", 16}, {"nvidia_rtx", 13}};
constexpr word architecture_words[] = {{"kepler", 2}, {"maxwell", 3}, {"pascal", 4}, {"volta", 5},      {"turing", 6},
                                       {"ampere", 7}, {"ada", 8},     {"hopper", 9}, {"blackwell", 10}, {"rubin", 13}};
constexpr word compute_mode_words[] = {
    {"default", 0}, {"exclusive_thread", 1}, {"prohibited", 2}, {"exclusive_process", 3}};
constexpr word fabric_words[] = {{"not_supported", 0}, {"not_started", 1}, {"in_progress", 2}, {"completed", 3}};
constexpr word throttle_words[] = {{"idle", throttle_idle},
                                   {"applications_clocks", throttle_applications_clocks},
                                   {"sw_power_cap", throttle_sw_power_cap},
                                   {"hw_slowdown", throttle_hw_slowdown},
                                   {"sync_boost", throttle_sync_boost},
                                   {"sw_thermal", throttle_sw_thermal},
                                   {"hw_thermal", throttle_hw_thermal},
                                   {"hw_power_brake", throttle_hw_power_brake},
                                   {"display_clocks", throttle_display_clocks}};
constexpr word event_words[] = {{"xid", event_xid},
                                {"single_bit_ecc", event_single_bit_ecc},
                                {"double_bit_ecc", event_double_bit_ecc},
                                {"performance_state", event_performance_state},
                                {"clock", event_clock}};
constexpr word memory_limit_words[] = {{"kept", 0}, {"ignored", 1}, {"off", 2}};
constexpr word error_words[] = {{"success", success},
                                {"uninitialized", uninitialized},
                                {"invalid_argument", invalid_argument},
                                {"not_supported", not_supported},
                                {"no_permission", no_permission},
                                {"not_found", not_found},
                                {"insufficient_power", insufficient_power},
                                {"driver_not_loaded", driver_not_loaded},
                                {"timeout", timeout},
                                {"irq_issue", irq_issue},
                                {"corrupted_inforom", corrupted_inforom},
                                {"gpu_is_lost", gpu_is_lost},
                                {"reset_required", reset_required},
                                {"operating_system", operating_system},
                                {"in_use", in_use},
                                {"memory", memory_error},
                                {"no_data", no_data},
                                {"not_ready", not_ready},
                                {"gpu_not_found", gpu_not_found},
                                {"invalid_state", invalid_state},
                                {"unknown", unknown}};

}  // namespace

std::span<const word> brands() { return brand_words; }
std::span<const word> architectures() { return architecture_words; }
std::span<const word> compute_modes() { return compute_mode_words; }
std::span<const word> fabric_states() { return fabric_words; }
std::span<const word> throttle_reasons() { return throttle_words; }
std::span<const word> event_types() { return event_words; }
std::span<const word> memory_limit_ways() { return memory_limit_words; }
std::span<const word> errors() { return error_words; }

std::optional<std::int64_t> number_for(std::span<const word> words, std::string_view text) {
  const auto match = std::ranges::find(words, text, &word::text);
  if (match == words.end()) return std::nullopt;
  return match->number;
}

std::string text_for(std::span<const word> words, std::int64_t number, std::string_view otherwise) {
  const auto match = std::ranges::find(words, number, &word::number);
  return std::string(match == words.end() ? otherwise : match->text);
}

std::string list(std::span<const word> words) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : ", ").append(word.text);
  return text;
}

}  // namespace nvml
