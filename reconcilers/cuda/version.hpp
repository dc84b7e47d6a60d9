#pragma once
// Versions as they are compared: number by number, never as text and never one part without the part before it. CUDA
// and compute capability are pairs, a driver has three numbers.

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace reconcilers::cuda {

/// "12.4": a CUDA version or a compute capability.
struct version {
  int major = 0, minor = 0;
  friend auto operator<=>(const version&, const version&) = default;
};

/// "550.144.03", of the NVIDIA driver for Linux.
struct driver_version {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const driver_version&, const driver_version&) = default;
};

/// Up to three numbers with dots between, a "v" before them allowed; what is not written is 0. Empty for anything else,
/// and for a number above 99,999.
std::optional<std::array<int, 3>> parse_numbers(std::string_view text);
/// "12.4", "12.4.1" (CUDA_VERSION is written so), "12".
std::optional<version> parse_version(std::string_view text);
/// "550.144.03", "550".
std::optional<driver_version> parse_driver(std::string_view text);

std::string to_string(const version& version);
/// The last number has two figures, as NVIDIA writes it: 525.60.13, 550.144.03; left out where it and the one before it
/// are 0.
std::string to_string(const driver_version& driver_version);

}  // namespace reconcilers::cuda
