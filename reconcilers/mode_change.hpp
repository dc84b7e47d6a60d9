#pragma once
// The next step of one node towards the mode it asks for. A pure function of what is there: every step may be repeated,
// and being killed between any two loses nothing, because where a node stands is read off the node itself (our label,
// the plugin pods on it, what it advertises) and off AcceleratorNode.status.
//
// A change of mode removes our label first, waits until every old plugin pod is gone and what it advertised is 0 or
// absent, and only then sets the new label: a plain flip runs two plugins side by side. Pods that hold the old mode's
// resources are waited for. What will come in here: the taint quartermaster.io/switching before the wait (so that no
// new pods come), eviction, a deadline with a way back to the old mode, and spec.enrolment.maxUnavailable.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controller/recorder.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/accelerator_node.hpp"
#include "reconcilers/intent.hpp"

namespace reconcilers {

/// A pod of one of our modules on the node.
struct plugin_pod {
  std::string module;
  std::string name;    ///< "namespace/name"
  std::string reason;  ///< why it is not well, as the kubelet says; may be empty
  bool ready = false;
  bool deleting = false;
};

/// A pod on the node that holds resources of a mode.
struct holder {
  std::string pod;  ///< "namespace/name"
  const modules::module_type* of = nullptr;
};

struct node_state {
  node_intent wanted;
  std::string placed;            ///< value of our module label; empty: none
  bool placed_enabled = false;   ///< the policy has that module switched on
  kube::quantities allocatable;  ///< extended resources
  std::vector<plugin_pod> plugins;
  std::vector<holder> holders;
  std::optional<mode_status> before;      ///< AcceleratorNode.status; empty: there is no AcceleratorNode
  std::chrono::milliseconds in_phase{0};  ///< how long `before.phase` has been seen by this process
  std::chrono::seconds verify_timeout{300};
  std::string now;  ///< RFC 3339
};

struct mode_step {
  bool relabel = false;
  std::string label;                  ///< the new value of our label; empty: remove it
  std::optional<mode_status> status;  ///< what AcceleratorNode must say; empty: there must be none
  struct event {
    controller::event_type type = controller::event_type::normal;
    std::string reason, action, note;
  };
  std::optional<event> tell;
  std::optional<std::chrono::milliseconds> again_in;
};

mode_step next_step(const node_state& is);

namespace phases {
inline constexpr std::string_view draining = "Draining", removing = "Removing", enrolling = "Enrolling",
                                  verifying = "Verifying", ready = "Ready", stuck = "Stuck", refused = "Refused",
                                  disabled = "Disabled", left_alone = "LeftAlone";
}  // namespace phases

}  // namespace reconcilers
