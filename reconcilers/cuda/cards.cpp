#include "reconcilers/cuda/cards.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using enum card_class;

/// `name`: words that have to stand in the card's name in this order; a hyphen joins what has to stand together.
/// `version{0, 0}`: several cards have this name.
struct card_row {
  std::string_view name;
  version capability;
  card_class kind = unknown;
};

constexpr version ambiguous{0, 0};

// Words are letters or figures: "a-100" is A100, "A100X" and "A 100", and not A1000. The first row that fits decides,
// so the longer name stands first. RTX cards of workstations are of class unknown: "select NGC Server Ready SKUs".
// clang-format off
constexpr auto card_table = std::to_array<card_row>({
  // Blackwell
  {"gb-300", {10, 3}, data_centre}, {"b-300", {10, 3}, data_centre},
  {"gb-200", {10, 0}, data_centre}, {"b-200", {10, 0}, data_centre}, {"b-100", {10, 0}, data_centre},
  {"gb-10", {12, 1}}, {"dgx-spark", {12, 1}},
  {"rtx-pro", {12, 0}}, {"rtxpro", {12, 0}}, {"rtx blackwell", {12, 0}}, {"rtx-6000-d", {12, 0}},
  {"rtx 5050", {12, 0}, other}, {"rtx 5060", {12, 0}, other}, {"rtx 5070", {12, 0}, other},
  {"rtx 5080", {12, 0}, other}, {"rtx 5090", {12, 0}, other},
  // Hopper
  {"gh-200", {9, 0}, data_centre}, {"h-200", {9, 0}, data_centre}, {"h-100", {9, 0}, data_centre},
  {"h-800", {9, 0}, data_centre}, {"h-20", {9, 0}, data_centre},
  // Jetson and Drive, before the names of cards
  {"thor", {11, 0}, other}, {"orin", {8, 7}, other}, {"xavier", {7, 2}, other}, {"jetson tx-2", {6, 2}, other},
  {"jetson tx-1", {5, 3}, other}, {"jetson tk-1", {3, 2}, other}, {"jetson nano", {5, 3}, other},
  // Ada
  {"rtx ada", {8, 9}}, {"rtx-5880", {8, 9}},
  {"l-40", {8, 9}, data_centre}, {"l-20", {8, 9}, data_centre}, {"l-4", {8, 9}, data_centre},
  {"l-2", {8, 9}, data_centre},
  {"rtx 4050", {8, 9}, other}, {"rtx 4060", {8, 9}, other}, {"rtx 4070", {8, 9}, other},
  {"rtx 4080", {8, 9}, other}, {"rtx 4090", {8, 9}, other},
  // Ampere
  {"rtx-a", {8, 6}}, {"rtxa", {8, 6}},
  {"a-100", {8, 0}, data_centre}, {"a-800", {8, 0}, data_centre}, {"a-30", {8, 0}, data_centre},
  {"cmp 170-hx", {8, 0}, other}, {"cmp 90-hx", {8, 6}, other},
  {"a-2", {8, 6}, data_centre}, {"a-10", {8, 6}, data_centre}, {"a-16", {8, 6}, data_centre},
  {"a-40", {8, 6}, data_centre}, {"a-2000", {8, 6}}, {"a-4000", {8, 6}}, {"a-4500", {8, 6}}, {"a-5000", {8, 6}},
  {"a-5500", {8, 6}}, {"a-6000", {8, 6}},
  {"rtx 2050", {8, 6}, other}, {"mx-570", {8, 6}, other},
  {"rtx 3050", {8, 6}, other}, {"rtx 3060", {8, 6}, other}, {"rtx 3070", {8, 6}, other},
  {"rtx 3080", {8, 6}, other}, {"rtx 3090", {8, 6}, other},
  // Turing
  {"titan-rtx", {7, 5}, other}, {"cmp hx", {7, 5}, other},
  {"quadro rtx", {7, 5}}, {"grid rtx-6000", {7, 5}}, {"grid rtx-8000", {7, 5}}, {"rtx-8000", {7, 5}},
  {"t-4", {7, 5}, data_centre}, {"t-10", {7, 5}, data_centre},
  {"t-400", {7, 5}}, {"t-500", {7, 5}}, {"t-550", {7, 5}}, {"t-600", {7, 5}}, {"t-1000", {7, 5}},
  {"t-1200", {7, 5}}, {"t-2000", {7, 5}},
  {"mx-450", {7, 5}, other}, {"mx-550", {7, 5}, other},
  {"rtx 2060", {7, 5}, other}, {"rtx 2070", {7, 5}, other}, {"rtx 2080", {7, 5}, other},
  {"gtx 1630", {7, 5}, other}, {"gtx 1650", {7, 5}, other}, {"gtx 1660", {7, 5}, other},
  // Volta
  {"titan-v", {7, 0}, other}, {"v-100", {7, 0}, data_centre}, {"gv-100", {7, 0}},
  // Pascal
  {"gp-100", {6, 0}}, {"p-100", {6, 0}, data_centre},
  {"titan-xp", {6, 1}, other}, {"titan-x pascal", {6, 1}, other},
  {"p-4", {6, 1}, data_centre}, {"p-6", {6, 1}, data_centre}, {"p-40", {6, 1}, data_centre},
  {"p-400", {6, 1}}, {"p-500", {6, 1}}, {"p-520", {6, 1}}, {"p-600", {6, 1}}, {"p-620", {6, 1}}, {"p-1000", {6, 1}},
  {"p-2000", {6, 1}}, {"p-2200", {6, 1}}, {"p-3000", {6, 1}}, {"p-3200", {6, 1}}, {"p-4000", {6, 1}},
  {"p-4200", {6, 1}}, {"p-5000", {6, 1}}, {"p-5200", {6, 1}}, {"p-6000", {6, 1}},
  {"mx-150", {6, 1}, other}, {"mx-250", {6, 1}, other}, {"mx-330", {6, 1}, other}, {"mx-350", {6, 1}, other},
  {"gt 1010", {6, 1}, other}, {"gt 1030", {6, 1}, other},
  {"gtx 1050", {6, 1}, other}, {"gtx 1060", {6, 1}, other}, {"gtx 1070", {6, 1}, other}, {"gtx 1080", {6, 1}, other},
  // Maxwell
  {"m-40", {5, 2}, data_centre}, {"m-60", {5, 2}, data_centre}, {"m-4", {5, 2}, data_centre},
  {"m-6", {5, 2}, data_centre}, {"m-10", {5, 0}, data_centre},
  {"quadro m-6000", {5, 2}}, {"quadro m-5500", {5, 2}}, {"quadro m-5000", {5, 2}}, {"quadro m-4000", {5, 2}},
  {"quadro m-3000", {5, 2}}, {"quadro m-2200", {5, 2}}, {"quadro m-2000-m", {5, 0}}, {"quadro m-2000", {5, 2}},
  {"quadro m-1200", {5, 0}}, {"quadro m-1000", {5, 0}}, {"quadro m-620", {5, 0}}, {"quadro m-600", {5, 0}},
  {"quadro m-520", {5, 0}}, {"quadro m-500", {5, 0}},
  {"quadro k-2200", {5, 0}}, {"quadro k-1200", {5, 0}}, {"quadro k-620", {5, 0}},
  {"gtx titan-x", {5, 2}, other}, {"titan-x", ambiguous, other},
  {"gtx 950-m", {5, 0}, other}, {"gtx 960-m", {5, 0}, other}, {"gtx 745", {5, 0}, other}, {"gtx 750", {5, 0}, other},
  {"gtx 850-m", {5, 0}, other}, {"gtx 950", {5, 2}, other}, {"gtx 960", {5, 2}, other}, {"gtx 965", {5, 2}, other},
  {"gtx 970", {5, 2}, other}, {"gtx 980", {5, 2}, other}, {"mx-110", {5, 0}, other}, {"mx-130", {5, 0}, other},
  // Kepler
  {"k-80", {3, 7}, data_centre}, {"k-40", {3, 5}, data_centre}, {"k-20", {3, 5}, data_centre},
  {"k-10", {3, 0}, data_centre}, {"k-8", {3, 0}, data_centre},
  {"grid k-1", {3, 0}, data_centre}, {"grid k-2", {3, 0}, data_centre}, {"grid k-340", {3, 0}, data_centre},
  {"grid k-520", {3, 0}, data_centre},
  {"quadro k-6000", {3, 5}}, {"quadro k-5200", {3, 5}}, {"quadro k-5000", {3, 0}}, {"quadro k-4200", {3, 0}},
  {"quadro k-4000", {3, 0}}, {"quadro k-2000", {3, 0}}, {"quadro k-600", {3, 0}}, {"quadro k-420", {3, 0}},
  {"titan-black", {3, 5}, other}, {"titan-z", {3, 5}, other}, {"gtx titan", {3, 5}, other},
  {"gtx 780", {3, 5}, other}, {"gtx 770", {3, 0}, other}, {"gtx 760", {3, 0}, other}, {"gtx 690", {3, 0}, other},
  {"gtx 680", {3, 0}, other}, {"gtx 670", {3, 0}, other}, {"gtx 660", {3, 0}, other}, {"gtx 650", {3, 0}, other},
  {"gt 710", {3, 5}, other},
  // Fermi
  {"c-2050", {2, 0}, data_centre}, {"c-2070", {2, 0}, data_centre}, {"c-2075", {2, 0}, data_centre},
  {"m-2050", {2, 0}, data_centre}, {"m-2070", {2, 0}, data_centre}, {"m-2075", {2, 0}, data_centre},
  {"m-2090", {2, 0}, data_centre},
  // Names that tell the class alone.
  {"geforce", ambiguous, other}, {"titan", ambiguous, other}, {"gtx", ambiguous, other},
  {"quadro", ambiguous, unknown}, {"rtx", ambiguous, unknown}, {"tesla", ambiguous, data_centre},
});
// clang-format on

enum class character : std::uint8_t { letter, figure, separator };

character kind_of(char c) {
  if (c >= 'a' && c <= 'z') return character::letter;
  return c >= '0' && c <= '9' ? character::figure : character::separator;
}

/// Runs of letters and of figures: "rtx", "4090".
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> out;
  while (!name.empty()) {
    const auto kind = kind_of(name.front());
    const auto end =
        static_cast<std::size_t>(std::ranges::find_if(name, [&](char c) { return kind_of(c) != kind; }) - name.begin());
    if (kind != character::separator) out.push_back(name.substr(0, end));
    name.remove_prefix(end);
  }
  return out;
}

bool is_number(std::string_view word) { return kind_of(word.front()) == character::figure; }

/// "4090", "GeForce 1080": GeForce cards are called by their numbers alone.
void add_series(std::vector<std::string_view>& words) {
  auto number = words.begin();
  if (number != words.end() && *number == "nvidia") ++number;
  const bool is_geforce = number != words.end() && *number == "geforce";
  if (is_geforce) ++number;
  if (number == words.end() || !is_number(*number) || number->size() < (is_geforce ? 3U : 4U)) return;
  static constexpr std::array<std::string_view, 3> series{"rtx", "gtx", "gt"};
  words.insert(number, series.begin(), series.end());
}

bool matches(std::span<const std::string_view> words, std::string_view name) {
  std::size_t begin = 0;
  while (!name.empty()) {
    const auto part = name.substr(0, name.find(' '));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    const auto wanted = words_of(part);
    const auto match = std::ranges::search(words.subspan(begin), wanted);
    if (match.empty()) return false;
    begin = static_cast<std::size_t>(match.end() - words.begin());
  }
  return true;
}

/// Words of other vendors' names: Iluvatar has an MR-V100 and a BI-V100.
constexpr std::array<std::string_view, 22> other_vendors{
    "amd", "radeon", "instinct", "intel", "arc",   "gaudi", "ascend", "huawei",    "iluvatar", "mr",    "bi",
    "mtt", "mlu",    "kunlun",   "metax", "hygon", "mi",    "rx",     "cambricon", "enflame",  "biren", "gfx"};

/// Also "910B" alone, as Ascend's cards are called.
bool is_other_vendors(std::span<const std::string_view> words) {
  const bool is_ascend = words.size() == 2 && (words[0] == "910" || words[0] == "310") &&
                         (words[1] == "a" || words[1] == "b" || words[1] == "c" || words[1] == "p");
  return is_ascend || std::ranges::find_first_of(words, other_vendors) != words.end();
}

const card_row* row_of(std::string_view product) {
  const auto name = text::lower_case(product);
  auto words = words_of(name);
  if (is_other_vendors(words)) return nullptr;
  add_series(words);
  const auto match = std::ranges::find_if(card_table, [&](const card_row& row) { return matches(words, row.name); });
  return match == card_table.end() ? nullptr : &*match;
}

}  // namespace

card_class class_of(std::string_view product) {
  const auto* row = row_of(product);
  return row ? row->kind : unknown;
}

bool is_of_other_vendor(std::string_view product) {
  const auto name = text::lower_case(product);
  return is_other_vendors(words_of(name));
}

std::optional<version> capability_of(std::string_view product) {
  const auto* row = row_of(product);
  return row && row->capability != ambiguous ? std::optional(row->capability) : std::nullopt;
}

}  // namespace reconcilers::cuda
