#pragma once
// Which cards a pod wants or does not want, in addition to how much of them: annotations and labels that
// products made known. Read once a pod from (key, value) pairs, whichever of its annotations and node
// selectors the caller hands over; asked once a card without allocating.
//
// Values are lists separated by commas; blanks around an item and empty items do not count. Of one key, and of keys
// that mean the same, any item is enough; of several all have to hold. Names of models are parts of the card's model,
// whatever the case, and a blank, a dash and an underscore are one: labels cannot have blanks (GPU Feature
// Discovery). Memory is a card's to a sixty-fourth, because drivers and labels round.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quota/inventory.hpp"

namespace quota {

class selector {
 public:
  /// Another pair of the pod. False where the key says nothing of cards, or its value cannot be read (`problem` says
  /// then what is allowed; the pair is skipped).
  bool read(std::string_view key, std::string_view value);
  template <class Pairs>
  static selector of(const Pairs& pairs) {
    selector out;
    for (const auto& [key, value] : pairs) out.read(key, value);
    return out;
  }
  /// A key that is read here.
  static bool known(std::string_view key);
  /// One line for a person of the first value that was not understood; empty: none.
  const std::string& problem() const { return problem_; }

  /// No cards were named: every card will do.
  bool nothing() const;
  bool allows(const node_inventory& node, const card& card) const;
  /// Of what is known without the card's node: all but pools and the number of its cards.
  bool allows(const card& card) const;

  /// How shares of slots are placed, over the node's own.
  const std::optional<policy>& placement() const { return placement_; }
  /// How shares are placed on this node for this pod.
  policy on(const node_inventory& node, policy otherwise) const {
    if (placement_ && (node.serves.has(mode::slots) || node.serves.has(mode::volcano))) return *placement_;
    return node.placement.value_or(otherwise);
  }

  friend bool operator==(const selector&, const selector&) = default;

 private:
  using list = std::vector<std::string>;
  list use_types_, no_types_, use_uuids_, no_uuids_;  // nvidia.com/use-gputype and so on
  list models_, pools_;
  std::vector<std::int64_t> memories_mib_, counts_;
  std::optional<policy> placement_;
  std::string problem_;
};

/// The annotations of a pod that `selector::read` understands.
std::vector<std::string_view> selecting_annotations();

}  // namespace quota
