#pragma once
// The contract between the runtime and the product: a reconciler looks at the stores, brings one key to what it should
// be, and says when to look again. It never learns which event woke it.

#include <chrono>
#include <optional>
#include <string_view>

#include "kube/resource.hpp"
#include "kube/task.hpp"

namespace controller {

/// When to look at the key again. An error is retried with per-key back-off and counted.
struct action {
  std::optional<std::chrono::milliseconds> again_in;  ///< empty: at the next change

  static action await_change() { return {}; }
  static action again(std::chrono::milliseconds time) { return action{time}; }
};

class reconciler {
 public:
  virtual ~reconciler() = default;
  /// A short constant name: metric label, log field, event instance.
  virtual std::string_view name() const = 0;
  /// Never runs twice at once for one key. Must be safe to kill at any instruction and to repeat.
  virtual kube::task<action> reconcile(kube::object_key key) = 0;
};

}  // namespace controller
