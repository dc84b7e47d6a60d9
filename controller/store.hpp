#pragma once
// What we know of one resource type: projections by key, written by one reflector, read by everyone on the loop thread.
// Pointers and ranges are valid until the next co_await.

#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kube/object.hpp"

namespace controller {

template <kube::projection T>
class store {
 public:
  /// Called after a change; `before` is null for a new object, `after` is null for one that is gone. Both are valid
  /// during the call.
  using observer = std::function<void(const T* before, const T* after)>;

  const T* find(const kube::object_key& key) const {
    const auto match = items_.find(key);
    return match == items_.end() ? nullptr : match->item.get();
  }
  /// All objects, in no particular order, as `const T&`.
  auto all() const {
    return items_ | std::views::transform([](const auto& entry) -> const T& { return *entry.item; });
  }
  std::size_t size() const { return items_.size(); }
  /// A complete list has been taken in at least once.
  bool synced() const { return synced_; }
  /// Every change up to this resourceVersion is in here: of the last complete list, or of what the watch has sent
  /// since, bookmarks included. 0 before the first list. A put alone proves nothing, because a streamed list is in no
  /// order.
  std::uint64_t version() const { return version_; }
  /// Observers are called in the order they were added, for every change from now on.
  void observe(observer callback) { observers_.push_back(std::move(callback)); }

  // --- the writer's side: one reflector
  /// A complete list begins. What is not put before `commit` is reported as erased then; until then the old content
  /// stays.
  void begin() {
    ++round_;
    listing_ = true;
  }
  /// Equal content: only the version moves, observers are not called. Outside a list an older version of the same
  /// object is ignored.
  void put(T item) {
    const auto match = items_.find(item.key);
    if (match == items_.end()) {
      const auto* made = items_.insert({std::make_unique<T>(std::move(item)), round_}).first->item.get();
      return tell(nullptr, made);
    }
    match->round = round_;
    T& is = *match->item;
    if (!listing_ && item.id == is.id && item.resource_version < is.resource_version) return;
    if (is == item) {
      is.resource_version = item.resource_version;
      return;
    }
    const auto before = std::exchange(match->item, std::make_unique<T>(std::move(item)));
    tell(before.get(), match->item.get());
  }
  /// This object is in the list but cannot be read: what we knew of it stays, it has not vanished.
  void keep(const kube::object_key& key) {
    if (const auto match = items_.find(key); match != items_.end()) match->round = round_;
  }
  /// Last state as the server sent it; an erase older than what we hold is ignored.
  void erase(const T& last) {
    const auto match = items_.find(last.key);
    if (match == items_.end() || last.resource_version < match->item->resource_version) return;
    const auto gone = items_.extract(match);
    tell(gone.value().item.get(), nullptr);
  }
  /// It was deleted, and its last state cannot be read.
  void erase(const kube::object_key& key) {
    const auto match = items_.find(key);
    if (match == items_.end()) return;
    const auto gone = items_.extract(match);
    tell(gone.value().item.get(), nullptr);
  }
  /// After the change of this version was taken in.
  void reach(std::uint64_t version) { version_ = version; }
  void commit() {
    listing_ = false;
    std::vector<typename items::node_type> gone;
    for (auto position = items_.begin(); position != items_.end();) {
      const auto here = position++;
      if (here->round != round_) gone.push_back(items_.extract(here));
    }
    synced_ = true;
    for (const auto& entry : gone) tell(entry.value().item.get(), nullptr);
  }

 private:
  /// Found by the key of its object, which is the same for as long as it is here.
  struct slot {
    mutable std::unique_ptr<T> item;
    mutable std::uint32_t round = 0;
  };
  static const kube::object_key& key_of(const slot& slot) { return slot.item->key; }
  static const kube::object_key& key_of(const kube::object_key& key) { return key; }
  struct hash {
    using is_transparent = void;
    std::size_t operator()(const auto& item) const { return std::hash<kube::object_key>{}(key_of(item)); }
  };
  struct equal_key {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return key_of(a) == key_of(b); }
  };
  using items = std::unordered_set<slot, hash, equal_key>;
  void tell(const T* before, const T* after) {
    for (const auto& callback : observers_) callback(before, after);
  }

  items items_;
  std::vector<observer> observers_;
  std::uint64_t version_ = 0;
  std::uint32_t round_ = 0;
  bool listing_ = false;
  bool synced_ = false;
};

}  // namespace controller
