#pragma once
// A device plugin of the product's own for whole cards: quartermaster agent plugin. Which cards there are says the
// agent's report (AcceleratorNode), which card a pod has its placement: here both are read, and the container gets
// exactly that. Loop thread only.

#include <memory>
#include <string>
#include <vector>

#include "agent/allocation/starter.hpp"
#include "agent/device_plugin/plugin.hpp"
#include "api/accelerator_node.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/reflector.hpp"
#include "controller/store.hpp"
#include "kube/curl_transport.hpp"

namespace agent {

struct card_plugin_options {
  std::string node;  ///< name of this node
  std::string resource = "nvidia.com/gpu";
  std::string plugin_folder = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string cdi_folder = "/run/cdi";
};

class card_plugin {
 public:
  card_plugin(card_plugin_options options, kube::cluster_config cluster);
  /// Until a signal. errc::config where it cannot begin.
  kube::result<void> run();

 private:
  /// In order of their numbers; empty while the report is of an earlier boot, or old.
  std::vector<quota::card> cards() const;
  void offer();
  boost::asio::awaitable<void> look_after();

  card_plugin_options options_;
  std::string boot_;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  kube::curl_transport wire_;
  controller::reflector_metrics reflector_metrics_{metrics_};
  controller::store<kube::running_pod> pods_;
  controller::store<api::accelerator_node> nodes_;
  allocation::starter starter_;
  device_plugin::plugin plugin_;
};

}  // namespace agent
