#include "reconcilers/crl/text.hpp"

#include <cstdint>

namespace reconcilers::crl {

char32_t take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : (lead & 0xf0) == 0xe0       ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  char32_t value = length == 1 ? lead : length == 2 ? lead & 0x1f : length == 3 ? lead & 0x0f : lead & 0x07;
  bool good = length != 0 && length <= text.size();
  for (std::size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xc0) == 0x80;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  if (good && length == 3) good = value >= 0x800 && (value < 0xd800 || value > 0xdfff);
  if (good && length == 4) good = value >= 0x10000 && value <= 0x10ffff;
  text.remove_prefix(good ? length : 1);
  return good ? value : not_utf8;
}

namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff; }

// Trojan source: the explicit directional formatting characters, https://www.unicode.org/reports/tr9/
bool reorders(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string hex(std::uint32_t value, int digits) {
  static constexpr char figures[] = "0123456789abcdef";
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) {
    const auto figure = (value >> shift) & 0xf;
    if (figure != 0 || !out.empty() || shift < digits * 4) out += figures[figure];
  }
  return out;
}

}  // namespace

std::string shown(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const auto before = text;
    const auto c = take_character(text);
    std::string piece(before.substr(0, before.size() - text.size()));
    if (c == '\n' || c == '\t')
      piece = " ";
    else if (c == not_utf8)
      piece = "\\x" + hex(static_cast<std::uint8_t>(before.front()), 2);
    else if (is_control(c) || reorders(c))
      piece = "\\u{" + hex(c, 1) + "}";
    constexpr std::string_view ellipsis = "…";
    const auto room_after = text.empty() ? 0 : ellipsis.size();
    if (out.size() + piece.size() + room_after > max_bytes) return out + std::string(ellipsis);
    out += piece;
  }
  return out;
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const auto c = take_character(text);
    if (c == not_utf8 || reorders(c) || (is_control(c) && c != '\n' && c != '\t')) return false;
  }
  return true;
}

bool has_cjk(std::string_view text) {
  while (!text.empty()) {
    const auto c = take_character(text);
    if (c == not_utf8) continue;
    if ((c >= 0x2e80 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7af) || (c >= 0xf900 && c <= 0xfaff) ||
        (c >= 0xff00 && c <= 0xffef) || (c >= 0x20000 && c <= 0x3ffff)) {
      return true;
    }
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace reconcilers::crl
