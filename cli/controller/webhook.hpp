#pragma once
// The admission webhook as a part of the program, made only where --webhook-address says where it listens: its
// sources, its answers, its certificates.

#include <string>

#include "cli/controller/ground.hpp"
#include "controller/http_server.hpp"
#include "controller/parts.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "reconcilers/admission/admission_server.hpp"
#include "reconcilers/admission/webhook_config.hpp"

namespace cli {

/// What is wrong with the webhook's flags, in one line; empty when nothing is.
text::phrase webhook_problem(const controller_options& options);

class webhook {
 public:
  explicit webhook(const ground& ground);

  void join(controller::parts& parts);

 private:
  ground ground_;
  controller::store<reconcilers::webhook_secret> secrets_;
  controller::store<reconcilers::mutating_webhooks> mutating_;
  controller::http_server server_;
  reconcilers::admission_server answers_;
  reconcilers::webhook_config config_;
  reconcilers::webhook_certificate certificate_;
};

/// Whether this server fills pods in by itself; one that does not say what it offers is taken for one that does.
kube::task<bool> server_fills_pods(kube::client& api);

}  // namespace cli
