#pragma once
// What makes a kube-scheduler ask our extender: the one entry, in a file of its own (a kube-scheduler next to the
// cluster's) or as an addition to what is there (merge.hpp). Pure: certificates come as text.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/edit/merge.hpp"

namespace scheduler_config {

struct extender_settings {
  std::string url;                       ///< https://HOST:PORT/scheduler
  std::string server_name;               ///< in the extender's certificate; empty: the host of `url`
  std::string ca, certificate, key;      ///< PEM: who it is signed by, and what kube-scheduler shows
  std::string folder;                    ///< or where these are in the container: ca.crt, tls.crt, tls.key
  std::vector<std::string> resources;    ///< empty: every key of managed.hpp
  std::vector<std::string> not_offered;  ///< keys no node advertises, next to those of managed.hpp
};
/// One member of `extenders`.
nlohmann::ordered_json extender_entry(const extender_settings& settings);

struct scheduler_settings {
  std::string scheduler_name = "quartermaster";  ///< what pods write as spec.schedulerName
  std::string lease = "quartermaster-scheduler";
  std::string lease_namespace = "kube-system";
  std::string kubeconfig = "/etc/kubernetes/scheduler.conf";  ///< in the container; empty: its ServiceAccount
};
/// A whole file for a kube-scheduler of its own.
std::string render(const extender_settings& extender, const scheduler_settings& settings);

}  // namespace scheduler_config
