#include "reconcilers/cuda/version.hpp"

#include <charconv>

namespace reconcilers::compat {

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

std::string to_string(const version& of) { return std::to_string(of.major) + "." + std::to_string(of.minor); }

std::string to_string(const driver_version& of) {
  auto out = std::to_string(of.major);
  if (of.minor == 0 && of.patch == 0) return out;
  out += "." + std::to_string(of.minor);
  if (of.patch > 0) out += (of.patch < 10 ? ".0" : ".") + std::to_string(of.patch);
  return out;
}

}  // namespace reconcilers::compat
