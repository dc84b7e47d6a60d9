#pragma once
// How much of a card each container uses: from its processes, from what was given to containers, and from what the card
// says of itself. The card's own value is the sum of all parts, to the last unit: it is divided up and never counted
// twice. Pure.
//
//   1. A process counts for the container it runs in.
//   2. Where no process can be seen, one container that alone holds the card has all of it. Where several hold it, what
//      each uses is not known.
//   3. The server of MPS works for its clients: with one container on the card that is its work, else it is no one's.
//   4. Readings are not of one moment. Where processes have more than the card, all are scaled down alike.
//   5. What is left is reported as such.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/cards/usage.hpp"
#include "agent/exporter/pod.hpp"
#include "agent/kubelet/pod_resources.hpp"

namespace agent::exporter {

using kubelet::given_devices;

struct container_name {
  std::string ns, pod, container;
  friend auto operator<=>(const container_name&, const container_name&) = default;
};

/// A card that a container was given.
struct given_card {
  container_name name;
  std::string card;                     ///< UUID
  std::optional<int> cores;             ///< hundredths of the card; absent: no one limits it
  std::optional<std::uint64_t> memory;  ///< bytes, as above
  friend bool operator==(const given_card&, const given_card&) = default;
};

/// Which cards the containers of the node were given. What the kubelet gave counts where its IDs are cards: "UUID", or
/// "UUID::N" of a card that several share. Other plugins' IDs are mere numbers, and the placement says the card.
/// @param pods of the node, or null while they are not known: then all that the kubelet says counts
std::vector<given_card> given_cards(std::span<const given_devices> devices, const std::vector<const pod*>* pods,
                                    std::span<const cards::card_usage> cards);

/// What a container has of one card.
struct share {
  container_name name;
  std::optional<int> cores;                   ///< given: hundredths of the card
  std::optional<std::uint64_t> memory_given;  ///< bytes
  std::optional<std::uint64_t> memory_used;   ///< bytes
  std::optional<std::uint64_t> utilization_ppm;
  unsigned processes = 0, mps_clients = 0;
  friend bool operator==(const share&, const share&) = default;
};

/// What no container has.
struct unattributed {
  std::uint64_t host = 0;         ///< processes that run in no pod
  std::uint64_t mps_server = 0;   ///< done for several containers
  std::uint64_t unknown_pod = 0;  ///< processes of a pod that the API server does not know
  std::uint64_t unseen = 0;       ///< of no process that can be seen: the driver's own, or those of an unseen process
  friend bool operator==(const unattributed&, const unattributed&) = default;
};

struct attributed_card {
  std::vector<share> shares;  ///< ordered by name
  std::optional<unattributed> memory, utilization;
};

/// Every card of `usage`, in its order. A process of a container that its pod does not name yet counts for the pod,
/// with an empty name of the container.
/// @param pods of the node, or null while they are not known
std::vector<attributed_card> attribute(std::span<const cards::card_usage> usage, std::span<const given_devices> devices,
                                       const std::vector<const pod*>* pods);

}  // namespace agent::exporter
