#include "reconcilers/cuda/rules.hpp"

#include <algorithm>
#include <array>
#include <limits>

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

/// Drivers that know a CUDA of which there is no toolkit (nvidia-smi of 565.57.01).
constexpr std::array<toolkit_row, 1> drivers_without_toolkit{{{{12, 7}, {565, 57, 1}}}};

/// Toolkits older than the table of drivers.
constexpr std::array<version, 24> older_toolkits{{
    {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1},  {4, 2},
    {5, 0}, {5, 5}, {6, 0}, {6, 5}, {7, 0}, {7, 5}, {8, 0}, {9, 0}, {9, 1}, {9, 2}, {10, 0}, {10, 1},
}};

/// Capabilities of cards that the table of first toolkits has not: Fermi and older, and Tegra K1.
constexpr std::array<version, 7> older_capabilities{{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 2}}};

/// The documents write 450, 525 and 580, and that within 450 it takes 450.80.02 (CUDA 11.0 came with an older one).
constexpr std::array<family_row, 3> family_table{{
    {13, {580, 0, 0}},
    {12, {525, 0, 0}},
    {11, {450, 80, 2}},
}};

constexpr std::array<removal_row, 4> removal_table{{
    {{9, 0}, {3, 0}},
    {{11, 0}, {3, 5}},
    {{12, 0}, {5, 0}},
    {{13, 0}, {7, 5}},
}};

/// Branches as whole numbers, so the first is the oldest that has any card of the row.
constexpr std::array<driver_branches_row, 9> branches_table{{
    {{2, 0}, {3, 0}, 0, 390},
    {{3, 0}, {5, 0}, 0, 470},
    {{5, 0}, {7, 5}, 0, 580},
    {{7, 5}, {8, 0}, 410, 0},
    {{8, 0}, {8, 6}, 450, 0},
    {{8, 6}, {8, 7}, 455, 0},
    {{8, 9}, {9, 0}, 520, 0},
    {{9, 0}, {10, 0}, 515, 0},
    {{10, 0}, {13, 0}, 570, 0},
}};

/// 304 to 396 are older than the table of toolkits.
constexpr std::array<int, 53> branch_table{304, 310, 313, 319, 325, 331, 334, 337, 340, 343, 346, 349, 352, 355,
                                           358, 361, 364, 367, 370, 375, 378, 381, 384, 387, 390, 396, 410, 415,
                                           418, 430, 435, 440, 450, 455, 460, 465, 470, 495, 510, 515, 520, 525,
                                           530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590};

/// Newest capability first.
constexpr std::array<first_toolkit_row, 22> first_table{{
    {{12, 1}, {12, 9}}, {{12, 0}, {12, 8}},      {{11, 0}, {13, 0}, true}, {{10, 3}, {12, 9}},     {{10, 0}, {12, 8}},
    {{9, 0}, {11, 8}},  {{8, 9}, {11, 8}},       {{8, 7}, {11, 4}, true},  {{8, 6}, {11, 1}},      {{8, 0}, {11, 0}},
    {{7, 5}, {10, 0}},  {{7, 2}, {10, 0}, true}, {{7, 0}, {9, 0}},         {{6, 2}, {8, 0}, true}, {{6, 1}, {8, 0}},
    {{6, 0}, {8, 0}},   {{5, 3}, {7, 0}, true},  {{5, 2}, {7, 0}},         {{5, 0}, {6, 0}},       {{3, 7}, {6, 5}},
    {{3, 5}, {5, 0}},   {{3, 0}, {4, 2}},
}};

constexpr std::array<shim_row, 1> shim_table{{
    {"vgpu",
     "GPU-Manager's vGPU library",
     "GPU-Manager 的 vGPU 库",
     {12, 4},
     "tencent.com/vcuda-core",
     100,
     "GPU-Manager guide of the platform, baseline of the vGPU library"},
}};

}  // namespace

std::span<const toolkit_row> toolkits() { return toolkit_table; }

std::optional<version> cuda_of(const driver_version& driver) {
  const auto is_known = [&](const toolkit_row& row) { return driver >= row.driver; };
  const auto match = std::ranges::find_if(toolkit_table, is_known);
  if (match == toolkit_table.end()) return std::nullopt;
  const auto other = std::ranges::find_if(drivers_without_toolkit, is_known);
  return other == drivers_without_toolkit.end() ? match->cuda : std::max(match->cuda, other->cuda);
}

std::optional<version> cuda_of_branch(int branch) { return cuda_of({branch, std::numeric_limits<int>::max(), 0}); }

std::optional<driver_version> driver_for(const version& cuda) {
  const auto match = std::ranges::find(toolkit_table, cuda, &toolkit_row::cuda);
  return match == toolkit_table.end() ? std::nullopt : std::optional(match->driver);
}

bool is_toolkit(const version& cuda) {
  return driver_for(cuda).has_value() || std::ranges::find(older_toolkits, cuda) != older_toolkits.end();
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

bool is_capability_of_cards(const version& capability) {
  return std::ranges::find(first_table, capability, &first_toolkit_row::capability) != first_table.end() ||
         std::ranges::find(older_capabilities, capability) != older_capabilities.end();
}

bool is_tegra(const version& capability) {
  const auto* own = std::ranges::find(first_table, capability, &first_toolkit_row::capability);
  return own != first_table.end() && own->tegra;
}

std::vector<version> runnable_code(const version& capability, const version& toolkit) {
  std::vector<version> out;
  if (is_tegra(capability)) return out;
  for (const auto& row : first_table) {
    if (!row.tegra && row.capability.major == capability.major && row.capability < capability && toolkit >= row.cuda)
      out.insert(out.begin(), row.capability);
  }
  return out;
}

std::span<const int> released_branches() { return branch_table; }

const driver_branches_row* driver_branches_for(const version& capability) {
  const auto* match = std::ranges::find_if(
      branches_table, [&](const auto& row) { return capability >= row.lowest && capability < row.below; });
  return match == branches_table.end() ? nullptr : match;
}

std::span<const shim_row> shims() { return shim_table; }

const shim_row* shim_of(std::string_view mode) {
  const auto match = std::ranges::find(shim_table, mode, &shim_row::mode);
  return match == shim_table.end() ? nullptr : &*match;
}

}  // namespace reconcilers::cuda
