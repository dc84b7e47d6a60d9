#include "cli/output/table.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "text/text.hpp"

namespace cli {
namespace {

struct range {
  char32_t first, last;
};

// Unicode 15, EastAsianWidth.txt: W and F, neighbouring ranges joined over code points that are not assigned.
constexpr std::array<range, 36> wide{{{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
                                      {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
                                      {0x2648, 0x2653},   {0x267f, 0x267f},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},
                                      {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x2705, 0x2705},   {0x270a, 0x270b},
                                      {0x274c, 0x274c},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
                                      {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                      {0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
                                      {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x1b2ff},
                                      {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}}};
constexpr std::array<range, 9> none{{{0x0300, 0x036f},
                                     {0x1ab0, 0x1aff},
                                     {0x1dc0, 0x1dff},
                                     {0x200b, 0x200f},
                                     {0x20d0, 0x20ff},
                                     {0x302a, 0x302d},
                                     {0x3099, 0x309a},
                                     {0xfe00, 0xfe0f},
                                     {0xfe20, 0xfe2f}}};

bool in(char32_t c, auto ranges) {
  return std::ranges::any_of(ranges, [&](const range& range) { return c >= range.first && c <= range.last; });
}

}  // namespace

std::size_t width_of(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const auto c = text::take_character(text);
    if (c < 0x300)
      ++out;
    else if (!in(c, none))
      out += c != text::not_utf8 && in(c, wide) ? 2 : 1;
  }
  return out;
}

void table::add(std::vector<std::string> row) {
  row.resize(columns_);
  for (auto& cell : row) {
    cell = cell.empty() ? "-" : text::shown(cell, std::string::npos);
  }
  rows_.push_back(std::move(row));
}

void table::print(std::ostream& out, bool with_header) const {
  std::vector<std::size_t> widths(columns_);
  const auto printed = rows_ | std::views::drop(with_header ? 0 : 1);
  for (const auto& row : printed) {
    for (std::size_t i = 0; i < columns_; ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : printed) {
    for (std::size_t i = 0; i < columns_; ++i) {
      out << row[i];
      if (i + 1 < columns_) out << std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    out << "\n";
  }
}

}  // namespace cli
