#pragma once
// Device plugins of the product's own: quartermaster agent plugin. Whole cards by one resource, or shares by the keys
// of a vocabulary: cores, memory, seats. Which cards there are says the agent's report (AcceleratorNode), which card a
// pod has its placement: here both are read, and the container gets exactly that. A share is held by the MPS server of
// its card, whose ceilings are raised to the largest share that the card has before a container starts; and where the
// driver limits the memory of cgroups, by such a limit of its pod, which was read back. Loop thread only.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/allocation/starter.hpp"
#include "agent/device_plugin/plugin.hpp"
#include "agent/grpc/client.hpp"
#include "agent/mps/messages.hpp"
#include "api/accelerator_node.hpp"
#include "controller/http_server.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/reflector.hpp"
#include "controller/store.hpp"
#include "kube/curl_transport.hpp"

namespace agent {

struct card_plugin_options {
  std::string node;   ///< name of this node
  std::string cards;  ///< resource of whole cards; empty: shares are offered
  /// The vocabulary of shares. By the first that is offered a container gets its card: all that have a share ask for
  /// it.
  std::vector<allocation::offered_resource> shares;
  std::string mps_folder;  ///< of `agent mps`, where shares are offered
  std::string plugin_folder = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string cdi_folder = "/run/cdi";
  int health_port = 0;  ///< of /readyz, which says whether the kubelet listens; 0: none

  bool lends() const { return cards.empty(); }
  std::vector<allocation::offered_resource> resources() const;
};

class card_plugin {
 public:
  card_plugin(card_plugin_options options, kube::cluster_config cluster);
  /// Until a signal. errc::config where it cannot begin.
  kube::result<void> run();

 private:
  /// One resource.
  struct part {
    part(card_plugin& owner, allocation::offered_resource resource, bool is_first);
    allocation::offered_resource resource;
    allocation::starter starter;
    device_plugin::plugin plugin;
    std::string trouble;
    bool is_beyond = false;  ///< it would be more devices than a kubelet takes
  };
  using edits = boost::asio::awaitable<std::expected<allocation::container_edits, std::string>>;

  /// In order of their numbers; empty while the report is of an earlier boot, or old.
  std::vector<quota::card> cards() const;
  edits edits_of(allocation::container_start start);
  kube::task<grpc::reply> ask_mps(std::string_view method, std::string message, controller::milliseconds deadline);
  void offer();
  controller::http_response readiness() const;
  kube::result<void> answer_probes();
  boost::asio::awaitable<void> look_after();
  boost::asio::awaitable<void> look_at_mps();
  /// Once a container is there its own cgroup gets a limit, too: one of several in a pod then has its own share.
  boost::asio::awaitable<void> limit_containers();
  std::vector<mps::limited_pod> containers_to_limit();
  /// Ends the clients of pods shortly before these are killed.
  boost::asio::awaitable<void> end_clients();
  void note_ends(controller::milliseconds now);

  /// A pod that is being deleted.
  struct ending {
    controller::milliseconds due{0};  ///< when its clients end, as controller::boot_now()
    bool is_done = false;
  };

  card_plugin_options options_;
  std::string boot_;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  kube::curl_transport wire_;
  controller::reflector_metrics reflector_metrics_{metrics_};
  controller::store<kube::running_pod> pods_;
  controller::store<api::accelerator_node> nodes_;
  std::map<std::string, mps::served_card, std::less<>> served_;  ///< by UUID
  std::string mps_trouble_;
  bool is_to_limit_ = false;                 ///< pods or cards have changed
  std::set<std::string, std::less<>> seen_;  ///< the runtime's IDs of containers whose own limit was asked for
  std::optional<std::vector<quota::card>>
      offered_;  ///< nothing: some of them are not usable, or it was not offered yet
  std::map<std::string, ending, std::less<>> endings_;  ///< by UID
  std::deque<part> parts_;
  controller::http_server_metrics probe_metrics_{metrics_};
  std::optional<controller::http_server> probes_;
};

}  // namespace agent
