#pragma once
// The decision as it stands on a pod: our own annotation, which anyone can read to check us, and those that the device
// plugin of the node reads. And back: what a pod holds, no matter who wrote it.
//
//   quartermaster.io/placement:
//   {"v":1,"node":"gpu-1","source":"planned","containers":{"main":[{"card":"GPU-<uuid>","cores":20,"memoryMiB":2048}]},
//    "counts":{"example.com/fpga":2}}
//
// A whole card has "whole":true, 100 cores and all of the card's memory.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kube/projections/pod.hpp"
#include "quota/ledger.hpp"
#include "reconcilers/extender/request.hpp"

namespace reconcilers::extender {

inline constexpr std::string_view placement_annotation = "quartermaster.io/placement";
inline constexpr std::string_view isolation_annotation = "quartermaster.io/isolation";

/// Where what a pod holds is known from.
enum class source : std::uint8_t {
  none,       ///< it holds none of our resources, or is not bound
  planned,    ///< our own decision
  confirmed,  ///< the node's plugin wrote which cards it took
  guessed,    ///< bound by someone else and no one wrote which cards: booked where it fits
};
std::string_view to_string(source source);

/// What the node's plugin and people read of a decision. `now_ns` is wall time, nanoseconds since 1970.
nlohmann::json annotations_of(const quota::holding& held, const pod_request& request, const kube::pod& pod,
                              const quota::node_inventory& node, std::int64_t now_ns);

/// Our own annotation; empty where there is none, it is for another node than `node`, or it is broken.
std::optional<quota::holding> planned(const kube::pod& pod, std::string_view node, const pod_request& request);

/// The node our annotation names; empty where there is none, or it is broken.
std::string planned_node(const kube::pod& pod);
/// Is what is written as much as the limits say, and no more parts? A person may write anything.
bool covers(const quota::holding& held, const quota::demand& needs, const quota::node_inventory& node);

struct booked_cards {
  source origin = source::none;
  quota::holding holding;
};
/// What a bound pod holds of `view`. What is already given out there is respected where no one says which cards; where
/// nothing is free it is booked all the same: the pod runs, and the ledger says that a card is over-given.
booked_cards held_by(const kube::pod& pod, const quota::node_view& view, const pod_request& request);

}  // namespace reconcilers::extender
