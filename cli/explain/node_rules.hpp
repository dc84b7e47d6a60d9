#pragma once
// What a pod's spec says of the nodes it may run on, held against a Node as the scheduler's plugins NodeName,
// TaintToleration and NodeAffinity do (nodeSelector and what affinity requires; what it prefers changes no answer).
// For a pod in a file: of one in the cluster no one keeps these fields.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kube/projections/node.hpp"
#include "text/message.hpp"

namespace cli {

class node_rules {
 public:
  node_rules() = default;
  /// @param spec of a pod; what has not the form of the API is as if it were not there
  explicit node_rules(const nlohmann::json& spec);

  /// As if the pod tolerated every taint of that key.
  void tolerate(std::string key) { tolerations_.push_back({std::move(key), "Exists", {}, {}}); }

  /// Empty: the pod may run there. Otherwise why not, the same words for the same reason.
  std::string refuses(const kube::node& node, text::language locale) const;

 private:
  struct requirement {
    std::string key, op;
    std::vector<std::string> values;
    bool is_field = false;  ///< of matchFields, which knows metadata.name alone
    bool met_by(const kube::node& node) const;
  };
  struct toleration {
    std::string key, op, value, effect;
    bool covers(const kube::taint& taint) const;
  };

  std::string name_;  ///< spec.nodeName
  std::vector<std::pair<std::string, std::string>> selector_;
  std::vector<toleration> tolerations_;
  std::vector<std::vector<requirement>> terms_;  ///< one of them is to be met
  bool has_terms_ = false;
};

}  // namespace cli
