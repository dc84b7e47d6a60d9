#include "cli/cluster/card_number.hpp"

#include <map>

#include "text/text.hpp"

namespace cli {

std::string card_number(const std::optional<std::int64_t>& cards, std::span<const api::other_card> others) {
  auto out = cards ? std::to_string(*cards) : std::string();
  std::map<std::string, int> vendors;
  for (const auto& card : others) ++vendors[card.vendor];
  for (const auto& [vendor, count] : vendors)
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + text::shown(vendor);
  return out;
}

}  // namespace cli
