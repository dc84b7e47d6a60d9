#pragma once
// The objects of Kubernetes itself come from an API server as protobuf. Where one comes as JSON (a question of
// kube-scheduler, a file, an answer to a patch), its fields are written out as protobuf first, by a table of names and
// numbers, and read by the one decoder of its projection: both forms of an object give the same.

#include <string_view>

#include "kube/error.hpp"

namespace kube {

/// T: pod, described_pod, node, daemon_set, lease or config_map (data alone, without binaryData). A word or number of
/// another type than the field's is left out, as an unknown field is. errc::decode where the object cannot be
/// understood.
template <class T>
result<T> from_json(std::string_view text);

}  // namespace kube
