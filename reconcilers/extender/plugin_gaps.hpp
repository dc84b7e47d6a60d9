#pragma once
// Which nodes have no device plugin at the moment although they had one: its pod is being deleted, is not ready, or is
// gone and the next one has not come. A kubelet rejects what is bound there for good (UnexpectedAdmissionError), while
// what the node offers stays in its status for up to 10 s (nodeStatusUpdateFrequency). So nothing new is placed there
// until a plugin pod is ready. Pure, but for the time it is given.
//
// A node of which no ready plugin pod was ever seen has no gap: it may be served by someone else's plugin.
//
// The same pods say which plugin a node has. When the policy turns from a product's plugin to our own, or back, a node
// keeps what it has until its pods have ended, and is served by it as before.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/clock.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::extender {

class plugin_gaps {
 public:
  /// How long a plugin may be gone without a pod of it. After that the kubelet has said that it offers nothing.
  static constexpr controller::milliseconds most{60'000};

  /// @param ns where the plugins' pods are; empty: nowhere, and no node has a gap
  explicit plugin_gaps(std::string ns) : ns_(std::move(ns)) {}

  /// A change of a pod, as a store's observer sees it.
  /// @return the node that now has a gap, has none any more, or has another plugin; empty: none
  std::string take(const kube::pod* before, const kube::pod* after, controller::milliseconds now);
  /// @return nodes whose plugin has been gone for `most` and which so have no gap any more
  std::vector<std::string> expire(controller::milliseconds now);
  bool has(std::string_view node) const;
  /// Whether the node's plugin gives what was placed; nothing: no pod of it is seen, or it does not say.
  std::optional<bool> follows_placement(std::string_view node) const;

 private:
  struct plugin {
    bool ready = false;  ///< and not being deleted
    std::optional<bool> follows_placement;
  };
  struct served {
    std::map<kube::uid, plugin> pods;
    controller::milliseconds gone_since{0};  ///< while there are none
    bool is_open() const;
    std::optional<bool> follows_placement() const;
  };
  bool is_plugin(const kube::pod& pod) const;

  std::string ns_;
  std::map<std::string, served, std::less<>> nodes_;  ///< that had a ready plugin pod
};

/// The policy as that node is served by now, where its plugin is not yet the one that the policy says.
/// @param follows_placement as of plugin_gaps
std::optional<accelerator_policy> policy_in_place(const accelerator_policy& policy, const kube::node& node,
                                                  std::optional<bool> follows_placement);

}  // namespace reconcilers::extender
