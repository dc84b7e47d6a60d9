#pragma once
// Pods that fit on no node they were tried on. Each gets the reason, with the smallest change that would help, when the
// reason changes, and again before the API server would forget the event. kube-scheduler asks about a pod only where
// its own sums leave a node: those that no node can take, whatever its mode, are looked for here. When something is
// given back, we touch the pods that fit now, so that the scheduler tries them at
// once. It may have tried before our ledger knew, and would not try again for minutes.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/recorder.hpp"
#include "kube/client.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/quotas/quota_status.hpp"

namespace reconcilers::extender {

/// Pod annotation: when the pod was touched. Its value means nothing; its change does.
inline constexpr std::string_view nudge_annotation = "state.quartermaster.io/room-since";

class waiting {
 public:
  struct dependencies {
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    const controller::store<kube::node>& nodes;
    account& book;
    controller::recorder& events;
  };
  waiting(dependencies dependencies, controller::registry& metrics);

  /// The scheduler asked and no node of its list fits. O(log n): however often it asks, a pod is explained at most
  /// every half minute.
  void note(const kube::pod& pod);
  /// Something was given back.
  void room() { ++rooms_; }
  /// A little of both, to be called a few times a second; takes milliseconds.
  kube::task<void> turn(controller::milliseconds now);

  std::size_t size() const { return pods_.size(); }
  /// How many wait because of a limit of their namespace, by namespace and limit. Linear in who waits.
  held_back_by_namespace held_back() const;

 private:
  struct waiter {
    kube::object_key key;
    std::string reason;                      ///< said last
    std::string limit;                       ///< of its namespace, where that is the reason
    controller::milliseconds event_time{0};  ///< of the last event, or when it was seen that there is none to write
    bool to_say = true;                      ///< asked about since
    controller::milliseconds not_before{0};  ///< the next explanation
    controller::milliseconds touched{0};
    std::uint64_t looked = 0;             ///< at which room it was looked at last
    controller::milliseconds awaited{0};  ///< since when its store does not have it yet; below 0: it has had it
  };
  /// The store's copy; null: it has none, or an earlier pod of the name.
  const kube::pod* known(const kube::uid& uid, const waiter& waiter) const;
  void forget_the_placed(controller::milliseconds now);
  /// The one series of the oldest; null: none waits.
  void show_oldest(const kube::pod* pod);
  /// Pods that no scheduler asks about, because no node has all the keys that they name.
  void note_faulty();
  void say_some(controller::milliseconds now);
  /// Its event is so old that the API server is about to forget it.
  bool is_fading(const waiter& waiter, controller::milliseconds now) const;
  void say(waiter& waiter, const kube::pod& pod, controller::milliseconds now);
  /// One event, unless the same is there for a while.
  void say(waiter& waiter, const kube::pod& pod, std::string reason, std::string_view event, const std::string& text,
           controller::milliseconds now);
  bool fits_somewhere(const kube::pod& pod);

  dependencies dependencies_;
  std::map<kube::uid, waiter> pods_;
  std::uint64_t rooms_ = 0;  ///< how often
  controller::milliseconds next_repeat_{0}, next_search_{0};
  kube::object_key oldest_key_;  ///< the pod of that series
  controller::gauge& count_;
  controller::family<controller::gauge>& oldest_;
  controller::counter& touched_;
};

}  // namespace reconcilers::extender
