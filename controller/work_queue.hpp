#pragma once
// Which key is looked at next. A pure machine: the time is an argument, nothing waits. The rules are those of
// client-go's util/workqueue: a key is queued once however often it is added; a key that is being processed is not
// handed out again but is dirty, and comes back when it is done; a delayed key that is added earlier comes earlier.
// Beyond it, keys have a priority, so that one change is not behind the ten thousand keys of a start.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include "controller/clock.hpp"
#include "kube/resource.hpp"

namespace controller {

class work_queue {
 public:
  using key = kube::object_key;

  struct settings {
    milliseconds first_delay{5};  ///< after the first failure; doubles with each further one
    milliseconds max_delay{30'000};

    settings() = default;
  };

  /// `jitter()` returns [0, 1): it takes up to a fifth off a back-off, so that keys that failed together do not come
  /// back together.
  work_queue(settings settings, std::function<double()> jitter);

  /// The key is to be looked at once `due` has come. Of several adds the earliest time and the highest priority count.
  void add(const key& key, milliseconds due, int priority = 0);
  /// The next key to process: highest priority first, then first come first served. It stays out until `done` or
  /// `failed`.
  std::optional<key> take(milliseconds now);
  /// Processing has ended. A key that was added meanwhile is queued again.
  void done(const key& key);
  /// Processing has ended in failure: queued again after a back-off that grows per key. Returns the back-off, which is
  /// not shorter than `at_least` (the server's Retry-After).
  milliseconds failed(const key& key, milliseconds now, milliseconds at_least = milliseconds(0));
  /// The next failure of this key is its first again.
  void forget(const key& key);

  /// When `take` has something to give next (perhaps in the past); empty when nothing is queued.
  std::optional<milliseconds> next_due() const;
  /// Keys that could be taken now.
  std::size_t depth(milliseconds now);
  /// Keys whose time has not come.
  std::size_t delayed() const { return delayed_.size(); }
  std::size_t processing() const { return processing_; }
  /// Keys the queue remembers at all: queued, in process or with failures.
  std::size_t size() const { return entries_.size(); }
  unsigned failures(const key& key) const;
  /// How long the key last taken had been due.
  milliseconds last_wait() const { return last_wait_; }

 private:
  enum class state : std::uint8_t { idle, delayed, ready, processing };
  struct entry {
    const key* name = nullptr;
    milliseconds due{0};
    std::uint64_t order = 0;
    int priority = 0;
    unsigned failures = 0;
    state status = state::idle;
    bool dirty = false;  ///< added while processing
  };
  struct earlier {
    bool operator()(const entry* a, const entry* b) const {
      return a->due != b->due ? a->due < b->due : a->order < b->order;
    }
  };
  struct more_urgent {
    bool operator()(const entry* a, const entry* b) const {
      return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
    }
  };

  void promote(milliseconds now);
  void enqueue(entry& entry, milliseconds due, int priority);
  void end(entry& entry);
  void drop_if_idle(const entry& entry);

  settings settings_;
  std::function<double()> jitter_;
  std::unordered_map<key, entry> entries_;
  std::set<entry*, earlier> delayed_;
  std::set<entry*, more_urgent> ready_;
  std::uint64_t order_ = 0;
  std::size_t processing_ = 0;
  milliseconds last_wait_{0};
};

}  // namespace controller
