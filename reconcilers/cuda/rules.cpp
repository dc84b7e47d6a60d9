#include "reconcilers/cuda/rules.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

constexpr std::array<toolkit_row, 23> toolkit_table{{
    {{13, 1}, {590, 44, 1}}, {{13, 0}, {580, 65, 6}}, {{12, 9}, {575, 51, 3}},  {{12, 8}, {570, 26, 0}},
    {{12, 6}, {560, 28, 3}}, {{12, 5}, {555, 42, 2}}, {{12, 4}, {550, 54, 14}}, {{12, 3}, {545, 23, 6}},
    {{12, 2}, {535, 54, 3}}, {{12, 1}, {530, 30, 2}}, {{12, 0}, {525, 60, 13}}, {{11, 8}, {520, 61, 5}},
    {{11, 7}, {515, 43, 4}}, {{11, 6}, {510, 39, 1}}, {{11, 5}, {495, 29, 5}},  {{11, 4}, {470, 42, 1}},
    {{11, 3}, {465, 19, 1}}, {{11, 2}, {460, 27, 3}}, {{11, 1}, {455, 23, 0}},  {{11, 0}, {450, 36, 6}},
    {{10, 2}, {440, 33, 0}}, {{10, 1}, {418, 39, 0}}, {{10, 0}, {410, 48, 0}},
}};

/// The documents write 450, 525 and 580, and that within 450 it takes 450.80.02 (CUDA 11.0 came with an older one).
constexpr std::array<family_row, 3> family_table{{
    {13, {580, 0, 0}},
    {12, {525, 0, 0}},
    {11, {450, 80, 2}},
}};

constexpr std::array<removal_row, 1> removal_table{{{{13, 0}, {7, 5}}}};

/// Newest capability first.
constexpr std::array<first_toolkit_row, 8> first_table{{
    {{12, 0}, {12, 8}},
    {{10, 0}, {12, 8}},
    {{9, 0}, {11, 8}},
    {{8, 9}, {11, 8}},
    {{8, 6}, {11, 1}},
    {{8, 0}, {11, 0}},
    {{7, 5}, {10, 0}},
    {{7, 0}, {9, 0}},
}};

constexpr std::array<shim_row, 1> shim_table{{
    {"vgpu",
     "GPU-Manager's vGPU library",
     "GPU-Manager 的 vGPU 库",
     {12, 4},
     "tencent.com/vcuda-core",
     100,
     sources::gpu_manager},
}};

/// Words of a card's name, in lower case. The first that is found decides.
struct name_row {
  std::string_view word;
  card_class is;
};
/// RTX cards of workstations: "select NGC Server Ready SKUs", which a name does not tell.
constexpr std::array<name_row, 32> name_table{{
    {"geforce", card_class::other},     {"titan", card_class::other},       {"gtx", card_class::other},
    {"quadro", card_class::unknown},    {"rtx", card_class::unknown},       {"tesla", card_class::data_centre},
    {"a2", card_class::data_centre},    {"a10", card_class::data_centre},   {"a10g", card_class::data_centre},
    {"a16", card_class::data_centre},   {"a30", card_class::data_centre},   {"a40", card_class::data_centre},
    {"a100", card_class::data_centre},  {"a800", card_class::data_centre},  {"h20", card_class::data_centre},
    {"h100", card_class::data_centre},  {"h200", card_class::data_centre},  {"h800", card_class::data_centre},
    {"gh200", card_class::data_centre}, {"b200", card_class::data_centre},  {"b300", card_class::data_centre},
    {"gb200", card_class::data_centre}, {"gb300", card_class::data_centre}, {"l2", card_class::data_centre},
    {"l4", card_class::data_centre},    {"l20", card_class::data_centre},   {"l40", card_class::data_centre},
    {"l40s", card_class::data_centre},  {"v100", card_class::data_centre},  {"t4", card_class::data_centre},
    {"p100", card_class::data_centre},  {"p40", card_class::data_centre},
}};

bool is_letter_or_figure(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool name_has_word(std::string_view text, std::string_view word) {
  for (auto match = text.find(word); match != std::string_view::npos; match = text.find(word, match + 1)) {
    const bool begins = match == 0 || !is_letter_or_figure(text[match - 1]);
    const auto after = match + word.size();
    if (begins && (after == text.size() || !is_letter_or_figure(text[after]))) return true;
  }
  return false;
}

}  // namespace

std::span<const toolkit_row> toolkits() { return toolkit_table; }

std::optional<version> cuda_of(const driver_version& driver) {
  const auto match = std::ranges::find_if(toolkit_table, [&](const toolkit_row& row) { return driver >= row.driver; });
  return match == toolkit_table.end() ? std::nullopt : std::optional(match->cuda);
}

std::optional<driver_version> driver_for(const version& cuda) {
  const auto match = std::ranges::find(toolkit_table, cuda, &toolkit_row::cuda);
  return match == toolkit_table.end() ? std::nullopt : std::optional(match->driver);
}

std::span<const family_row> families() { return family_table; }

const family_row* family_of(int major) {
  const auto match = std::ranges::find(family_table, major, &family_row::major);
  return match == family_table.end() ? nullptr : &*match;
}

std::span<const removal_row> removals() { return removal_table; }

std::optional<version> first_toolkit_for(const version& capability) {
  const auto match = std::ranges::find_if(first_table, [&](const auto& row) { return capability >= row.capability; });
  return match == first_table.end() ? std::nullopt : std::optional(match->cuda);
}

std::span<const shim_row> shims() { return shim_table; }

const shim_row* shim_of(std::string_view mode) {
  const auto match = std::ranges::find(shim_table, mode, &shim_row::mode);
  return match == shim_table.end() ? nullptr : &*match;
}

card_class class_of(std::string_view product) {
  const auto name = text::lower_case(product);
  const auto match =
      std::ranges::find_if(name_table, [&](const name_row& row) { return name_has_word(name, row.word); });
  return match == name_table.end() ? card_class::unknown : match->is;
}

}  // namespace reconcilers::cuda
