#pragma once
// Events (events.k8s.io/v1) as people see them in `kubectl describe`. Same object, reason and note within the window
// become one event with a series; the queue is bounded and drops the oldest, counted. Never blocks a reconciler:
// writing happens in the background.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace controller {

enum class event_type { normal, warning };

/// What the event is about. Cluster-scoped objects have their events in namespace "default".
struct object_reference {
  std::string api_version, kind;
  kube::object_key key;
  std::string uid;

  object_reference() = default;
  object_reference(const kube::resource& type, const kube::object& object)
      : api_version(type.api_version()),
        kind(type.kind),
        key(object.key),
        uid(object.id.empty() ? "" : object.id.to_string()) {}
};

/// The seam reconcilers see; the real one is event_recorder, tests collect.
class recorder {
 public:
  virtual ~recorder() = default;
  /// `reason` CamelCase <= 128 bytes; `action` what we did or refused ("Validate"); `note` is cut at 1,000 bytes on a
  /// character edge.
  virtual void record(const object_reference& about, event_type type, std::string_view reason, std::string_view action,
                      std::string_view note) = 0;
};

}  // namespace controller
