#include "reconcilers/cuda/version.hpp"

#include <charconv>

namespace reconcilers::cuda {

std::optional<std::array<int, 3>> parse_numbers(std::string_view text) {
  std::array<int, 3> out{};
  if (text.starts_with('v')) text.remove_prefix(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool figure = !text.empty() && text.front() >= '0' && text.front() <= '9';
    if (!figure) return std::nullopt;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out[i]);
    if (wrong != std::errc() || out[i] > 99'999) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return out;
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

std::optional<version> parse_version(std::string_view text) {
  const auto numbers = parse_numbers(text);
  if (!numbers) return std::nullopt;
  return version{(*numbers)[0], (*numbers)[1]};
}

std::optional<driver_version> parse_driver(std::string_view text) {
  const auto numbers = parse_numbers(text);
  if (!numbers) return std::nullopt;
  return driver_version{(*numbers)[0], (*numbers)[1], (*numbers)[2]};
}

std::string to_string(const version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string to_string(const driver_version& driver_version) {
  auto out = std::to_string(driver_version.major);
  if (driver_version.minor == 0 && driver_version.patch == 0) return out;
  out += "." + std::to_string(driver_version.minor);
  if (driver_version.patch > 0) out += (driver_version.patch < 10 ? ".0" : ".") + std::to_string(driver_version.patch);
  return out;
}

}  // namespace reconcilers::cuda
