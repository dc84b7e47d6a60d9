#include "kube/packed_map.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kube {
namespace {

constexpr std::size_t header = 2 * sizeof(std::uint32_t);

std::uint32_t length_at(const char* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void append_length(std::string& to, std::size_t length) {
  const auto value = static_cast<std::uint32_t>(length);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  to.append(raw, sizeof value);
}

/// By key, entries with one key in the order they came. The API server sends maps sorted, so there is seldom anything
/// to do.
void sort_stably(std::span<packed_map::entry> entries) {
  if (std::ranges::is_sorted(entries, {}, &packed_map::entry::first)) return;
  std::vector<std::pair<packed_map::entry, std::size_t>> numbered;
  numbered.reserve(entries.size());
  for (const auto& one : entries) numbered.emplace_back(one, numbered.size());
  std::ranges::sort(numbered, {}, [](const auto& one) { return std::pair(one.first.first, one.second); });
  std::ranges::transform(numbered, entries.begin(), [](const auto& one) { return one.first; });
}

}  // namespace

packed_map packed_map::of(std::span<entry> entries) {
  sort_stably(entries);
  const auto shadowed = [&](std::size_t i) {
    return i + 1 < entries.size() && entries[i].first == entries[i + 1].first;
  };
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!shadowed(i)) bytes += header + entries[i].first.size() + entries[i].second.size();
  }
  packed_map made;
  made.bytes_.reserve(bytes);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (shadowed(i)) continue;
    append_length(made.bytes_, entries[i].first.size());
    append_length(made.bytes_, entries[i].second.size());
    made.bytes_ += entries[i].first;
    made.bytes_ += entries[i].second;
  }
  return made;
}

packed_map packed_map::of(std::initializer_list<entry> entries) {
  std::vector<entry> copy(entries);
  return of(std::span(copy));
}

std::optional<std::string_view> packed_map::find(std::string_view key) const {
  for (const auto [name, value] : *this) {
    if (name == key) return value;
    if (name > key) break;
  }
  return std::nullopt;
}

std::size_t packed_map::size() const {
  std::size_t count = 0;
  for (auto at = begin(); at != end(); ++at) ++count;
  return count;
}

packed_map::entry packed_map::iterator::operator*() const {
  const std::size_t key = length_at(at_), value = length_at(at_ + sizeof(std::uint32_t));
  return {{at_ + header, key}, {at_ + header + key, value}};
}

packed_map::iterator& packed_map::iterator::operator++() {
  at_ += header + length_at(at_) + length_at(at_ + sizeof(std::uint32_t));
  return *this;
}

}  // namespace kube
