#pragma once
// Which Event is written next, decided without I/O: equal events within a window become one with a series, the queue is
// bounded, and the rate as well, so that a reconciler in trouble cannot flood the API server. Only `series` of an Event
// may be changed once it is written (events.k8s.io/v1); a series is brought up to date at growing intervals, not with
// every occurrence.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "controller/clock.hpp"
#include "controller/recorder.hpp"

namespace controller {

struct event_settings {
  std::string reporting_instance;    ///< our identity
  milliseconds window{600'000};      ///< an equal event later than this after the last one is a new Event
  milliseconds series_step{10'000};  ///< first update of a series after this; doubles up to the window
  std::size_t queue = 256;           ///< Events waiting to be written; beyond it the oldest is dropped
  std::size_t known = 1024;          ///< Events remembered for series
  double burst = 25, per_second = 5;

  event_settings() = default;
};

struct event_write {
  enum class kind { create, patch } action = kind::create;
  kube::object_key key;
  nlohmann::json body;       ///< the Event, or a merge patch of its series
  std::uint64_t ticket = 0;  ///< for on_result
};

class event_book {
 public:
  explicit event_book(event_settings settings);

  void record(const object_reference& about, event_type type, std::string_view reason, std::string_view action,
              std::string_view note, milliseconds now, wall_time wall);
  /// The next write, when one may go out now.
  std::optional<event_write> next(milliseconds now);
  /// When to ask again; empty when there is nothing to write.
  std::optional<milliseconds> next_due(milliseconds now) const;
  /// What came of it. A series whose Event is gone begins again; a namespace that is going takes no Events and they are
  /// dropped; anything else that failed is dropped too, events are not worth a retry queue.
  void on_result(const event_write& event_write, bool ok, bool gone);

  std::uint64_t dropped() const { return dropped_; }
  std::size_t queued() const { return queue_.size(); }

 private:
  struct entry {
    std::uint64_t ticket = 0;
    std::string identity;  // what makes two events equal
    kube::object_key key;  // of the Event
    nlohmann::json event;  // until it is created
    bool created = false;
    bool queued = false;
    std::int64_t count = 1, reported = 1;
    milliseconds last{0}, update_at{0}, step{0};
    wall_time last_wall;
  };
  using entries = std::list<entry>;  // most recently seen last

  void push(entries::iterator match);
  void forget(entries::iterator match);
  nlohmann::json make_event(const object_reference& about, event_type type, std::string_view reason,
                            std::string_view action, std::string_view note, wall_time wall,
                            const std::string& name) const;
  double tokens(milliseconds now) const;

  event_settings settings_;
  entries entries_;
  std::map<std::string, entries::iterator, std::less<>> by_identity_;
  std::map<std::uint64_t, entries::iterator> by_ticket_;
  std::deque<std::uint64_t> queue_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t dropped_ = 0;
  double tokens_;
  milliseconds filled_at_{0};
};

}  // namespace controller
