#include "cli/controller/stores.hpp"

#include "agent/static_pod/cluster.hpp"
#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "reconcilers/declarations/declaration.hpp"
#include "reconcilers/declarations/declared_config_map.hpp"
#include "reconcilers/usage/keeper.hpp"

namespace cli {

stores::stores() = default;
stores::~stores() = default;

kube::watch_settings in_namespace(std::string ns, std::string selector) {
  kube::watch_settings out;
  out.ns = std::move(ns);
  out.label_selector = std::move(selector);
  return out;
}

kube::watch_settings only(std::string_view name, std::string ns) {
  kube::watch_settings out;
  out.ns = std::move(ns);
  out.field_selector = "metadata.name=" + std::string(name);
  return out;
}

void caches::add(stores& stores, const controller_options& options, controller::reflector_options of_pods) {
  namespace declared = reconcilers::declarations::names;
  const auto selector = "app.kubernetes.io/managed-by=quartermaster";
  const bool serves_extender = !options.extender_address.empty();
  add({}, stores.policies);
  add({}, stores.accelerator_nodes);
  add({}, stores.nodes);
  add({}, stores.pods, std::move(of_pods));
  add({}, stores.name_spaces);
  add(in_namespace({}, std::string(reconcilers::usage::cluster_label)), stores.usages);
  add(in_namespace(options.ns), stores.daemon_sets);
  add(in_namespace(options.ns, selector), stores.deployments);
  if (serves_extender) add(only(api::names::extender_client_secret, options.ns), stores.client_secret);
  add(only(agent::static_pod::static_pod_name, options.ns), stores.control_plane_rows);
  add(in_namespace(options.ns, selector), stores.services);
  add(in_namespace(options.ns, selector), stores.service_accounts);
  add(in_namespace(options.ns, selector), stores.config_maps);
  add({}, stores.runtime_classes);
  add({}, stores.compiled_rules);
  add({}, stores.quotas);
  const auto declarations = [&](std::string_view label, controller::store<kube::config_map>& store) {
    auto settings = in_namespace(options.declarations, std::string(label));
    settings.page = reconcilers::declarations::declared_config_map::page;
    add<reconcilers::declarations::declared_config_map>(std::move(settings), store);
  };
  declarations(declared::alauda_selector, stores.declared_alauda);
  declarations(declared::cpaas_selector, stores.declared_cpaas);
  declarations(declared::device_selector, stores.device_configs);
  if (serves_extender) add(only(api::gpu_quota_name, std::string(api::gpu_quota_namespace)), stores.old_quotas);
}

}  // namespace cli
