#pragma once
// What the operator knows of the cluster, and the watches that keep it so. The webhook and the extender have stores of
// their own besides, for their secrets and configurations, and give them to the same `caches`.

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "api/accelerator_node.hpp"
#include "api/accelerator_quota.hpp"
#include "api/accelerator_usage.hpp"
#include "api/compiled_rules.hpp"
#include "api/owned_object.hpp"
#include "cli/controller/controller_options.hpp"
#include "controller/manager.hpp"
#include "controller/store.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/deployment.hpp"
#include "kube/projections/name_space.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/certificates/extender_certificates.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace cli {

struct stores {
  stores();
  ~stores();
  stores(const stores&) = delete;
  stores& operator=(const stores&) = delete;

  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<kube::name_space> name_spaces;
  controller::store<kube::daemon_set> daemon_sets;
  controller::store<kube::deployment> deployments;
  controller::store<reconcilers::extender_secret> client_secret;  ///< with the extender only
  controller::store<kube::config_map> control_plane_rows;         ///< that of the static-pod agents alone
  controller::store<api::owned_service> services;
  controller::store<api::owned_service_account> service_accounts;
  controller::store<api::owned_config_map> config_maps;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<api::accelerator_node> accelerator_nodes;
  controller::store<api::owned_runtime_class> runtime_classes;
  controller::store<api::compiled_rules> compiled_rules;
  controller::store<api::accelerator_quota> quotas;
  controller::store<api::accelerator_usage> usages;  ///< of the whole cluster
  controller::store<kube::config_map> old_quotas;    ///< with the extender only
  controller::store<kube::config_map> declared_alauda, declared_cpaas, device_configs;
};

/// Objects of one namespace; empty: of all.
kube::watch_settings in_namespace(std::string ns, std::string selector = {});
/// The object of this name alone.
kube::watch_settings only(std::string_view name, std::string ns = {});

/// Gives stores to the manager, each with its watch.
class caches {
 public:
  /// `on_trouble` is called about watches that do not work, `on_rights` when one is refused or no longer.
  /// `transport` outlives the manager.
  caches(controller::manager& manager, kube::transport& transport, std::function<void(const kube::error&)> on_trouble,
         std::function<void()> on_rights)
      : manager_(manager),
        transport_(transport),
        on_trouble_(std::move(on_trouble)),
        on_rights_(std::move(on_rights)) {}

  template <class Source = void, class T>
  void add(kube::watch_settings settings, controller::store<T>& store,
           controller::reflector_options options = controller::reflector_options()) {
    options.on_trouble = on_trouble_;
    options.on_rights = on_rights_;
    manager_.template add_cache<Source>(transport_, std::move(settings), store, std::move(options));
  }
  /// All stores of the operator. `of_pods` is for the one of pods.
  void add(stores& stores, const controller_options& options, controller::reflector_options of_pods);

 private:
  controller::manager& manager_;
  kube::transport& transport_;
  std::function<void(const kube::error&)> on_trouble_;
  std::function<void()> on_rights_;
};

}  // namespace cli
