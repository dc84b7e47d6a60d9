#pragma once
// The declarations as a part of the program: each is judged, and what they say together becomes the rules for pods.

#include <functional>
#include <optional>

#include "cli/controller/ground.hpp"
#include "cli/controller/node_part.hpp"
#include "controller/parts.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/resource_rules.hpp"

namespace cli {

class declaration_part {
 public:
  struct settings {
    std::function<bool()> filled_by_policies;    ///< false: the API server cannot fill pods in by itself
    std::function<std::optional<bool>()> sends;  ///< pods go to our scheduler; empty: not decided yet
    std::function<void()> on_state;              ///< `state` has changed
  };
  /// @param nodes hear which labels device configurations declare
  declaration_part(const ground& ground, node_part& nodes, settings settings);

  /// Whether pods are held to the rules, and why not.
  std::optional<controller::condition> state() const { return rules_.state(); }
  /// What `sends` says has changed.
  void compile();

  void join(controller::parts& parts);

 private:
  void declare_labels();

  ground ground_;
  node_part& nodes_;
  reconcilers::custom_resource judge_;
  reconcilers::resource_rules rules_;
  controller::runner* queue_ = nullptr;  ///< of the rules, from `join` on
};

}  // namespace cli
