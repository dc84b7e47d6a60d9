#pragma once
// What keeps a Binding of an earlier leader, on its way since before we led, from being booked next to ours. A new
// leader lists the pods that are not bound, as they are now, and seals each that asks for managed resources: one write
// to its status, a condition with our term, which moves its resourceVersion. A Binding carries the version its leader
// knew, so one that is older than the seal is refused by the API server. We bind when every seal is answered.
//
// What was bound before its seal, our cache may not have yet. It has when the watch has shown something as young as the
// list and every seal: a watch tells in order. A pod that was asked for by itself proves nothing of the cache.

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
  struct dependencies {
    controller::loop& loop;
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    std::function<bool(const kube::pod&)> is_managed;  ///< asks for what we manage
    std::string term;                                  ///< of this leader, never used before
  };
  explicit fence(dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  /// Once, when we lead: until all is sealed.
  kube::task<void> close();
  /// Nothing of an earlier leader can arrive any more, and what arrived is in the cache.
  bool closed() const;

  /// From now on no Binding that was sent before is taken. @return the pod's version then; not_found: the pod is gone;
  /// conflict: another has its name.
  kube::task<std::uint64_t> seal(kube::object_key pod, std::string uid);

 private:
  struct target {
    kube::object_key key;
    std::string uid;
  };
  kube::task<std::vector<target>> unbound();
  boost::asio::awaitable<void> work();

  dependencies dependencies_;
  std::vector<target> left_;
  std::size_t at_work_ = 0;
  std::uint64_t youngest_ = 0;  ///< version of the list and of the seals
  std::uint64_t seals_ = 0;
  bool sealed_ = false;
  mutable bool caught_up_ = false;
};

}  // namespace reconcilers::extender
