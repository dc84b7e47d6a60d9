#pragma once
// The words of a fixture that stand for numbers of NVML: brands, architectures, modes, errors, reasons of throttling.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/cards/nvml_abi.hpp"

namespace nvml {

struct word {
  std::string_view text;
  std::int64_t number;
};

std::span<const word> brands();
std::span<const word> architectures();
std::span<const word> compute_modes();
std::span<const word> fabric_states();
std::span<const word> throttle_reasons();
std::span<const word> event_types();
/// What a driver does with a limit that is set.
std::span<const word> memory_limit_ways();
std::span<const word> errors();

std::optional<std::int64_t> number_for(std::span<const word> words, std::string_view text);
std::string text_for(std::span<const word> words, std::int64_t number, std::string_view otherwise);
/// "default, prohibited, exclusive_process"
std::string list(std::span<const word> words);

}  // namespace nvml
