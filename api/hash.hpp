#pragma once
// FNV-1a, 64 bit: to see whether a text is another than before. Not for anything an enemy may choose.

#include <cstdint>
#include <string>
#include <string_view>

namespace api {

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL) {
  for (const char c : text) {
    seed ^= static_cast<unsigned char>(c);
    seed *= 0x100000001b3ULL;
  }
  return seed;
}

/// Sixteen digits.
inline std::string hex(std::uint64_t number) {
  std::string out(16, '0');
  for (auto digit = out.rbegin(); digit != out.rend(); ++digit, number >>= 4) *digit = "0123456789abcdef"[number & 15];
  return out;
}

/// A name for the certificates that a kube-scheduler was started with: the same for the same text.
inline std::string certificates_of(std::string_view authorities, std::string_view certificate) {
  return hex(fnv1a(certificate, fnv1a(authorities)));
}

}  // namespace api
