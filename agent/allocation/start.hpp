#pragma once
// Whose container is about to start, and with which cards. The kubelet asks the plugin before each start and names
// device IDs alone, so three records are compared: the kubelet's own file says which pod has these IDs, the API says
// what that pod is and what the scheduler gave it, and the node says which cards there are. Pure.

#include <cstdint>
#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/kubelet/checkpoint.hpp"
#include "agent/kubelet/pod_resources.hpp"
#include "api/placement.hpp"
#include "kube/projections/running_pod.hpp"
#include "quota/inventory.hpp"
#include "text/fact.hpp"

namespace agent::allocation {

/// What one device ID of a resource stands for.
enum class device_unit : std::uint8_t {
  card,     ///< a whole card
  core,     ///< a hundredth of a card
  memory,   ///< some memory of a card
  slot,     ///< a seat on a card: a share has one, however large it is
  percent,  ///< a hundredth of a card's memory
};

/// One key of a vocabulary.
struct offered_resource {
  std::string name;  ///< "nvidia.com/gpu"
  device_unit unit = device_unit::card;
  int unit_mib = 1024;  ///< of memory: what one device is
  int per_card = 1;     ///< of slots
  /// False: it stands in limits alone, and no kubelet hears of it.
  bool is_offered = true;
  int by_default = 0;  ///< what a container has that does not name it; 0 of memory: all of the card's

  /// How many devices the card, or a share of it, is.
  std::int64_t worth(const quota::card& card) const;
  std::int64_t worth(const api::placed_share& share) const;
};

/// What is known of a node at the moment of a start.
struct node_records {
  std::string_view node;
  std::span<const kubelet::recorded_devices> recorded;
  /// The same by pod-resources, which has no UID and leaves out ordinary init containers. Empty: it was not asked.
  std::span<const kubelet::given_devices> listed;
  std::span<const kube::running_pod* const> pods;  ///< bound to this node
  std::span<const quota::card> cards;
  /// All keys by which containers ask for shares here: a placement agrees with a container's limits by each of them.
  std::span<const offered_resource> vocabulary = {};
};

/// Null where the API has not shown it, or it is gone.
const kube::running_pod* pod_of(const node_records& known, std::string_view uid);

struct container_start {
  const kube::running_pod* pod = nullptr;
  std::string container;
  std::vector<std::string> candidates;    ///< by the kubelet's record: it, or an init container before it
  std::vector<api::placed_share> shares;  ///< a card at most once
};

enum class start_doubt : std::uint8_t {
  not_recorded,          ///< the kubelet has not written down whose devices these are
  recorded_for_several,  ///< number: pods that are there and have these devices
  pod_unknown,           ///< uid: the API has not shown this pod yet
  kubelet_disagrees,     ///< pod, other: pod-resources names another one
  bound_elsewhere,       ///< pod, node
  pod_ended,             ///< pod
  container_unknown,     ///< pod, container
  not_placed,            ///< pod
  placement_unreadable,  ///< pod
  placed_elsewhere,      ///< pod, node
  container_not_placed,  ///< pod, container
  amount_differs,        ///< pod, container, resource, number: what it asks for, other: what the placement comes to
  card_unknown,          ///< pod, card
  card_twice,            ///< pod, container, card
  card_full,             ///< pod, card, other: a pod that had it before
};

/// Why a container must not start with these devices.
struct refused_start {
  start_doubt code{};
  std::vector<text::parameter> parameters;

  /// The records may agree a moment later.
  bool may_pass() const { return code == start_doubt::not_recorded || code == start_doubt::pod_unknown; }
  std::string text() const;  ///< a sentence of the catalogue, for `kubectl describe pod`
};
std::string_view to_string(start_doubt code);

/// What a share has of the card's compute: all of it where it is of memory alone.
constexpr std::int32_t compute_of(const api::placed_share& share) { return share.cores > 0 ? share.cores : 100; }

/// The largest share of the card that pods of the node have; nothing of one that none has.
api::placed_share largest_share(std::string_view card, const node_records& known);

/// @param ids sorted
std::expected<container_start, refused_start> start_of(const offered_resource& resource,
                                                       const std::vector<std::string>& ids, const node_records& known);

}  // namespace agent::allocation
