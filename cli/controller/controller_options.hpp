#pragma once
// What `quartermaster controller` can be told: each flag has an environment variable (QUARTERMASTER_...) and a key in
// the file of
// --config. Nothing here is acted on; cli/controller/controller.cpp does that.

#include <string>
#include <string_view>

#include "controller/log.hpp"
#include "text/phrase.hpp"

namespace CLI {
class App;
}

namespace cli {

struct controller_options {
  std::string config;  ///< the file more of these came from
  std::string kubeconfig, context;
  std::string ns;        ///< where the lease and the modules live; empty: POD_NAMESPACE, the kubeconfig's, kube-system
  std::string pod_name;  ///< our own pod, which the leader labels; empty outside a cluster
  std::string declarations = "kube-public";
  std::string policy;          ///< file; empty: the policy is made by people only
  std::string image;           ///< our own, for modules whose plugin is part of it
  std::string image_registry;  ///< of images that the policy does not name; empty: that of each
  std::string metrics_address = ":8080";
  bool metrics_authentication = false;                          ///< TLS, and /metrics for those who may get it
  std::string webhook_address;                                  ///< empty: no admission webhook
  std::string webhook_url;                                      ///< empty: it is called through the chart's Service
  bool view_certificate = false;                                ///< keep that of the console's aggregated API
  std::string webhook_client_ca;                                ///< file; empty: callers need no certificate
  std::string extender_address;                                 ///< empty: no scheduler extender
  std::string predicates_address;                               ///< empty: no plain port for callers that only filter
  std::string extender_cert, extender_key, extender_client_ca;  ///< files; read again when they change
  std::string log_format = "text";
  std::string log_level = "info";
  std::string language;                ///< of refusals; empty: that of the environment
  int agent_grace_seconds = 300;       ///< without an agent, until the report of its node is called old
  int usage_checkpoint_seconds = 300;  ///< between two writes of the time of cards
  int lease_seconds = 15, renew_seconds = 10, retry_seconds = 2;
};

/// What is wrong with an address, with its flag; empty: nothing, or there is none.
text::phrase address_problem(std::string_view flag, const std::string& address);

/// Adds the flags to `verb`; they write into `options`, which must outlive parsing.
void add_controller_options(CLI::App& verb, controller_options& options);

}  // namespace cli
