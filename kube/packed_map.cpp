#include "kube/packed_map.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kube/key_table.hpp"

namespace kube {
namespace {

/// LEB128, seven bits a byte, low ones first.
void append_varint(std::string& output, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) output += static_cast<char>(value | 0x80);
  output += static_cast<char>(value);
}

std::uint64_t read_varint(const char*& cursor) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*cursor++);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

/// One entry; moves `cursor` behind it.
packed_map::entry read_entry(const char*& cursor) {
  const std::uint64_t head = read_varint(cursor), value_size = read_varint(cursor);
  std::string_view key;
  if (head & 1) {
    key = key_table::of_this_thread().name_of(static_cast<std::uint32_t>(head >> 1));
  } else {
    key = {cursor, static_cast<std::size_t>(head >> 1)};
    cursor += key.size();
  }
  const std::string_view value(cursor, static_cast<std::size_t>(value_size));
  cursor += value.size();
  return {key, value};
}

/// By key, entries with one key in the order they came. The API server sends maps sorted, so there is seldom anything
/// to do.
void sort_stably(std::span<packed_map::entry> entries) {
  if (std::ranges::is_sorted(entries, {}, &packed_map::entry::first)) return;
  std::vector<std::pair<packed_map::entry, std::size_t>> numbered;
  numbered.reserve(entries.size());
  for (const auto& entry : entries) numbered.emplace_back(entry, numbered.size());
  std::ranges::sort(numbered, {}, [](const auto& item) { return std::pair(item.first.first, item.second); });
  std::ranges::transform(numbered, entries.begin(), [](const auto& item) { return item.first; });
}

}  // namespace

packed_map packed_map::of(std::span<entry> entries) {
  sort_stably(entries);
  const auto shadowed = [&](std::size_t i) {
    return i + 1 < entries.size() && entries[i].first == entries[i + 1].first;
  };
  auto& names = key_table::of_this_thread();
  packed_map made;
  std::string& bytes = made.bytes_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (shadowed(i)) continue;
    const auto& [key, value] = entries[i];
    const std::uint64_t number = names.number_of(key);
    append_varint(bytes, number ? number << 1 | 1 : static_cast<std::uint64_t>(key.size()) << 1);
    append_varint(bytes, value.size());
    if (!number) bytes += key;
    bytes += value;
  }
  bytes.shrink_to_fit();
  return made;
}

packed_map packed_map::of(std::initializer_list<entry> entries) {
  std::vector<entry> copy(entries);
  return of(std::span(copy));
}

/// By the head of an entry: a kept name is a number, so that no names are compared.
std::optional<std::string_view> packed_map::find(std::string_view key) const {
  if (bytes_.empty()) return std::nullopt;
  const std::uint64_t number = key_table::of_this_thread().known(key);
  const std::uint64_t wanted = number ? number << 1 | 1 : static_cast<std::uint64_t>(key.size()) << 1;
  const char *cursor = bytes_.data(), *const end = cursor + bytes_.size();
  while (cursor != end) {
    const auto head = read_varint(cursor);
    const auto size = static_cast<std::size_t>(read_varint(cursor));
    const auto name_size = head & 1 ? 0 : static_cast<std::size_t>(head >> 1);
    const std::string_view name(cursor, name_size);
    cursor += name_size;
    if (head == wanted && (number || name == key)) return std::string_view(cursor, size);
    cursor += size;
  }
  return std::nullopt;
}

std::size_t packed_map::size() const {
  std::size_t count = 0;
  for (auto position = begin(); position != end(); ++position) ++count;
  return count;
}

packed_map::entry packed_map::iterator::operator*() const {
  const char* cursor = cursor_;
  return read_entry(cursor);
}

packed_map::iterator& packed_map::iterator::operator++() {
  read_entry(cursor_);
  return *this;
}

}  // namespace kube
