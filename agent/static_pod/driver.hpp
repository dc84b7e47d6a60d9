#pragma once
// The driver of agent/static_pod: looks at files and cluster, asks the machine, and does what it says. Decides nothing
// by itself but whose turn it is: files are changed by who holds the Lease quartermaster-static-pod, one control-plane
// node at a time.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "agent/static_pod/cluster.hpp"
#include "agent/static_pod/files.hpp"
#include "controller/elector.hpp"
#include "controller/event_recorder.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "kube/curl_transport.hpp"

namespace agent::static_pod {

class driver {
 public:
  driver(static_pod::options options, kube::cluster_config cluster);
  /// Until a signal.
  void run();

 private:
  /// One hold of the Lease, from the wish for it to its end.
  struct turn {
    turn(kube::transport& transport, controller::elector::options options)
        : elector(transport, std::move(options), metrics) {}
    controller::registry metrics;
    controller::elector elector;
    controller::spawned running;
  };

  boost::asio::awaitable<void> work();
  /// One look and at most one step. True: look again at once.
  kube::task<bool> advance();
  kube::task<agent::static_pod::control_plane_facts> observe(const agent::static_pod::files::contents& seen,
                                                             const static_pod_cluster& cluster);
  void plan(agent::static_pod::control_plane_facts& facts, const agent::static_pod::files::contents& seen,
            const static_pod_cluster& cluster);
  kube::task<void> tell(const agent::static_pod::step& step, const std::string& manifest,
                        const static_pod_cluster& cluster, const std::optional<agent::static_pod::record>& kept);
  void want_turn();
  boost::asio::awaitable<void> give_turn_back();

  static_pod::options options_;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  kube::curl_transport wire_;
  kube::client api_{wire_};
  controller::event_recorder events_;
  agent::static_pod::files files_;
  agent::static_pod::limits limits_;
  agent::static_pod::pulse lease_;
  agent::static_pod::uptime uptime_;
  std::unique_ptr<turn> turn_;
  int server_minor_ = 0;
  std::optional<controller::milliseconds> watched_since_;
  std::string trouble_;     ///< said last
  bool under_way_ = false;  ///< a change has begun and is not over
  bool stopping_ = false;
};

}  // namespace agent::static_pod
