#pragma once
// What keeps a Binding of an earlier leader, on its way since before we led, from being booked beside ours. A new
// leader lists the pods that are not bound, as they are now, and seals each that asks for managed resources: one write
// to its status, a condition with our term, which moves its resourceVersion. A Binding carries the version its leader
// knew, so one that is older than the seal is refused by the API server. We bind when every seal is answered.
//
// What was bound before the list, our cache may not have yet. It has when it knows a pod in a version younger than the
// list: a watch tells in order.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "controller/loop.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/pod.hpp"

namespace reconcilers::extender {

inline constexpr std::string_view seal_condition = "quartermaster.io/Sealed";

class fence {
 public:
  struct given {
    controller::loop& loop;
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    std::function<bool(const kube::pod&)> ours;  ///< asks for what we manage
    std::string term;                            ///< of this leader, never used before
  };
  explicit fence(given by) : by_(std::move(by)) {}

  /// Once, when we lead: until all is sealed.
  kube::task<void> close();
  bool closed() const { return closed_; }
  /// May this copy of the pod be bound as far as earlier leaders are concerned?
  bool covers(std::uint64_t version);

  /// From now on no Binding that was sent before is taken. @return not_found: the pod is gone; conflict: another has
  /// its name.
  kube::task<void> seal(kube::object_key pod, std::string uid);

 private:
  struct target {
    kube::object_key key;
    std::string uid;
  };
  kube::task<std::vector<target>> unbound();
  boost::asio::awaitable<void> work();

  given by_;
  std::vector<target> left_;
  std::size_t at_work_ = 0;
  std::uint64_t listed_ = 0;  ///< the list's version
  std::uint64_t seals_ = 0;
  bool closed_ = false;
  bool caught_up_ = false;
};

}  // namespace reconcilers::extender
