#pragma once
// Keeps one resource in step with the API server: which request to send next, and what each answer means. No socket, no
// clock, no coroutine: the driver (controller/reflector.hpp) does the I/O, and tests drive it by hand. Rules follow
// client-go's reflector (tools/cache/reflector.go); its tests have their counterparts in test/kube/reflector_test.cpp.
//
// One cycle: WatchList (a watch with sendInitialEvents) or, where the server refuses it, a paged LIST; then watches,
// each from the last version seen, until the server says that version is gone.
//
// Lists of both kinds ask for no version, so the server answers with its most recent state. A re-list never goes back
// in time, cannot itself be "expired" or "too large", and a lagging API server cannot answer it at all. (client-go asks
// for "0" or its own version first; that spares etcd on servers before 1.31, at the price of stale starts.)

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kube/error.hpp"
#include "kube/event.hpp"
#include "kube/request.hpp"
#include "kube/resource.hpp"

namespace kube {

/// Watches are asked to last this long at least, and up to twice as long.
inline constexpr std::chrono::seconds shortest_watch{300};

struct watch_settings {
  std::string ns;  ///< empty: all
  std::string label_selector, field_selector;
  encoding wire = encoding::protobuf;
  int page = 500;
  bool watch_list = true;  ///< try WatchList first
  std::chrono::milliseconds silence{
      150'000};  ///< no byte for this long: the connection is dead (bookmarks come about every 60 s)
  std::chrono::milliseconds initial_deadline{60'000};  ///< WatchList without progress for this long falls back to LIST
  /// A watch that ends without an event, and nothing heard for this long: list. The same after three watches in a row
  /// that the server refused, or closed at once.
  std::chrono::milliseconds stale{290'000};
  /// After a failure; doubles with each further one, up to 30 s. (client-go reflector.go: about 0.22 requests a second
  /// against a dead server.)
  std::chrono::milliseconds first_backoff{800};

  watch_settings() = default;
};

/// What the driver does next.
struct watch_step {
  enum class kind { list, watch, wait } action = kind::wait;
  request send;                       ///< list, watch
  std::chrono::milliseconds wait{0};  ///< wait: then ask again
};

/// What one event means to a store. `object` points into the bytes handed in.
struct store_op {
  enum class kind {
    none,     ///< bookmark, or an event that could not be read (counted)
    begin,    ///< a complete list starts: objects not seen until `commit` have vanished
    put,      ///< ADDED or MODIFIED
    erase,    ///< DELETED, with its last state
    commit,   ///< the list is complete: the store is synced
    restart,  ///< the stream said that its version is gone or is broken: close it and ask next()
  } action = kind::none;
  std::string_view object;
};

class watch_machine {
 public:
  /// `jitter()` returns [0, 1); times are steady milliseconds of any epoch.
  watch_machine(const resource& type, watch_settings settings, std::function<double()> jitter);

  watch_step next(std::chrono::milliseconds now);

  // --- while a list request is out
  /// One page arrived: call `object` for each item through `each`, then look at next() again. `begin`/`commit` come as
  /// ops.
  void on_list_page(std::string_view body, std::chrono::milliseconds now, const std::function<void(store_op)>& each);
  // --- while a watch is open
  /// The first bytes arrived. `begin` when this watch starts with a complete list (WatchList), `none` otherwise.
  [[nodiscard]] store_op on_watch_open(std::chrono::milliseconds now);
  /// One whole frame (kube/frame.hpp). Returns what to do with it. The version advances only after the op was returned.
  store_op on_frame(std::string_view frame, std::chrono::milliseconds now);
  /// The server closed the stream properly. Ignored after `restart`.
  void on_watch_closed(std::chrono::milliseconds now);
  /// Ask every few seconds while a watch is open. True: the initial events have stalled for `initial_deadline`; close
  /// the stream and ask next(), which will LIST.
  bool on_tick(std::chrono::milliseconds now);
  // --- any time
  /// What the transport or kube/status.hpp said about the request that is out. errc::cancelled asks for it again;
  /// everything is ignored when no request is out (a stream closed after `restart` ends in an error).
  void on_error(const error& error, std::chrono::milliseconds now);

  /// Version to resume from; empty before the first complete list.
  const std::string& resource_version() const { return version_; }
  bool synced() const { return synced_; }
  /// A WatchList is open that is not complete.
  bool initial() const { return phase_ == phase::initial; }

  struct counters {
    std::uint64_t lists = 0, watch_lists = 0, watches = 0, events = 0, bookmarks = 0, gone = 0, undecodable = 0,
                  errors = 0, broken = 0;  ///< `broken`: lists begun because the watch does not work
  };
  const counters& count() const { return count_; }

 private:
  using ms = std::chrono::milliseconds;
  enum class phase {
    idle,      ///< no request is out
    listing,   ///< a page of a LIST is out
    initial,   ///< a WatchList is open and has not said that it is complete
    watching,  ///< a watch is open
  };

  request list_request() const;
  request watch_request(bool initial) const;
  store_op on_event(const event& event, ms now);
  store_op on_stream_error(std::string_view status, ms now);
  store_op broken(ms now);
  void list_failed(const error& error, ms now);
  void initial_failed(const error& error, ms now);
  void watch_failed(const error& error, ms now);
  bool stalled(ms now) const;
  void give_up_watch_list();
  /// Something failed without an event in between; true from the second time on.
  bool struck_out();
  void relist();
  void list_if_broken(ms now);
  void retry(const error& error, ms now);
  void back_off(ms now, ms at_least = ms(0));

  resource type_;
  watch_settings settings_;
  std::function<double()> jitter_;

  phase phase_ = phase::idle;
  bool need_list_ = true;    // there is no version to watch from
  bool plain_list_ = false;  // list by pages until the next complete list
  bool watch_list_refused_ = false;
  bool list_begun_ = false;  // `begin` was given out for the list in progress
  std::string continue_token_;
  bool token_expired_ = false;  // the list in progress has been started over once
  int strikes_ = 0;             // failures since the last good event
  int refusals_ = 0;            // watches refused or closed at once, since the last good event
  bool was_away_ = false;       // a watch has failed since the last good event
  std::optional<ms> heard_;     // last good event or list
  ms opened_{0}, progress_{0};
  std::uint64_t events_in_watch_ = 0;

  std::optional<ms> not_before_;  // next request
  std::optional<ms> last_backoff_;
  ms spread_, backoff_;  // the next: added to what Retry-After says; waited without one

  std::string version_;
  bool synced_ = false;
  counters count_;
};

}  // namespace kube
