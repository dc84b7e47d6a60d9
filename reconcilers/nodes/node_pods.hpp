#pragma once
// Which pods on a node matter to its mode: plugin pods of our modules and of others', and pods that hold resources of a
// mode. An index over the pod store, kept by observing it, so that a node is judged without looking at 150,000 pods.

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/nodes/foreign.hpp"
#include "reconcilers/nodes/mode_change.hpp"

namespace reconcilers {

class node_pods {
 public:
  /// `pods` must outlive this. Plugin pods are those in `ns`, our own namespace: a label elsewhere means nothing.
  node_pods(controller::store<kube::pod>& pods, std::string ns);
  node_pods(const node_pods&) = delete;
  node_pods& operator=(const node_pods&) = delete;

  std::vector<plugin_pod> plugins(const std::string& node) const;
  /// `mode` is the module that serves the node, null: none.
  std::vector<holder> holders(const kube::node& node, const modules::offer& offered = modules::offered_by(nullptr),
                              const modules::module_type* mode = nullptr) const;

  /// Device plugins of others, on this node and of GPU Operator's anywhere.
  foreign_pods foreign(const std::string& node) const;
  /// Does this change say for the first time, or not any more, that the plugin of GPU Operator runs in the cluster?
  bool gpu_operator_came_or_went(const kube::pod* before, const kube::pod* after) const;

  /// Bound, not finished, and a plugin pod or perhaps a holder: which resources are a module's is the policy's to say.
  bool matters(const kube::pod& pod) const;
  /// The nodes to look at again after a change of a pod, as a store's observer sees it.
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;

  std::size_t size() const { return size_; }

 private:
  bool is_plugin(const kube::pod& pod) const;
  bool is_foreign(const kube::pod& pod) const;
  void take_in(const kube::pod* before, const kube::pod* after);

  const controller::store<kube::pod>& pods_;
  std::string ns_;
  std::unordered_map<std::string, std::set<kube::object_key>> by_node_;
  std::size_t size_ = 0, gpu_operator_ = 0;
};

/// The module that a resource of this node is of; null where it is of none. Of several that advertise one resource
/// `mode`, then the first. Of a vendor whose cards a module gives out, everything counts that the node lists, at 0 too:
/// a MIG slice and a renamed resource are cards, and nothing but a plugin makes a node list them.
const modules::module_type* module_of(std::string_view resource, const kube::node& node, const modules::offer& offered,
                                      const modules::module_type* mode);

/// That of the resources a pod asks for; null where it asks for none of our own.
const modules::module_type* held_mode(const kube::pod& pod, const kube::node& node, const modules::offer& offered,
                                      const modules::module_type* mode);

/// Why a pod is never evicted, as kubectl drain has it; empty: it may be.
text::phrase why_it_stays(const kube::pod& pod);

/// "ReplicaSet web"; empty: it has no controller.
std::string controller_name(const kube::pod& pod);

}  // namespace reconcilers
