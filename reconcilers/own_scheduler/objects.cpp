#include "reconcilers/own_scheduler/objects.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "scheduler_config/edit/render.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "scheduler_config/managed.hpp"
#include "text/resource_name.hpp"

namespace reconcilers::own_scheduler {
namespace {

using nlohmann::json;

constexpr std::string_view usual_image = "registry.k8s.io/kube-scheduler";
constexpr std::string_view config_folder = "/etc/quartermaster/scheduler",
                           certificates_folder = "/etc/quartermaster/extender";
constexpr int port = 10259;

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Of two extenders or two entries none may manage the same key, and only a name with a domain of its own is one.
std::vector<std::string> keys_of(const facts& known) {
  std::vector<std::string> out;
  for (const auto& managed_key : scheduler_config::managed_keys) out.emplace_back(managed_key.key);
  for (const auto& key : known.declared) {
    if (text::is_extended_resource(key) && std::ranges::find(out, key) == out.end()) out.push_back(key);
  }
  return out;
}

json selector() { return {{"app.kubernetes.io/name", api::names::scheduler_objects}}; }

json tolerated(std::string_view key) { return {{"key", key}, {"operator", "Exists"}, {"effect", "NoSchedule"}}; }

json probe(int period_seconds, int failures) {
  return {{"httpGet", {{"path", "/healthz"}, {"port", port}, {"scheme", "HTTPS"}}},
          {"periodSeconds", period_seconds},
          {"timeoutSeconds", 5},
          {"failureThreshold", failures}};
}

json container_of(const scheduler_spec& spec, const facts& known) {
  const auto image = image_of(spec, known.server_version);
  return {
      {"name", "kube-scheduler"},
      {"image", spec.image.empty() ? modules::at_registry(image, known.image_registry) : image},
      {"command",
       {"kube-scheduler", "--config=" + std::string(config_folder) + "/" + std::string(config_file), "--v=2"}},
      {"ports", json::array({{{"name", "https"}, {"containerPort", port}}})},
      {"startupProbe", probe(2, 60)},
      {"livenessProbe", probe(10, 6)},
      {"readinessProbe", probe(5, 2)},
      {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", {{"drop", {"ALL"}}}}}},
      {"volumeMounts",
       {{{"name", "config"}, {"mountPath", config_folder}, {"readOnly", true}},
        {{"name", "extender"}, {"mountPath", certificates_folder}, {"readOnly", true}}}},
  };
}

/// It tolerates the taint of isolated nodes: in a cluster of nothing else it must run somewhere.
json pod_of(const scheduler_spec& spec, const facts& known) {
  json apart = {{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", {{"matchLabels", selector()}}}};
  json out = {
      {"serviceAccountName", api::names::scheduler_objects},
      {"automountServiceAccountToken", true},  // the account of the chart mounts none by itself
      {"priorityClassName", "system-cluster-critical"},
      {"nodeSelector", {{"kubernetes.io/os", "linux"}}},
      {"tolerations", {tolerated("node-role.kubernetes.io/control-plane"), tolerated(api::names::accelerator_taint)}},
      {"affinity",
       {{"podAntiAffinity",
         {{"preferredDuringSchedulingIgnoredDuringExecution",
           json::array({{{"weight", 100}, {"podAffinityTerm", std::move(apart)}}})}}}}},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", 65532},
        {"runAsGroup", 65532},
        {"fsGroup", 65532},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"containers", json::array({container_of(spec, known)})},
      {"volumes",
       {{{"name", "config"}, {"configMap", {{"name", api::names::scheduler_objects}}}},
        {{"name", "extender"},
         {"secret", {{"secretName", api::names::extender_client_secret}, {"defaultMode", 288}}}}}},
  };
  if (!spec.pull_secrets.empty()) out["imagePullSecrets"] = json::parse(spec.pull_secrets);
  return out;
}

/// A new version comes up before the old one goes: pods that ask for accelerators have no other.
json deployment_of(const scheduler_spec& spec, const facts& known, const std::string& config) {
  auto labels = selector();
  labels[api::names::managed_by_label] = api::names::managed_by;
  const auto checksum = scheduler_config::checksum_of(config);
  json annotations = {{api::names::scheduler_config_annotation, checksum},
                      {api::names::certificates_annotation, known.certificates}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata",
           {{"annotations",
             {{api::names::server_version_annotation, release_of(known.server_version)},
              {api::names::scheduler_version_annotation, version_of(spec, known.server_version)},
              {api::names::scheduler_config_annotation, checksum},
              {api::names::certificates_annotation, known.certificates}}}}},
          {"spec",
           {{"replicas", spec.replicas},
            {"revisionHistoryLimit", 3},
            {"selector", {{"matchLabels", selector()}}},
            {"strategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", 1}, {"maxUnavailable", 0}}}}},
            {"template",
             {{"metadata", {{"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
              {"spec", pod_of(spec, known)}}}}}};
}

modules::intent stamped(const kube::resource& type, json object, const facts& known) {
  modules::intent out;
  out.type = &type;
  out.module = part;
  out.key = {known.ns, std::string(api::names::scheduler_objects)};
  auto& metadata = object["metadata"];
  metadata["name"] = out.key.name;
  metadata["namespace"] = out.key.ns;
  metadata["labels"] = selector();
  metadata["labels"][api::names::managed_by_label] = api::names::managed_by;
  metadata["labels"][api::names::part_label] = part;
  out.hash = api::hex(api::fnv1a(object.dump()));
  metadata["annotations"][api::names::applied_annotation] = out.hash;
  out.body = object.dump();
  return out;
}

}  // namespace

std::string release_of(std::string_view server_version) {
  // vN.N.N, and the pre-releases that images are made of.
  std::size_t index = 1, dots = 0;
  if (!server_version.starts_with('v')) return {};
  for (; index < server_version.size() && (digit(server_version[index]) || (server_version[index] == '.' && dots < 2));
       ++index)
    dots += server_version[index] == '.' ? 1 : 0;
  if (dots != 2 || !digit(server_version[index - 1])) return {};
  auto rest = server_version.substr(index);
  for (const std::string_view stage : {"-alpha.", "-beta.", "-rc."}) {
    if (!rest.starts_with(stage)) continue;
    auto end = stage.size();
    while (end < rest.size() && digit(rest[end])) ++end;
    if (end > stage.size()) index += end;
  }
  return std::string(server_version.substr(0, index));
}

std::string image_of(const scheduler_spec& spec, std::string_view server_version) {
  const auto name = spec.image.empty() ? std::string(usual_image) : spec.image;
  const auto last = name.substr(name.rfind('/') + 1);  // a colon before it is a registry's port
  return last.find_first_of(":@") != last.npos ? name : name + ":" + release_of(server_version);
}

std::string version_of(const scheduler_spec& spec, std::string_view server_version) {
  const auto image = image_of(spec, server_version);
  const auto tagged = image.substr(0, image.find('@'));
  return release_of(std::string_view(tagged).substr(tagged.rfind(':') + 1));
}

std::string config_of(const facts& known) {
  scheduler_config::extender_settings extender;
  extender.server_name = std::string(api::names::extender_service) + "." + known.ns + ".svc";
  extender.url = "https://" + extender.server_name + "/scheduler";
  extender.folder = certificates_folder;
  extender.resources = keys_of(known);
  scheduler_config::scheduler_settings scheduler;
  scheduler.scheduler_name = api::names::scheduler_name;
  scheduler.lease = api::names::scheduler_objects;
  scheduler.kubeconfig.clear();
  return scheduler_config::render(extender, scheduler);
}

std::vector<modules::intent> objects_of(const scheduler_spec& spec, const facts& known) {
  const auto config = config_of(known);
  json file = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", {{config_file, config}}}};
  std::vector<modules::intent> out;
  out.push_back(stamped(kube::resources::config_maps, std::move(file), known));
  out.push_back(stamped(kube::resources::deployments, deployment_of(spec, known, config), known));
  return out;
}

}  // namespace reconcilers::own_scheduler
