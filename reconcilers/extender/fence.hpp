#pragma once
// What keeps a Binding of an earlier leader, on its way since before we led, from being booked next to ours. A new
// leader lists the pods that are not bound, as they are now, and seals each that asks for managed resources: one write
// of an annotation with our term, which moves its resourceVersion. A Binding carries the version its leader
// knew, so one that is older than the seal is refused by the API server. We bind when every seal is answered.
//
// What was bound before its seal, our cache may not have yet. It has when the watch has reached the version of the list
// and of every seal: a watch tells in order. Where no pod changes the watch says nothing for a minute. So the leader
// writes on its own pod, too, which the watch shows at once. Outside a cluster it has none: then it lists the bound
// pods again and looks whether the cache has each of them, as young as the list does.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "controller/loop.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/pod.hpp"

namespace reconcilers::extender {

inline constexpr std::string_view seal_annotation = "state.quartermaster.io/seal";

class fence {
 public:
  struct dependencies {
    controller::loop& loop;
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    std::function<bool(const kube::pod&)> is_managed;  ///< asks for what we manage
    std::string term;                                  ///< of this leader, never used before
    kube::object_key self;                             ///< our own pod; no name outside a cluster
  };
  explicit fence(dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  /// Once, when we lead: until all is sealed.
  kube::task<void> close();
  /// After that: until our cache has what was bound before.
  kube::task<void> catch_up();
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
  /// Has the watch something to show that is as young as the list and the seals?
  kube::task<bool> seal_self();
  /// Does the cache have every pod that is bound now?
  kube::task<bool> complete();
  boost::asio::awaitable<void> work();

  dependencies dependencies_;
  std::vector<target> left_;
  std::size_t at_work_ = 0;
  std::uint64_t youngest_ = 0;  ///< version of the list and of the seals
  std::uint64_t seals_ = 0;
  bool sealed_ = false;
  mutable bool caught_up_ = false;  // for good: what is bound later is not of an earlier leader
};

}  // namespace reconcilers::extender
