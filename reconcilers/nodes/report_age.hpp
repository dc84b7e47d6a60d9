#pragma once
// Whether someone keeps the report of a node's agent true. An agent writes only what has changed, so the report of an
// agent that is gone looks like a fresh one. The agent's pod tells them apart: where a node has a report and no pod of
// the agent has been Ready for five minutes, the condition AgentReporting of its AcceleratorNode is False. The report
// stays, so what was withdrawn stays withdrawn. A pod that has been Ready for ten seconds makes the condition True. A
// node whose agent never went has no such condition, so a settled fleet costs no write.
//
// A new process knows nothing of the time before it: it waits the five minutes again. A whole fleet that loses its
// agents is written at five nodes per second, which is as fast as events are written. Keys are node names.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/clock.hpp"
#include "controller/coded_status.hpp"
#include "controller/metrics.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "text/phrase.hpp"

namespace reconcilers {

class report_age final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<kube::node>& nodes;
    controller::store<kube::pod>& pods;
    const controller::store<api::accelerator_node>& reports;
  };
  struct settings {
    std::string ns;                           ///< where the agent's DaemonSet is; a label elsewhere means nothing
    controller::milliseconds grace{300'000};  ///< a DaemonSet that rolls, a node that starts again
    controller::milliseconds steady{10'000};  ///< a pod that crashes again and again is Ready for less
    std::function<controller::wall_time()> wall = [] { return std::chrono::system_clock::now(); };
    std::function<controller::milliseconds()> now = controller::boot_now;
  };

  /// Everything given must outlive this. Observes the pods, so it must be made before the observers that call
  /// `affected_by`.
  report_age(stores stores, kube::client& client, controller::recorder& events, settings settings);
  report_age(const report_age&) = delete;
  report_age& operator=(const report_age&) = delete;

  std::string_view name() const override { return "report_age"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;

 private:
  /// The agent of a node, as its pods have shown it.
  struct sight {
    bool is_ready = false;
    controller::milliseconds since{0};
    std::string began;                             ///< `since`, RFC 3339
    bool is_first = true;                          ///< this process has not seen it otherwise
    std::optional<controller::milliseconds> turn;  ///< when this node may be written about
  };

  bool is_agent(const kube::pod& pod) const;
  bool is_ready(const std::string& node) const;
  void take_in(const kube::pod* before, const kube::pod* after);
  sight& look(const std::string& node);
  text::phrase message_of(const std::string& node, const sight& sight) const;

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  std::unordered_map<std::string, std::set<kube::object_key>> pods_;  ///< of the agent, by node
  std::unordered_map<std::string, sight> sights_;                     ///< of nodes with a report
  controller::milliseconds next_turn_{0};
  controller::coded_status status_;
};

/// quartermaster_agent_gone_nodes and quartermaster_preflight_failed_nodes, read off the store at each scrape. An agent
/// names its checks itself, so at most `most_checks` names have a series, those of the most nodes; the others are one.
inline constexpr std::size_t most_checks = 40;
void write_report_metrics(const controller::store<api::accelerator_node>& reports, controller::metric_text& out);

}  // namespace reconcilers
