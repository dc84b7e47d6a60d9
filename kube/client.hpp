#pragma once
// The verbs, each one request and one typed answer. Retries 429 and 5xx if the server sent a Retry-After of at most 30
// s, at most 10 times (client-go's rule). `bind` and `evict` never retry. Everything else is the caller's decision.
// Holds no cache: reading is the stores' job.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kube/request.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"

namespace kube {

class client {
 public:
  /// `transport` must outlive the client.
  explicit client(transport& transport) : transport_(transport) {}

  task<nlohmann::json> get(const resource& type, object_key key);
  /// All items of all pages, as JSON. For small, rare lists (prune, discovery); stores use reflectors.
  task<std::vector<nlohmann::json>> list(const resource& type, list_options options);
  task<nlohmann::json> create(const resource& type, std::string_view ns, const nlohmann::json& object,
                              write_options options = write_options());
  task<nlohmann::json> replace(const resource& type, object_key key, const nlohmann::json& object,
                               write_options options = write_options());
  task<nlohmann::json> apply(const resource& type, object_key key, const nlohmann::json& object,
                             write_options options = write_options());
  task<nlohmann::json> apply_status(const resource& type, object_key key, const nlohmann::json& object,
                                    write_options options = write_options());
  task<nlohmann::json> patch(const resource& type, object_key key, patch_kind kind, const nlohmann::json& patch,
                             std::string_view subresource = {}, write_options options = write_options());
  /// 404 is success: it is gone. A UID precondition that does not hold is errc::conflict: another object has the name
  /// now.
  task<void> remove(const resource& type, object_key key, preconditions only_if,
                    propagation propagation = propagation::background);
  task<void> bind(object_key pod, std::string_view node, preconditions only_if, const nlohmann::json& annotations);
  /// errc::too_many_requests: a PodDisruptionBudget says no for now; not waited for here. 404 is success.
  task<void> evict(object_key pod, preconditions only_if);
  /// A GET of any path: /version, /readyz. Any HTTP status is a value here.
  task<response> raw(std::string_view path);

  transport& used_transport() { return transport_; }

 private:
  task<response> call(std::string operation, request request, bool patient = true);
  task<nlohmann::json> call_json(std::string operation, request request);
  task<response> send_patiently(request request);
  transport& transport_;
};

}  // namespace kube
