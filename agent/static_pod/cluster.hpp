#pragma once
// What the agent for static pods reads in the cluster. Shall the kube-scheduler of this control-plane node have our
// entry, and with what content? What does the kubelet show of the kube-schedulers? How far are the other nodes?

#include <expected>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/static_pod/health.hpp"
#include "agent/static_pod/options.hpp"
#include "kube/client.hpp"
#include "scheduler_config/edit/render.hpp"

namespace agent::static_pod {

inline constexpr const char* static_pod_name = "quartermaster-static-pod";  ///< Lease, ConfigMap of rows, DaemonSet

struct static_pod_cluster {
  bool asked_for = false;
  /// The error says what is missing.
  std::expected<scheduler_config::extender_settings, text::phrase> extender;
  nlohmann::json mirror;                   ///< of this control-plane node's kube-scheduler; null: none
  std::vector<nlohmann::json> schedulers;  ///< of all control-plane nodes
  std::optional<std::string> renewed;      ///< the lease kube-system/kube-scheduler
  std::map<std::string, agent::static_pod::status_row> rows;
  bool has_rows = true;  ///< the ConfigMap is there
  std::map<std::string, agent::static_pod::status_row>
      rolled_back;        ///< of `rows`, other control-plane nodes that are there
  std::string busy_node;  ///< another control-plane node that is under way; empty: none
};

/// `pod`: the name of this control-plane node's mirror pod. Any answer that is missing is an error: nothing is judged
/// by half of it.
kube::task<static_pod_cluster> look_at_cluster(kube::client& api, const static_pod::options& options, std::string pod);

/// Does the extender answer with what kube-scheduler will show it? Any HTTP status does. The error is one line.
kube::task<void> try_extender(const scheduler_config::extender_settings& settings);
/// GET /healthz. `base`: https://HOST:PORT; its certificate is the kube-scheduler's own, made at start, and not
/// checked.
kube::task<void> try_healthz(std::string base);

}  // namespace agent::static_pod
