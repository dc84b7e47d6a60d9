#pragma once
// Keeps one resource in step with the API server: which request to send next, and what each answer means. No socket, no
// clock, no coroutine: the driver (controller/reflector.hpp) does the I/O, and tests drive it by hand. Rules follow
// client-go's reflector (tools/cache/reflector.go); its tests have their counterparts in
// test/kube/watch_machine_test.cpp.
//
// One cycle: WatchList (a watch with sendInitialEvents) or, where the server refuses it, a paged LIST; then watches,
// each from the last version seen, until the server says that version is gone.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kube/error.hpp"
#include "kube/request.hpp"
#include "kube/resource.hpp"

namespace kube {

struct watch_settings {
  std::string ns;  ///< empty: all
  std::string label_selector, field_selector;
  encoding wire = encoding::protobuf;
  int page = 500;
  bool watch_list = true;  ///< try WatchList first
  std::chrono::milliseconds silence{
      150'000};  ///< no byte for this long: the connection is dead (bookmarks come about every 60 s)
  std::chrono::milliseconds initial_deadline{60'000};  ///< WatchList without progress for this long falls back to LIST

  watch_settings() = default;
};

/// What the driver does next.
struct watch_step {
  enum class kind { list, watch, wait } what = kind::wait;
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
  } what = kind::none;
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
  void on_watch_closed(std::chrono::milliseconds now);
  // --- any time
  void on_error(const error& why, std::chrono::milliseconds now);

  /// Version to resume from; empty before the first complete list.
  const std::string& resource_version() const { return version_; }
  bool synced() const { return synced_; }

  struct counters {
    std::uint64_t lists = 0, watch_lists = 0, watches = 0, events = 0, bookmarks = 0, gone = 0, undecodable = 0,
                  errors = 0;
  };
  const counters& count() const { return count_; }

 private:
  std::string version_;
  bool synced_ = false;
  counters count_;
};

}  // namespace kube
