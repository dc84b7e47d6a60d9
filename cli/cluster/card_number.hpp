#pragma once
// How many cards a node has, in the words of every table.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "api/other_card.hpp"

namespace cli {

/// "4", "8 AMD", "4, 8 AMD"; empty where no one knows. @param others of other vendors than NVIDIA
std::string card_number(const std::optional<std::int64_t>& cards, std::span<const api::other_card> others);

}  // namespace cli
