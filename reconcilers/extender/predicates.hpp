#pragma once
// For schedulers that are set up as the manuals say: filter only, plain HTTP through the API server's service proxy,
// bound by themselves. So the decision is made at filter. It is written on the pod before the answer goes out. Asked
// again, the pod gets the same answer while its node is among the names; otherwise the decision is withdrawn and made
// again. Callers cannot be distinguished, so of the body we believe only which pod it is and the names of nodes.

#include <set>
#include <string>

#include "controller/http_server.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/extender/fence.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace reconcilers::extender {

inline constexpr std::string_view predicates_path = "/scheduler/predicates";
/// Whole nodes of several hundred; larger clusters are to use names (docs/scheduling.md).
inline constexpr std::size_t max_predicates_body = 16u << 20;

class predicates {
 public:
  struct dependencies {
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    account& book;
    fence& earlier;
    std::function<bool()> leading;
    std::function<void(const kube::pod&)> on_waiting;
  };
  predicates(dependencies dependencies, controller::registry& metrics);

  void add_routes(controller::http_server& server);
  /// Has a pod been decided for since this program started? Anyone may call, so a question alone is not counted.
  bool decided() const { return decided_; }
  boost::asio::awaitable<controller::http_response> decide(std::string body);

  /// Gives back what was decided and not bound for minutes: to be called every few seconds.
  kube::task<void> look_after(controller::milliseconds now);

 private:
  boost::asio::awaitable<controller::http_response> decide_for(const filter_args& args, const kube::pod& pod);
  kube::task<void> write(const kube::object_key& pod, const kube::uid& uid, nlohmann::json annotations);

  dependencies dependencies_;
  std::set<kube::uid> in_flight_;
  bool decided_ = false;
  controller::family<controller::counter>& results_;
};

}  // namespace reconcilers::extender
