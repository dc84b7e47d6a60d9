#pragma once
// Labels and annotations in one allocation: a sorted run of keys and values. A qualified key is a number into the
// thread's key_table, so 70 labels of a GPU node cost one block of about 700 bytes instead of 140 strings. Looked up by
// scanning; built once, compared as bytes, never edited.

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kube {

class packed_map {
 public:
  using entry = std::pair<std::string_view, std::string_view>;

  packed_map() = default;
  /// Entries in any order; of two with one key the last wins. Sorts `entries` in place.
  static packed_map of(std::span<entry> entries);
  static packed_map of(std::initializer_list<entry> entries);

  std::optional<std::string_view> find(std::string_view key) const;
  std::string_view value_or(std::string_view key, std::string_view other) const { return find(key).value_or(other); }
  bool contains(std::string_view key) const { return find(key).has_value(); }
  std::size_t size() const;
  bool empty() const { return bytes_.empty(); }

  /// Forward iteration in key order.
  class iterator {
   public:
    using value_type = entry;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(const char* cursor) : cursor_(cursor) {}
    entry operator*() const;
    iterator& operator++();
    iterator operator++(int) {
      auto before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const char* cursor_ = nullptr;
  };
  iterator begin() const { return iterator(bytes_.data()); }
  iterator end() const { return iterator(bytes_.data() + bytes_.size()); }

  friend bool operator==(const packed_map&, const packed_map&) = default;

 private:
  // Repeated: varint (number << 1 | 1) or (key length << 1), varint value length, the key unless it is a number, the
  // value.
  std::string bytes_;
};

}  // namespace kube
