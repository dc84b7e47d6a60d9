#pragma once
// The agent for cards on one node. The watcher's thread says what NVML shows; here it becomes a report, which is
// applied to this node's AcceleratorNode when it differs from what the object says. While the API server is away the
// last report is kept, and the newest is written when it answers again.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "agent/cards/history.hpp"
#include "agent/cards/watcher.hpp"
#include "agent/cards/xid_log.hpp"
#include "agent/exporter/exporter.hpp"
#include "agent/facts/reporter.hpp"
#include "agent/mps/state_file.hpp"
#include "api/accelerator_node.hpp"
#include "controller/coded_status.hpp"
#include "controller/event_recorder.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/reflector.hpp"
#include "controller/store.hpp"
#include "kube/curl_transport.hpp"
#include "kube/wait_list.hpp"

namespace agent {

struct options {
  std::string node;               ///< name of this node
  std::string driver_root = "/";  ///< where the node's file system is mounted
  std::string node_root = "/";    ///< where the node's dev, etc, run and usr are mounted
  int period_seconds = 10;        ///< between two readings of everything
  exporter::metrics_options metrics;
};

class card_agent {
 public:
  card_agent(options options, kube::cluster_config cluster);
  /// Until a signal. errc::config where it cannot begin.
  kube::result<void> run();
  /// What /metrics says now; nothing of cards without a port for it.
  std::string metrics_page() const { return metrics_.text(); }

 private:
  boost::asio::awaitable<void> work();
  /// Applies the reports of cards and of preflight where the object does not say them yet. False: there was no news of
  /// cards.
  kube::task<bool> write();
  kube::task<bool> write_cards();
  /// Makes the object of a node that asks for no mode. One that was deleted is left alone for a minute: what the
  /// operator removes when it is uninstalled must not come back.
  kube::task<bool> introduce();
  /// Once a second: the watcher's sign of life, the state of MPS, and XIDs that are not logged yet.
  boost::asio::awaitable<void> watch_over();
  void take(cards::sighting sighting);
  void restore(const api::accelerator_node& object);
  void look_at_mps();
  void tell(const cards::inventory& report);
  const api::reported_node* object() const { return nodes_.find({{}, options_.node}); }

  options options_;
  std::string boot_;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  kube::curl_transport wire_;
  kube::client api_{wire_};
  controller::event_recorder events_;
  controller::reflector_metrics reflector_metrics_{metrics_};
  controller::store<api::reported_node> nodes_;
  std::shared_ptr<kube::wait_list> changed_ = std::make_shared<kube::wait_list>();
  cards::history history_;
  cards::xid_log xid_log_;
  std::optional<cards::inventory> seen_;                  ///< the last inventory, without what history knows
  std::unordered_map<std::string, std::string> defects_;  ///< by UUID, as they were reported last
  std::unordered_map<std::string, std::vector<std::string>> warnings_;  ///< the same of warnings
  mps::node_state mps_;
  std::vector<std::string> restored_;  ///< UUIDs that were taken back already
  bool recalled_ = false;
  std::optional<controller::milliseconds> free_at_;  ///< until then no object is made
  std::unique_ptr<exporter::exporter> exporter_;     ///< null where no one asked for metrics
  bool hangs_ = false;                               ///< the driver does not come back from a call
  bool has_news_ = false;                            ///< since `work` last looked
  facts::reporter preflight_;
  controller::coded_status status_;  ///< of cards
  std::unique_ptr<facts::facts_reader> reader_;
  std::unique_ptr<cards::watcher> watcher_;  ///< last: its thread ends before anything else goes
};

/// The boot of this machine; empty where the kernel does not say.
std::string boot_of_machine();

}  // namespace agent
