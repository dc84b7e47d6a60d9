#pragma once
// How HAMi's device plugin learns which pod the kubelet asks for. Allocate carries no pod, so the one that binds a pod
// first writes the node's annotation hami.io/mutex.lock: "<RFC 3339 time>,<namespace>,<name>". The plugin serves the
// pod that it names, and takes it off when the last container has its cards (HAMi 2.7 to 2.10: pkg/util/nodelock,
// pkg/util/util.go GetAllocatePodByNode). Without it the plugin takes the first pending pod of the node by name, which
// with 2.9 and later may be one that was served long ago and still pulls its image.
//
// The lock is held while its pod waits for its cards. Time plays a part only where nothing else is known.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "kube/projections/pod.hpp"

namespace reconcilers::extender {

inline constexpr std::string_view hami_lock_annotation = "hami.io/mutex.lock";

struct hami_lock {
  std::int64_t since = 0;  ///< seconds since 1970, by the clock of who wrote it
  kube::object_key pod;    ///< no name: written by an old HAMi, the time alone
};
std::string to_string(const hami_lock& lock);
/// Empty where HAMi's plugin could not read it either: it then refuses every pod of the node.
std::optional<hami_lock> read_hami_lock(std::string_view text);

/// Does the lock still stand between its node and the next pod?
/// @param holder the pod it names; null: there is no such pod
/// @param binding a Binding of that pod is on its way from here
bool holds(const hami_lock& lock, const std::string& node, const kube::pod* holder, bool binding, std::int64_t now);

}  // namespace reconcilers::extender
