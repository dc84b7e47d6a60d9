#pragma once
// What a pod's spec says of the nodes it may run on, held against a Node as the scheduler's plugins NodeName,
// TaintToleration and NodeAffinity do (nodeSelector and what affinity requires; what it prefers changes no answer).

#include <string>

#include "kube/projections/described_pod.hpp"
#include "kube/projections/node.hpp"
#include "text/phrase.hpp"

namespace cli {

class node_rules {
 public:
  node_rules() = default;
  explicit node_rules(const kube::described_pod& pod) : name_(pod.node_name), rules_(pod.rules) {}

  /// As if the pod tolerated every taint of that key.
  void tolerate(std::string key) { rules_.tolerations.push_back({std::move(key), "Exists", {}, {}}); }

  /// Empty: the pod may run there. Otherwise why not, the same for the same reason.
  text::phrase refusal(const kube::node& node) const;
  std::string refuses(const kube::node& node, text::language locale) const { return words_of(refusal(node), locale); }

 private:
  std::string name_;  ///< spec.nodeName
  kube::node_rules rules_;
};

}  // namespace cli
