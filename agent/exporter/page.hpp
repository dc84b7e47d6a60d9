#pragma once
// The series of cards, shares and preflight checks, as they are scraped; docs/metrics.md has them. Pure.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/cards/inventory.hpp"
#include "agent/exporter/attribution.hpp"
#include "agent/facts/judge.hpp"
#include "controller/metrics.hpp"

namespace agent::exporter {

struct page {
  std::string node, mode;                                               ///< the mode that the node is in; may be empty
  cards::inventory report;                                              ///< with the cards that are lost
  std::vector<cards::card_usage> usage;                                 ///< the last reading; empty when it is old
  std::vector<attributed_card> parts;                                   ///< of each card of `usage`
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> xids;  ///< how many, by card and number
  std::vector<facts::row> preflight = {};                               ///< empty: not looked at yet
  std::size_t max_share_series = std::numeric_limits<std::size_t>::max();
};

/// A share has at most so many.
inline constexpr std::size_t series_per_share = 6;

void write(const page& page, controller::metric_text& text);

}  // namespace agent::exporter
