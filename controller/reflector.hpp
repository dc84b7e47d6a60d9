#pragma once
// Keeps a store in step with the API server: the I/O around kube::watch_machine. One coroutine a resource type, until
// it is cancelled. What cannot be decoded is counted, logged once an object, and never stops the list; what we knew of
// it stays. 403 is loud and retried: rights that come back need no restart. The typed part is an adapter of a few
// lines; everything else is compiled once.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "controller/version_witness.hpp"
#include "kube/transport.hpp"
#include "kube/watch_machine.hpp"

namespace controller {

/// Shared by all reflectors; the label is the reflector's name.
struct reflector_metrics {
  explicit reflector_metrics(registry& registry);
  family<gauge>& synced;         ///< 1 after the first complete list
  family<gauge>& objects;        ///< in the store
  family<counter>& events;       ///< of watches, bookmarks not counted
  family<counter>& lists;        ///< complete lists begun, WatchLists included
  family<counter>& watches;      ///< watches begun
  family<counter>& errors;       ///< failed requests and streams, by code
  family<counter>& undecodable;  ///< objects and frames that could not be read
  family<gauge>& forbidden;      ///< 1 while the server answers 403
  family<gauge>& last_contact;   ///< when the server last sent something, seconds since 1970
};

/// What the rest of the program may know of a reflector.
struct reflector_state {
  bool synced = false;
  bool forbidden = false;
  bool refused = false;          ///< forbidden for longer than the patience: a right is missing
  std::string trouble;           ///< the last error; empty while data comes
  milliseconds last_contact{0};  ///< when the server last sent something
};

struct reflector_options {
  std::string name;                  ///< metric label and log field; empty: the resource's plural
  reflector_state* state = nullptr;  ///< kept up to date when given; must outlive the reflector
  /// At most once a minute: an event, say. errc::forbidden, or why the cache had to be listed because its watch does
  /// not work.
  std::function<void(const kube::error&)> on_trouble;
  /// `state.refused` has changed.
  std::function<void()> on_rights;
  /// Called before each batch of changes that is, or may be, old: each page or chunk of a list but the first, and what
  /// a watch sends within five seconds after it was opened. All of it happened after `since`, a time of `now`; until
  /// then nothing is missing (controller/continuity.hpp). A batch is taken in before anything else runs on the loop. A
  /// batch that this was not called for is of now.
  std::function<void(milliseconds since)> on_gap;
  /// A watch has ended before its time: the server may have been away, and come back with other data.
  std::function<void()> on_break;
  /// A server that has just started answers 403 until it has read its own roles: one that lasts shorter is no missing
  /// right, and only `state` and the metric show it.
  milliseconds forbidden_patience{5000};
  /// Synced and without a byte for longer: what is known may be old. A watch falls silent twice and is listed sooner
  /// (kube::watch_settings).
  static constexpr milliseconds contact_limit{330'000};
  /// A complete list is older than what was known: the server's data went back. The store will be as the list is; what
  /// else was concluded from it may be wrong.
  std::function<void(std::string_view resource, const version_fall& fall)> on_restored;
  std::function<milliseconds()> now = boot_now;
  std::size_t trim_above =
      8u << 20;  ///< a first list of more bytes is followed by malloc_trim; its buffers are not needed again

  reflector_options() = default;
};

/// A store without its type.
class reflector_sink {
 public:
  virtual ~reflector_sink() = default;
  virtual void begin() = 0;
  virtual kube::result<void> put(std::string_view object) = 0;
  virtual kube::result<void> erase(std::string_view object) = 0;
  virtual void keep(const kube::object_key& key) = 0;
  virtual void erase_key(const kube::object_key& key) = 0;
  virtual void commit() = 0;
  /// Everything up to this version has been put, erased or kept.
  virtual void reach(std::uint64_t version) = 0;
  virtual std::size_t size() const = 0;
};

/// Everything but the type. `reflector_sink` must outlive the coroutine.
kube::task<void> reflect_into(kube::transport& transport, const kube::resource& type, kube::watch_settings settings,
                              reflector_sink& reflector_sink, reflector_metrics& metrics, reflector_options options);

/// `Source` reads an object as a T.
template <kube::projection T, class Source = T>
class store_sink final : public reflector_sink {
 public:
  explicit store_sink(store<T>& store) : store_(store) {}
  void begin() override { store_.begin(); }
  kube::result<void> put(std::string_view object) override {
    auto item = Source::decode(object);
    if (!item) return std::unexpected(std::move(item.error()));
    store_.put(std::move(*item));
    return {};
  }
  kube::result<void> erase(std::string_view object) override {
    const auto item = Source::decode(object);
    if (!item) return std::unexpected(item.error());
    store_.erase(*item);
    return {};
  }
  void keep(const kube::object_key& key) override { store_.keep(key); }
  void erase_key(const kube::object_key& key) override { store_.erase(key); }
  void commit() override { store_.commit(); }
  void reach(std::uint64_t version) override { store_.reach(version); }
  std::size_t size() const override { return store_.size(); }

 private:
  store<T>& store_;
};

/// Runs until cancelled; only errc::cancelled ends it. All references must outlive the coroutine. `settings.wire` is
/// set to T's.
template <kube::projection T, class Source = T>
kube::task<void> reflect(kube::transport& transport, kube::watch_settings settings, store<T>& store,
                         reflector_metrics& metrics, reflector_options options = reflector_options()) {
  store_sink<T, Source> sink(store);
  settings.wire = T::wire;
  co_return co_await reflect_into(transport, T::of(), std::move(settings), sink, metrics, std::move(options));
}

}  // namespace controller
