#pragma once
// The list that a program is made of. A part joins it once: it brings its reconciler with the stores whose changes wake
// it, its loops and its series. What only the leader does is decided here, so that no part asks. All parts are made
// before the first one joins: a reconciler observes its stores before the observers that ask it which keys a change
// concerns. Loop thread only.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/loop.hpp"
#include "controller/manager.hpp"
#include "controller/metrics.hpp"
#include "controller/runner.hpp"
#include "controller/store.hpp"

namespace controller {

template <class Reconciler>
class place;

class parts {
 public:
  /// All must outlive this.
  parts(loop& loop, manager& manager, registry& metrics, runner_metrics& running)
      : loop_(loop), manager_(manager), metrics_(metrics), running_(running) {}
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  /// Runs the reconciler from the first hold of the lease on, for at most `at_once` keys at the same time.
  template <class Reconciler>
  place<Reconciler> run(Reconciler& reconciler, std::size_t at_once = 2);
  /// A loop of the leader. The program ends when it fails.
  void lead(std::string name, std::function<kube::task<void>()> start);
  /// Series that are read off the stores at each scrape and kept nowhere. Every replica writes the heads of the
  /// families. `is_leader` says whether to write samples: a sum over the replicas then counts nothing twice.
  void write(std::function<void(metric_text& text, bool is_leader)> writer);

  bool leading() const { return manager_.leading(); }
  /// Of a change that is seen now: what is found at the start waits behind what people change meanwhile.
  int priority() const { return leading() ? 10 : 0; }
  /// For what has a place of its own in the order of starting and stopping.
  manager& phases() { return manager_; }

 private:
  runner& add_runner(reconciler& reconciler, std::size_t at_once);

  loop& loop_;
  manager& manager_;
  registry& metrics_;
  runner_metrics& running_;
  std::vector<std::unique_ptr<runner>> runners_;
};

/// A reconciler in the list. Its function `affected_by(before, after)` says which keys a change of a store concerns.
template <class Reconciler>
class place {
 public:
  /// Both must outlive the stores' changes.
  place(const parts& parts, const Reconciler& reconciler, runner& queue)
      : parts_(parts), reconciler_(reconciler), queue_(queue) {}

  /// A change of one of these stores wakes it.
  template <class... T>
  const place& wake(store<T>&... stores) const {
    (observe(stores, milliseconds(0)), ...);
    return *this;
  }
  /// The same where what follows is only counted: a thousand changes at once are one look.
  template <class... T>
  const place& wake_soon(store<T>&... stores) const {
    (observe(stores, milliseconds(300)), ...);
    return *this;
  }
  /// Where keys are added that no store has.
  runner& queue() const { return queue_; }

 private:
  template <class T>
  void observe(store<T>& store, milliseconds delay) const {
    store.observe(
        [&parts = parts_, &reconciler = reconciler_, &queue = queue_, delay](const T* before, const T* after) {
          for (const auto& key : reconciler.affected_by(before, after)) {
            if (delay > milliseconds(0))
              queue.add_after(key, delay, parts.priority());
            else
              queue.add(key, parts.priority());
          }
        });
  }

  const parts& parts_;
  const Reconciler& reconciler_;
  runner& queue_;
};

template <class Reconciler>
place<Reconciler> parts::run(Reconciler& reconciler, std::size_t at_once) {
  return {*this, reconciler, add_runner(reconciler, at_once)};
}

}  // namespace controller
