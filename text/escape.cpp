#include "text/escape.hpp"

#include <cstdint>

namespace text {
namespace {

struct character {
  std::uint32_t code = 0xfffd;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The character at the start of a non-empty text. Overlong forms, surrogates and what lies beyond U+10FFFF are
/// invalid; one byte is skipped then.
character first_of(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(index) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return {};
  return {code, length, true};
}

/// Changes how the rest of a line is displayed, or is not displayed at all.
bool misleads(std::uint32_t code) {
  return (code >= 0x7f && code <= 0x9f) || code == 0xad || code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffb);
}

void append_u(std::string& out, std::uint32_t code) {
  static constexpr char digits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[code >> shift & 0xf];
}

}  // namespace

std::string utf8_clean(std::string_view text, std::size_t max_bytes) {
  static constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const auto next = first_of(text);
    const std::string_view piece = next.valid ? text.substr(0, next.bytes) : replacement;
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
    text.remove_prefix(next.bytes);
  }
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto next = first_of(text);
    if (!next.valid) {
      append_u(out, 0xfffd);
    } else if (next.code == '"' || next.code == '\\') {
      out += '\\';
      out += static_cast<char>(next.code);
    } else if (next.code == '\n') {
      out += "\\n";
    } else if (next.code == '\t') {
      out += "\\t";
    } else if (next.code < 0x20 || misleads(next.code)) {
      append_u(out, next.code);
    } else {
      out += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
}

}  // namespace text
