#include "scheduler_config/edit/render.hpp"

#include <algorithm>

#include "kube/config.hpp"
#include "scheduler_config/managed.hpp"
#include "text/yaml/writer.hpp"

namespace scheduler_config {

using nlohmann::ordered_json;

ordered_json extender_entry(const extender_settings& settings) {
  auto keys = settings.resources;
  if (keys.empty()) {
    for (const auto& managed_key : managed_keys) keys.emplace_back(managed_key.key);
  }
  auto managed = ordered_json::array();
  for (const auto& key : keys) {
    const auto* known = managed_key_of(key);
    ordered_json object = {{"name", key}};
    if ((known && !known->offered) || std::ranges::find(settings.not_offered, key) != settings.not_offered.end())
      object["ignoredByScheduler"] = true;
    managed.push_back(std::move(object));
  }
  auto tls = ordered_json::object();
  if (!settings.server_name.empty()) tls["serverName"] = settings.server_name;
  if (!settings.ca.empty()) tls["caData"] = kube::base64_encode(settings.ca);
  if (!settings.certificate.empty()) tls["certData"] = kube::base64_encode(settings.certificate);
  if (!settings.key.empty()) tls["keyData"] = kube::base64_encode(settings.key);
  if (!settings.folder.empty()) {
    tls["caFile"] = settings.folder + "/ca.crt";
    tls["certFile"] = settings.folder + "/tls.crt";
    tls["keyFile"] = settings.folder + "/tls.key";
  }
  const bool https = settings.url.starts_with("https://");
  ordered_json out = {{"urlPrefix", settings.url}, {"filterVerb", "filter"},   {"prioritizeVerb", "prioritize"},
                      {"preemptVerb", "preempt"},  {"bindVerb", "bind"},       {"weight", 10},
                      {"httpTimeout", "5s"},       {"nodeCacheCapable", true}, {"enableHTTPS", https}};
  if (!tls.empty()) out["tlsConfig"] = std::move(tls);
  out["managedResources"] = std::move(managed);
  return out;
}

std::string render(const extender_settings& extender, const scheduler_settings& settings) {
  ordered_json election = {
      {"leaderElect", true}, {"resourceName", settings.lease}, {"resourceNamespace", settings.lease_namespace}};
  ordered_json out = {{"apiVersion", api_version}, {"kind", "KubeSchedulerConfiguration"}};
  if (!settings.kubeconfig.empty()) out["clientConnection"] = {{"kubeconfig", settings.kubeconfig}};
  out["leaderElection"] = std::move(election);
  out["podMaxBackoffSeconds"] = 2;  // a waiting pod is tried again within two seconds
  out["profiles"] = ordered_json::array({{{"schedulerName", settings.scheduler_name}}});
  out["extenders"] = ordered_json::array({extender_entry(extender)});
  return text::yaml::write(out);
}

}  // namespace scheduler_config
