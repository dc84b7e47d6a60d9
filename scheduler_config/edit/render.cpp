#include "scheduler_config/edit/render.hpp"

#include <algorithm>

#include "kube/config.hpp"
#include "scheduler_config/managed.hpp"
#include "text/yaml/writer.hpp"

namespace reconcilers::scheduler_config {

using json = nlohmann::ordered_json;

json extender_entry(const extender_settings& of) {
  auto keys = of.resources;
  if (keys.empty()) {
    for (const auto& one : managed_keys) keys.emplace_back(one.key);
  }
  auto managed = json::array();
  for (const auto& key : keys) {
    const auto* known = managed_key_of(key);
    json one = {{"name", key}};
    if ((known && !known->offered) || std::ranges::find(of.not_offered, key) != of.not_offered.end())
      one["ignoredByScheduler"] = true;
    managed.push_back(std::move(one));
  }
  auto tls = json::object();
  if (!of.server_name.empty()) tls["serverName"] = of.server_name;
  if (!of.ca.empty()) tls["caData"] = kube::base64_encode(of.ca);
  if (!of.certificate.empty()) tls["certData"] = kube::base64_encode(of.certificate);
  if (!of.key.empty()) tls["keyData"] = kube::base64_encode(of.key);
  if (!of.folder.empty()) {
    tls["caFile"] = of.folder + "/ca.crt";
    tls["certFile"] = of.folder + "/tls.crt";
    tls["keyFile"] = of.folder + "/tls.key";
  }
  const bool https = of.url.starts_with("https://");
  json out = {{"urlPrefix", of.url},      {"filterVerb", "filter"},   {"prioritizeVerb", "prioritize"},
              {"preemptVerb", "preempt"}, {"bindVerb", "bind"},       {"weight", 10},
              {"httpTimeout", "5s"},      {"nodeCacheCapable", true}, {"enableHTTPS", https}};
  if (!tls.empty()) out["tlsConfig"] = std::move(tls);
  out["managedResources"] = std::move(managed);
  return out;
}

std::string render(const extender_settings& extender, const scheduler_settings& of) {
  json election = {{"leaderElect", true}, {"resourceName", of.lease}, {"resourceNamespace", of.lease_namespace}};
  json out = {{"apiVersion", api_version}, {"kind", "KubeSchedulerConfiguration"}};
  if (!of.kubeconfig.empty()) out["clientConnection"] = {{"kubeconfig", of.kubeconfig}};
  out["leaderElection"] = std::move(election);
  out["podMaxBackoffSeconds"] = 2;  // a waiting pod is tried again within two seconds
  out["profiles"] = json::array({{{"schedulerName", of.scheduler_name}}});
  out["extenders"] = json::array({extender_entry(extender)});
  return yaml::write(out);
}

}  // namespace reconcilers::scheduler_config
