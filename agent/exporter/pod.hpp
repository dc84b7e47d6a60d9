#pragma once
// A pod of the exporter's node, with the cards that the scheduler gave its containers.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/running_pod.hpp"

namespace agent::exporter {

/// A share of api::placement.
struct planned_card {
  std::string container, card;  ///< a name, and a UUID
  int cores = 0;                ///< hundredths of the card
  std::uint64_t memory = 0;     ///< bytes
  friend bool operator==(const planned_card&, const planned_card&) = default;
};

struct pod : kube::running_pod {
  std::vector<planned_card> planned;  ///< without init containers, which have ended when the others run

  static kube::result<pod> decode(std::string_view bytes);
  friend bool operator==(const pod&, const pod&) = default;
};

}  // namespace agent::exporter
