#include "kube/object.hpp"

namespace kube {
namespace {

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t text_length = 36;

constexpr bool is_dash(std::size_t index) { return index == 8 || index == 13 || index == 18 || index == 23; }

/// Only what to_string gives back is taken as a UUID; upper case would come out changed and fail as a precondition.
bool read_uuid(std::string_view text, std::array<std::uint8_t, 16>& uint8_ts) {
  if (text.size() != text_length) return false;
  std::size_t nibble = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_dash(i)) {
      if (text[i] != '-') return false;
      continue;
    }
    const std::size_t value = digits.find(text[i]);
    if (value == digits.npos) return false;
    uint8_ts[nibble / 2] = static_cast<std::uint8_t>(uint8_ts[nibble / 2] << 4 | value);
    ++nibble;
  }
  return true;
}

/// FNV-1a, from two starting points.
std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return seed;
}

}  // namespace

uid uid::parse(std::string_view text) {
  uid made;
  if (text.empty() || read_uuid(text, made.bytes)) return made;
  const std::uint64_t high = hash(text, 0xcbf29ce484222325ULL), low = hash(text, 0x84222325cbf29ce4ULL);
  for (std::size_t i = 0; i < 8; ++i) {
    made.bytes[i] = static_cast<std::uint8_t>(high >> (8 * i));
    made.bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * i));
  }
  return made;
}

std::string uid::to_string() const {
  std::string text;
  text.reserve(text_length);
  for (const std::uint8_t byte : bytes) {
    if (is_dash(text.size())) text += '-';
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace kube
