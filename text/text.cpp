#include "text/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace text {

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

/// Blanks and joiners that no one sees: a name with one of them looks like the one without.
bool is_unseen(char32_t c) {
  return c == 0xa0 || c == 0xad || (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x2065);
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
    else if (is_control(c) || reorders(c) || is_unseen(c))
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

/// The white space of Unicode, as trim() of CEL has it: the policies must read a field as we do.
std::string_view trimmed(std::string_view text) {
  static constexpr std::array<std::string_view, 25> blanks{" ",
                                                           "\t",
                                                           "\n",
                                                           "\v",
                                                           "\f",
                                                           "\r",
                                                           "\xc2\x85",
                                                           "\xc2\xa0",
                                                           "\xe1\x9a\x80",
                                                           "\xe2\x80\x80",
                                                           "\xe2\x80\x81",
                                                           "\xe2\x80\x82",
                                                           "\xe2\x80\x83",
                                                           "\xe2\x80\x84",
                                                           "\xe2\x80\x85",
                                                           "\xe2\x80\x86",
                                                           "\xe2\x80\x87",
                                                           "\xe2\x80\x88",
                                                           "\xe2\x80\x89",
                                                           "\xe2\x80\x8a",
                                                           "\xe2\x80\xa8",
                                                           "\xe2\x80\xa9",
                                                           "\xe2\x80\xaf",
                                                           "\xe2\x81\x9f",
                                                           "\xe3\x80\x80"};
  const auto take = [&](auto touches, auto cut) {
    for (;;) {
      const auto* blank = std::ranges::find_if(blanks, touches);
      if (blank == blanks.end()) return;
      cut(blank->size());
    }
  };
  take([&](std::string_view blank) { return text.starts_with(blank); },
       [&](std::size_t size) { text.remove_prefix(size); });
  take([&](std::string_view blank) { return text.ends_with(blank); },
       [&](std::size_t size) { text.remove_suffix(size); });
  return text;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::vector<std::string> quoted_in(std::string_view array) {
  std::vector<std::string> out;
  while (true) {
    const auto begin = array.find_first_of("\"'");
    if (begin == std::string_view::npos) return out;
    const auto end = array.find(array[begin], begin + 1);
    if (end == std::string_view::npos) return out;
    out.emplace_back(array.substr(begin + 1, end - begin - 1));
    array.remove_prefix(end + 1);
  }
}

}  // namespace text
