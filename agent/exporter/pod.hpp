#pragma once
// What the exporter keeps of a pod of its node: the names of its containers, the runtime's IDs by which their processes
// are found, and the cards that the scheduler gave them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace agent::exporter {

struct container_id {
  std::string name;
  std::string id;  ///< the runtime's, without its scheme; empty: not started yet
  friend bool operator==(const container_id&, const container_id&) = default;
};

/// An entry of the annotation quartermaster.io/placement.
struct planned_card {
  std::string container, card;  ///< a name, and a UUID
  int cores = 0;                ///< hundredths of the card
  std::uint64_t memory = 0;     ///< bytes
  friend bool operator==(const planned_card&, const planned_card&) = default;
};

struct pod : kube::object {
  std::vector<container_id> containers;  ///< of all kinds
  std::vector<planned_card> planned;     ///< without init containers, which have ended when the others run
  bool has_finished = false;             ///< Succeeded or Failed

  static const kube::resource& of() { return kube::resources::pods; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<pod> decode(std::string_view bytes);
  friend bool operator==(const pod&, const pod&) = default;
};

/// The annotation's text; anyone can write it, so what cannot be read is left out.
std::vector<planned_card> planned_in(std::string_view annotation);

}  // namespace agent::exporter
