#pragma once
// Links and fabric of a card, shared by the functions for topology and health.

#include <algorithm>
#include <string>
#include <vector>

#include "../call.hpp"

namespace nvml {

struct nvlink {
  std::string peer;  // PCI address of the card or switch at the other end
  bool is_down = false;
};

/// `nvlinks` with every `count` written out: the place in the list is the number of the link.
inline std::vector<nvlink> links_of(const json& card) {
  std::vector<nvlink> links;
  if (!card.contains("nvlinks") || card["nvlinks"].is_null()) return links;
  for (const auto& entry : card["nvlinks"])
    links.insert(links.end(), entry.value("count", std::size_t{1}), {entry["peer"], entry.value("down", false)});
  return links;
}

inline unsigned link_count(const json& card) { return static_cast<unsigned>(links_of(card).size()); }

/// A UUID's 16 bytes; all zero for an empty text.
inline void parse_cluster(std::string text, unsigned char (&bytes)[16]) {
  std::erase(text, '-');
  for (std::size_t index = 0; index < 16; ++index)
    bytes[index] =
        text.size() < 32 ? 0 : static_cast<unsigned char>(std::stoul(text.substr(2 * index, 2), nullptr, 16));
}

}  // namespace nvml
