#pragma once
// What we know of one resource type: projections by key, written by one reflector, read by everyone on the loop thread.
// Pointers and ranges are valid until the next co_await.

#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <unordered_map>
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
    const auto at = items_.find(key);
    return at == items_.end() ? nullptr : at->second.item.get();
  }
  /// All objects, in no particular order, as `const T&`.
  auto all() const {
    return items_ | std::views::transform([](const auto& entry) -> const T& { return *entry.second.item; });
  }
  std::size_t size() const { return items_.size(); }
  /// A complete list has been taken in at least once.
  bool synced() const { return synced_; }
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
    slot& entry = items_[item.key];
    entry.round = round_;
    if (entry.item && !listing_ && item.id == entry.item->id && item.resource_version < entry.item->resource_version)
      return;
    if (entry.item && *entry.item == item) {
      entry.item->resource_version = item.resource_version;
      return;
    }
    auto before = std::move(entry.item);
    entry.item = std::make_unique<T>(std::move(item));
    tell(before.get(), entry.item.get());
  }
  /// This object is in the list but cannot be read: what we knew of it stays, it has not vanished.
  void keep(const kube::object_key& key) {
    if (const auto at = items_.find(key); at != items_.end()) at->second.round = round_;
  }
  /// Last state as the server sent it; an erase older than what we hold is ignored.
  void erase(const T& last) {
    const auto at = items_.find(last.key);
    if (at == items_.end() || last.resource_version < at->second.item->resource_version) return;
    const auto before = std::move(at->second.item);
    items_.erase(at);
    tell(before.get(), nullptr);
  }
  void commit() {
    listing_ = false;
    std::vector<std::unique_ptr<T>> gone;
    for (auto at = items_.begin(); at != items_.end();) {
      if (at->second.round == round_) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->second.item));
      at = items_.erase(at);
    }
    synced_ = true;
    for (const auto& item : gone) tell(item.get(), nullptr);
  }

 private:
  struct slot {
    std::unique_ptr<T> item;
    std::uint32_t round = 0;
  };
  void tell(const T* before, const T* after) {
    for (const auto& callback : observers_) callback(before, after);
  }

  std::unordered_map<kube::object_key, slot> items_;
  std::vector<observer> observers_;
  std::uint32_t round_ = 0;
  bool listing_ = false;
  bool synced_ = false;
};

}  // namespace controller
