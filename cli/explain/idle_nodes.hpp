#pragma once
// Nodes that no pod uses, and the mode in which a waiting pod would fit on the cards they have.

#include <string>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/explain/node_rules.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

struct idle_node {
  std::string name;
  std::string mode;     ///< in which the pod fits there
  std::string current;  ///< in which the node is; empty: in none
  std::string command;  ///< that asks for the mode
};

/// At most two, by name the first in no mode and the first in another mode. Each was tried by the engine, as the node
/// would be then: its cards, the modules and limits of the policy, and what the operator would answer to the label.
/// What the node's agent would find is not known before. @param rules of the pod; null: not known
std::vector<idle_node> idle_nodes_for(const picture& picture, const kube::pod& pod,
                                      const reconcilers::extender::pod_request& request, const node_rules* rules);

/// How a node of the dialect with that engine mode reads amounts, by the settings of the policy.
quota::service service_in(quota::mode mode, const reconcilers::accelerator_policy* policy);

}  // namespace cli
