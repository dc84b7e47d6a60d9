#pragma once
// The AcceleratorPolicy as a part of the program: the modules it brings with the roll-outs of their plugins, and its
// status, to which other parts give conditions.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/controller/ground.hpp"
#include "controller/parts.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/plugins/policy.hpp"
#include "reconcilers/plugins/rollouts.hpp"

namespace cli {

class policy_part {
 public:
  using condition_source = std::function<std::optional<controller::condition>()>;
  using scheduler_source = std::function<std::optional<std::vector<reconcilers::scheduler_row>>()>;

  /// @param on_nodes lives as long as this
  policy_part(const ground& ground, const reconcilers::node_pods& on_nodes, scheduler_source schedulers);

  /// One more condition of the status. They stand in the order in which they were added.
  void add_condition(condition_source source) { conditions_.push_back(std::move(source)); }
  /// What another part says in the status has changed.
  void report();
  /// The same for what changes often: a thousand changes at once are one look.
  void report_soon();
  /// Rights that were taken away while we run, and watches that do not work: said where an administrator looks, on the
  /// policy. Before the first sync the log and /readyz say it.
  void report_trouble(const kube::error& error);
  /// The condition of those watches; none while `refused` has none. @param refused names of caches
  std::optional<controller::condition> rights(const std::vector<std::string>& refused) const;

  void join(controller::parts& parts);

 private:
  std::vector<controller::condition> conditions() const;

  ground ground_;
  std::vector<condition_source> conditions_;
  reconcilers::policy policy_;
  reconcilers::rollouts rollouts_;
  const controller::parts* parts_ = nullptr;  ///< from `join` on
  controller::runner* queue_ = nullptr;
};

}  // namespace cli
