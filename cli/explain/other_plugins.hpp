#pragma once
// Resources that a pod asks for and another device plugin than ours offers: kube-scheduler alone compares them with
// what the node has left of them (k8s.io/kubernetes noderesources/fit.go, fitsRequest), and so does this.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/explain/node_rules.hpp"
#include "cli/lint/unoffered.hpp"
#include "kube/quantity.hpp"
#include "text/phrase.hpp"

namespace cli {

/// What the pod asks for of such keys. Left out are keys that are ours or declared, those that no node has, and those
/// that a DeviceClass gives.
kube::quantities foreign_amounts(const kube::pod& pod, const known_resources& known, const picture& picture);

/// What the nodes have left of them.
class foreign_room {
 public:
  /// Adds up what all pods hold.
  explicit foreign_room(const picture& picture);
  /// Which of the amounts the node has too little of; empty: none.
  text::phrase refusal(const kube::node& node, const kube::quantities& amounts) const;
  std::int64_t left(const kube::node& node, std::string_view key) const;
  void take(const std::string& node, const kube::quantities& amounts);

 private:
  std::map<std::string, std::map<std::string, std::int64_t, std::less<>>, std::less<>> held_;  ///< by node and key
};

/// On how many nodes a pod that asks for no card fits, which kube-scheduler chooses among.
struct foreign_fit {
  std::size_t nodes = 0;
  const kube::node* best = nullptr;  ///< with most left of the first key, which kube-scheduler takes by itself
  std::string refusals;              ///< of the nodes that do not fit; empty: no node takes new pods
};
/// @param rules of the pod; null: not known
foreign_fit fit_of(const picture& picture, const foreign_room& room, const node_rules* rules,
                   const kube::quantities& amounts, text::language locale);

/// "1 node: ...; 2 nodes: ..."
using nodes_by_refusal = std::vector<std::pair<std::string, std::size_t>>;
std::string words_of(const nodes_by_refusal& refusals, text::language locale);

/// "rdma/hca, amd.com/gpu"
std::string keys_in(const kube::quantities& amounts, text::language locale);

}  // namespace cli
