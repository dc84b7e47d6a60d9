#pragma once
// The next step of one module towards the newest version of its plugin: a pure function of what is there. DaemonSets
// are OnDelete, so a node gets the new version when its plugin pod is deleted. This decides which, and when:
//
//   write down the node -> delete its plugin pod -> wait until the new one is ready and the module's resources are
//   allocatable as before -> the next node
//
// A node that moves to another node set goes the same way: its pod is deleted by taking our label of the old set off
// it.
//
// One node of a module is between two versions at a time, however many there are. A plugin that restarts takes its
// node's resources away for some seconds, and an image that does not work is found out on one node. The DaemonSet keeps
// which node that is, since when, and what it advertised before (rollout_record). So being killed between any two steps
// loses nothing. The first node that does not come back halts the module: no other is touched until it is well
// again, or the policy says something else. What the policy says then (the image put back) goes to that node first.
//
// Nodes that change their mode are left alone. Nodes that do not answer, and nodes that the new plugin does not suit,
// are skipped and named. Where running
// containers need the plugin (modules::rollout::strategy::when_idle) a node waits while a pod holds its resources.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "text/phrase.hpp"

namespace reconcilers {

/// How long a node must have been well before the next one's turn: a kubelet reports its resources every 10 s
/// (nodeStatusUpdateFrequency), so what is allocatable may be from before the restart.
inline constexpr std::chrono::milliseconds rollout_settle{10'000};

/// The node that is between two versions.
struct rollout_record {
  std::string set;  ///< the DaemonSet it stands on
  std::string node;
  std::string wanted;      ///< template of the version that is to come
  std::int64_t since = 0;  ///< seconds since 1970
  kube::quantities needs;  ///< what must be allocatable before the node counts as well
  /// JSON without the DaemonSet; text that we did not write is no record.
  std::string to_string() const;
  static std::optional<rollout_record> parse(std::string_view text, std::string set);
  friend bool operator==(const rollout_record&, const rollout_record&) = default;
};

/// A pod of the module's plugin.
struct rollout_pod {
  kube::object_key key;
  kube::uid id;
  std::string made_from;  ///< its template; empty: of a version of us that did not say
  std::string reason;     ///< why it is not well, as the kubelet says
  std::int32_t restarts = 0;
  bool ready = false;
  bool deleting = false;
};

/// A node that has the module's label.
struct rollout_node {
  std::string name;
  std::string set;        ///< the DaemonSet that serves it
  std::string wanted;     ///< that one's template
  bool known = true;      ///< the DaemonSet controller has seen it
  bool answers = true;    ///< condition Ready of the node is True
  bool changing = false;  ///< between two modes
  /// Its container runtime cannot do what the new plugin needs: it keeps the old one. Its AcceleratorNode says why.
  bool unsuitable = false;
  /// The node set that serves it and the one that is to (node_sets.hpp). Where they differ the node moves: the old
  /// plugin goes while neither DaemonSet has the node, and only then comes the new one.
  std::string serves, target;
  std::vector<rollout_pod> pods;  ///< not those that have ended
  kube::quantities allocatable;
  std::vector<std::string> users;  ///< pods that hold the module's resources; may be left out unless when_idle
};

/// The cards of its pods were chosen by the plugin, and are to be by their placement, or the other way round. Neither
/// plugin knows what the other gave, so the node waits for its pods even where the method is `always`.
bool changes_chooser(const rollout_node& node);

struct rollout_state {
  modules::rollout::strategy method = modules::rollout::strategy::always;
  std::vector<std::string> resources;  ///< of the module; the first says that the plugin works
  std::vector<std::string> others;     ///< names of its prefixes that its nodes list: one of them says so, too
  std::vector<rollout_node> nodes;
  std::optional<rollout_record> record;
  std::int64_t wall = 0;  ///< seconds since 1970
  std::chrono::seconds timeout{300};
  std::chrono::milliseconds well_for{0};  ///< how long `is_well` has been true of this record
};

struct rollout_step {
  enum class kind : std::uint8_t {
    done,    ///< every node has the newest version, or nothing can be done about those that have not
    wait,    ///< for a node that is between two versions, or for pods and nodes
    halted,  ///< a node did not come back
  };
  kind is = kind::done;
  std::optional<std::string> clear;      ///< take the record off this DaemonSet
  std::optional<rollout_record> record;  ///< then write this one
  struct removal {
    std::string node;
    rollout_pod pod;
    bool if_idle = false;  ///< only if no pod of the node holds a module's resources, as the server has it now
  };
  std::optional<removal> remove;  ///< then delete this pod
  struct relocation {
    std::string node, source, target;  ///< node sets
    bool if_idle = false;              ///< as above
  };
  std::optional<relocation> move;  ///< or say on this node which DaemonSet has it
  std::optional<std::chrono::milliseconds> again_in;
  bool waits_for_pods = false;  ///< to be looked at again when a pod that holds the module's resources ends
  text::phrase message;         ///< for people; empty when every node has the newest version
};

rollout_step next_rollout_step(const rollout_state& is);

/// The record's node has the newest version, ready and with everything it needs.
bool is_well(const rollout_state& is);

}  // namespace reconcilers
