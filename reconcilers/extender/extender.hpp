#pragma once
// The scheduler's questions, answered from the stores: which nodes fit, which is better, whose going would help; and
// the call that binds. Filter, prioritize and preempt change nothing in the cluster, and the scheduler may ask them as
// often as it likes. A pod that asks for none of our resources fits everywhere.

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/http_server.hpp"
#include "reconcilers/extender/binder.hpp"

namespace reconcilers::extender {

/// Asked for at the end of urlPrefix "https://<host>:<port>/scheduler".
inline constexpr std::string_view filter_path = "/scheduler/filter", prioritize_path = "/scheduler/prioritize",
                                  bind_path = "/scheduler/bind", preempt_path = "/scheduler/preempt";
/// Whole nodes come as 20 KiB each; names as 20 bytes each.
inline constexpr std::size_t max_filter_body = 128u << 20, max_bind_body = 16u << 10;

/// How long a call may wait; the scheduler's own patience is 5 s.
struct call_limits {
  controller::milliseconds seals{4'000};       ///< for the pods of earlier leaders to be sealed
  controller::milliseconds departures{2'000};  ///< for the deletion of pods to be seen here

  call_limits() = default;
};

class request_handler {
 public:
  struct dependencies {
    account& book;
    kube::client& api;
    const controller::store<kube::pod>& pods;
    binder& binds;
    std::function<bool()> leading;
    /// A pod for which none of the nodes it was asked about fits.
    std::function<void(const kube::pod&)> on_waiting;
  };
  request_handler(dependencies dependencies, controller::registry& metrics, call_limits limits = {});

  void add_routes(controller::http_server& server);
  /// Has a scheduler asked since this program started?
  bool was_asked() const { return contacted_; }

  /// With what is known now.
  controller::http_response filter(const std::string& body);
  /// The same, for a pod for which others had to leave: with their deletion, if it has happened.
  boost::asio::awaitable<controller::http_response> filter_nominated(std::string body);
  controller::http_response prioritize(const std::string& body);
  controller::http_response preempt(const std::string& body);
  boost::asio::awaitable<controller::http_response> bind(std::string body);

 private:
  /// The store's copy, or the body's where the store has none yet.
  const kube::pod* pod_of(const kube::object_key& key, const kube::uid& uid, std::string_view json, kube::pod& read);
  bool answering() const { return dependencies_.leading() && dependencies_.book.synced(); }
  /// Pods that still hold, on the node to which this one is nominated, what it needs there, and that were to leave.
  std::vector<kube::object> in_the_way(const kube::pod& pod, const filter_args& args) const;
  /// Where the API server says that all of them are gone, until that is seen here too. To be cancelled after a while:
  /// it may not answer, and this program may not see it.
  boost::asio::awaitable<void> see_departures(std::vector<kube::object> leaving) const;
  /// The room that others left for the pod is there, or will be when their deletion is seen here too.
  bool emptied_already(const kube::pod& pod, const preempt_args& args);
  /// Until the pods of earlier leaders are sealed, or the scheduler would not wait any longer: to be sent away costs it
  /// writes on the pod, just when the seals need the API server.
  boost::asio::awaitable<void> settled() const;

  /// The last answer to preempt for a pod: the victims on each node.
  struct offer {
    kube::uid pod;
    std::map<std::string, std::vector<std::string>, std::less<>> leaving;
  };

  dependencies dependencies_;
  call_limits limits_;
  bool contacted_ = false;
  std::deque<offer> offers_;
  std::vector<kube::object> in_the_way_;  ///< found by the last filter
  controller::family<controller::histogram>& seconds_;
  controller::family<controller::counter>& nodes_;
  controller::counter& fits_;
  controller::counter& fails_;
};

}  // namespace reconcilers::extender
