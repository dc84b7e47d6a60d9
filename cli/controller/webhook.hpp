#pragma once
// The admission webhook as a part of the program, made only where --webhook-address says where it listens: its
// sources, its answers, its certificates.

#include <string>

#include "cli/controller/controller_options.hpp"
#include "cli/controller/stores.hpp"
#include "controller/http_server.hpp"
#include "controller/manager.hpp"
#include "controller/runner.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "reconcilers/admission/admission_server.hpp"
#include "reconcilers/admission/webhook_config.hpp"

namespace cli {

/// What is wrong with the webhook's flags, in one line; empty when nothing is.
std::string webhook_problem(const controller_options& options);

struct webhook {
  struct dependencies {
    controller::loop& loop;
    controller::registry& metrics;
    controller::http_server_metrics& serving;
    controller::runner_metrics& running;
    kube::client& client;
    const controller::store<reconcilers::accelerator_policy>& policies;
    controller::store<api::compiled_rules>& rules;
    const controller::store<kube::node>& nodes;
  };
  webhook(dependencies dependencies, const controller_options& options);

  /// Into the phases of the manager. `ns` is the operator's.
  void join(controller::manager& manager, controller::health& health, caches& caches, const std::string& ns);

  controller::store<reconcilers::webhook_secret> secrets;
  controller::store<reconcilers::mutating_webhooks> mutating;

 private:
  template <class T>
  void watch(controller::store<T>& store);

  controller::http_server server_;
  reconcilers::admission_server answers_;
  reconcilers::webhook_config config_;
  reconcilers::webhook_certificate certificate_;
  controller::runner keeping_;
};

/// Whether this server fills pods in by itself; one that does not say what it offers is taken for one that does.
kube::task<bool> server_fills_pods(kube::client& api);

}  // namespace cli
