#pragma once
// The admission webhook of every replica: routes on an HTTP server, answered at once from the stores. What pods are
// held to is the ResourceRules object, the same that the chart's policies read, so all replicas and the API server
// go by the same; how strictly is the policy's word.

#include <optional>
#include <string>

#include "controller/http_server.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/admission/admission.hpp"
#include "reconcilers/admission/compatibility.hpp"
#include "reconcilers/declarations/resource_rules.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

class admission_server {
 public:
  /// Everything given must outlive this. Observes `rules`. `ns` is our own namespace. `nodes`: what pods that say what
  /// they need are held against; null: that webhook is not served.
  admission_server(const controller::store<accelerator_policy>& policies, controller::store<api::compiled_rules>& rules,
                   std::string ns, controller::registry& metrics, const controller::store<kube::node>* nodes = nullptr);
  admission_server(const admission_server&) = delete;
  admission_server& operator=(const admission_server&) = delete;

  void add_routes(controller::http_server& server);

  review_answer mutate_pod(std::string_view review) const;
  review_answer admit_compatible(std::string_view review) const;

 private:
  void take_in(const api::compiled_rules* now);
  void add_route(controller::http_server& server, const webhook_route& webhook_route, std::size_t body_limit,
                 review_answer (admission_server::*by)(std::string_view) const);
  enforcement mode() const;
  /// Empty before the caches are filled: nothing may be judged by half a picture.
  std::optional<pod_admission> pods() const;

  const controller::store<accelerator_policy>& policies_;
  const controller::store<api::compiled_rules>& compiled_;
  std::string ns_;
  declarations::rule_set rules_;
  controller::family<controller::counter>& answers_;
  const controller::store<kube::node>* nodes_;
};

}  // namespace reconcilers
