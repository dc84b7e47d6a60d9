#pragma once
// The next step of one node towards the mode it asks for: a transaction, and a pure function of what is there. Every
// step may be repeated, and being killed between any two loses nothing, because where a node stands is read off the
// node itself (the taint quartermaster.io/switching=<from>.<to>, our label, the plugin pods on it, what it advertises)
// and off AcceleratorNode.status.
//
//   taint -> wait for (or evict) the pods that hold the old mode's resources -> remove our label -> wait until every
//   old plugin pod is gone and what it advertised is 0 or absent -> set the new label -> verify -> take the taint away
//
// A node that has someone else's plugin, where the policy says take over, is a change from `foreign_mode`: all pods
// that hold cards are waited for, the label quartermaster.io/taken-over is set, its owner takes the plugin off, and
// only then ours comes; what does not go in time is left in peace.
//
// A plain flip of the label would run two plugins side by side. A node that never had a mode and is clean skips the
// taint and the drain. How many nodes are under way at once is the caller's business (`may_begin`).
//
// It always ends in one of four: Ready in the new mode; back in the old mode, with the reason (RolledBack); the node is
// gone; Stuck, tainted, with the reason and a remedy. What was rolled back is remembered and tried again when the label
// or the policy changes, when the pods that prevented it are gone, or after a back-off.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/recorder.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/nodes/intent.hpp"

namespace reconcilers {

/// A pod of one of our modules on the node.
struct plugin_pod {
  std::string module;
  std::string name;    ///< "namespace/name"
  std::string reason;  ///< why it is not well, as the kubelet says; may be empty
  bool ready = false;
  bool deleting = false;
  kube::object_key pod = {};
  kube::uid id = {};
};

/// A pod on the node that holds resources of a mode.
struct holder {
  kube::object_key pod;
  const modules::module_type* mode = nullptr;
  kube::uid id;
  bool deleting = false;
  text::phrase stays;         ///< why it is never evicted ("is of a DaemonSet"); empty: it may be
  text::phrase refused = {};  ///< why its last eviction was refused ("its eviction is refused: ...")
  kube::uid owner = {};       ///< its controller; empty: none
  /// Its controller made it after others were evicted: the controller's kind and name ("ReplicaSet web"); empty: no.
  std::string returned_by = {};
  std::string name() const { return pod.to_string(); }
};

/// In the taint: the plugin of someone else. No module can have this name, because its DaemonSet could not.
inline constexpr std::string_view foreign_mode = "Foreign";

/// The value of the taint quartermaster.io/switching. "none" stands for no mode, `foreign_mode` for someone else's.
struct switching {
  std::string source, target;
  std::string to_string() const { return source + "." + target; }
  /// An invalid value is read as a change from nowhere.
  static switching parse(std::string_view value);
  friend bool operator==(const switching&, const switching&) = default;
};

struct node_state {
  std::shared_ptr<const modules::offer> offered;  ///< the modules as the policy has them; null: as built in
  node_intent wanted;
  std::string placed;                      ///< value of our module label; empty: none
  bool placed_enabled = false;             ///< the policy has that module switched on
  std::optional<switching> taint;          ///< what the switching taint on the node says
  bool from_enabled = false;               ///< the policy has the module of `taint->from` switched on
  bool taken_over = false;                 ///< our label that keeps someone else's plugin away is on the node
  bool answers = true;                     ///< condition Ready of the node is True
  bool may_begin = true;                   ///< a change that is not under way yet may begin now
  bool governed = true;                    ///< there is an AcceleratorPolicy
  std::string untolerated;                 ///< taints that keep the placed mode's plugin away, for people
  kube::quantities allocatable;            ///< extended resources
  std::vector<plugin_pod> plugins;         ///< not those that have ended
  std::vector<holder> holders;             ///< not those that have ended
  std::optional<api::mode_status> before;  ///< AcceleratorNode.status; empty: there is no AcceleratorNode
  std::chrono::milliseconds in_phase{0};   ///< how long `before.phase` has lasted
  std::chrono::seconds verify_timeout{300}, drain_timeout{1800};
  bool evict = false;  ///< spec.enrolment.drain.mode is Evict
  /// No plugin pod of this node was restarted lately, and the agent, where there is one, does not call all cards sick.
  bool may_restart = false;
  std::int64_t policy_generation = 0;
  std::int64_t wall = 0;  ///< seconds since 1970
};

struct mode_step {
  /// What to write on the Node, in one patch.
  std::optional<std::string> label;  ///< the new value of our label; "": remove it
  enum class taint_change { keep, set, remove };
  taint_change change = taint_change::keep;
  switching taint;                ///< to set
  std::optional<bool> take_over;  ///< set our label that keeps someone else's plugin away, or remove it
  bool writes_node() const { return label || take_over || change != taint_change::keep; }

  /// Delete this plugin pod, once: it is ready, and its kubelet has lost its socket.
  std::optional<plugin_pod> restart;
  std::vector<holder> evict;               ///< ask the Eviction API for these
  std::optional<api::mode_status> status;  ///< what AcceleratorNode must say; empty: there must be none
  /// Nothing but the taint: `status` is what it was, because there is no one to wait for who had to be named.
  bool quiet = false;
  /// The status says what must be known before the Node is written.
  bool status_first = false;
  struct event {
    controller::event_type type = controller::event_type::normal;
    std::string reason, action, note;
  };
  std::optional<event> tell;
  std::vector<holder> blockers;  ///< pods to tell, once, that the node waits for them
  std::optional<std::chrono::milliseconds> again_in;
};

mode_step next_step(const node_state& is);

/// Is this node on its way from one mode to another, or to its first? (What spec.enrolment.maxUnavailable counts.)
/// `actual_mode` is what AcceleratorNode says, empty without one.
bool is_changing(bool tainted, std::string_view placed, std::string_view actual_mode);

namespace phases {
inline constexpr std::string_view waiting = "Waiting", draining = "Draining", removing = "Removing",
                                  enrolling = "Enrolling", verifying = "Verifying", ready = "Ready", stuck = "Stuck",
                                  rolled_back = "RolledBack", refused = "Refused", disabled = "Disabled",
                                  left_alone = "LeftAlone";
}  // namespace phases

}  // namespace reconcilers
