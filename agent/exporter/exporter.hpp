#pragma once
// Serves /metrics on a node. Readings come from the watcher's thread, devices from the kubelet every period, and pods
// from the API server; a scrape puts together what is known and asks no one. Loop thread only.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/cards/inventory.hpp"
#include "agent/cards/usage.hpp"
#include "agent/exporter/page.hpp"
#include "agent/exporter/pod.hpp"
#include "agent/facts/judge.hpp"
#include "agent/kubelet/pod_resources.hpp"
#include "controller/http_server.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/metrics_access.hpp"
#include "controller/reflector.hpp"
#include "controller/store.hpp"
#include "kube/transport.hpp"

namespace agent::exporter {

struct metrics_options {
  int port = 0;                    ///< of /metrics; 0: no exporter
  bool authentication = false;     ///< TLS, and /metrics for those who may get it
  std::string pod_resources;       ///< the kubelet's socket; empty: it is not asked
  std::size_t max_series = 6'000;  ///< of containers
};

/// What the rest of the agent knows.
struct agent_facts {
  std::function<cards::inventory()> report;
  std::function<std::string()> mode;
  std::function<std::vector<facts::row>()> preflight = {};
};

class exporter {
 public:
  /// @param period of the readings
  exporter(controller::loop& loop, controller::registry& metrics, metrics_options options, std::string node,
           agent_facts facts, controller::milliseconds period);
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;

  /// Listens, and follows the pods of the node. With authentication, `transport` is asked about callers. errc::config
  /// where the port cannot be had.
  kube::result<void> start(kube::transport& transport, controller::reflector_metrics& metrics);
  void take(std::vector<cards::card_usage> usage);
  /// Beyond a thousand kinds, which no driver has, only those that were seen before count.
  void count_xid(const std::string& card, std::uint64_t xid);

 private:
  boost::asio::awaitable<void> ask_kubelet();
  void collect(controller::metric_text& text) const;
  page now() const;

  controller::loop& loop_;
  metrics_options options_;
  std::string node_;
  agent_facts facts_;
  controller::milliseconds period_;
  controller::registry& metrics_;
  controller::gauge* kubelet_answers_ = nullptr;  ///< only where the kubelet is asked: there 0 is a fault
  controller::http_server_metrics serving_;
  controller::http_server server_;
  std::unique_ptr<controller::metrics_access> access_;  ///< null where everyone may have the page
  controller::reflector_state pods_state_;
  controller::store<pod> pods_;
  std::vector<given_devices> devices_;  ///< the kubelet's last answer: while it is away its pods go on
  std::vector<cards::card_usage> usage_;
  controller::milliseconds read_at_{0};  ///< of `usage_`; 0: none yet
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> xids_;
};

}  // namespace agent::exporter
