#pragma once
// Nodes and pods of a picture as verbs that look at nodes want them: in order, the pods of each node, what is known of
// each node. A view: the picture outlives it, and does not change meanwhile.

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli {

struct fleet {
  /// `only_node`: that one and its pods; empty: all. `only_ns`: of pods those of this namespace; empty: of all.
  explicit fleet(const picture& picture, std::string_view only_node = {}, std::string_view only_ns = {});

  const picture& cluster;
  const agent_reports* reports;                                 ///< the picture's, unless others are set
  const reconcilers::accelerator_policy* policy;                ///< null: there is none named default
  std::vector<std::reference_wrapper<const kube::node>> nodes;  ///< in the order of their names
  /// Not finished; plugin pods, our own and others, and those that ask for an extended resource. In the order of their
  /// keys.
  std::vector<const kube::pod*> pods;

  const api::accelerator_node* accelerator(std::string_view node) const;  ///< null: there is none
  const api::agent_report* report(std::string_view node) const;           ///< null: there is none
  const std::vector<const kube::pod*>& pods_on(std::string_view node) const;
  bool is_plugin(const kube::pod& pod) const;

 private:
  std::map<std::string_view, std::vector<const kube::pod*>> by_node_;
};

/// What is known of a node for preflight: labels, and the agent's report where there is one.
reconcilers::node_facts facts_of(const fleet& fleet, const kube::node& node);

/// For the walk: those nodes that have or ask for a mode, or the one that was asked for.
reconcilers::verify::cluster_view view_of(const fleet& fleet, std::string_view only_node);

}  // namespace cli
