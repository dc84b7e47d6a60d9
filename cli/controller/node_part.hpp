#pragma once
// The nodes as a part of the program: their modes, their labels and cards, the reports of their agents, and the repair
// of their container runtime.

#include <functional>
#include <optional>
#include <vector>

#include "cli/controller/ground.hpp"
#include "controller/parts.hpp"
#include "reconcilers/container_runtime/runtime_fixer.hpp"
#include "reconcilers/nodes/card_labeler.hpp"
#include "reconcilers/nodes/enrolment.hpp"
#include "reconcilers/nodes/report_age.hpp"
#include "reconcilers/nodes/restore.hpp"

namespace cli {

class node_part {
 public:
  struct settings {
    /// Whether nodes with a module are kept for pods that ask for accelerators; empty: not decided yet.
    std::function<std::optional<bool>()> isolates;
    std::function<void()> on_state;       ///< `repair` has changed
    std::function<bool()> awaits_policy;  ///< that of the installation is about to be applied
  };
  node_part(const ground& ground, settings settings);

  /// Which pods on a node matter to its mode.
  const reconcilers::node_pods& pods() const { return enrolment_.pods(); }
  /// How far the repair of container runtimes is; empty: the policy asks for none.
  std::optional<controller::condition> repair() const { return runtime_fixer_.state(); }
  /// The labels that device configurations name, from now on.
  void declare(std::vector<reconcilers::label_alias> labels);
  /// What `isolates` says has changed.
  void isolate();

  void join(controller::parts& parts);

 private:
  void look_at(const std::vector<kube::object_key>& nodes);

  ground ground_;
  reconcilers::enrolment enrolment_;
  reconcilers::card_restore restore_;
  reconcilers::container_runtime::runtime_fixer runtime_fixer_;
  reconcilers::report_age report_age_;
  reconcilers::card_labeler labeler_;
  const controller::parts* parts_ = nullptr;  ///< from `join` on
  controller::runner* queue_ = nullptr;       ///< of the enrolment
};

}  // namespace cli
