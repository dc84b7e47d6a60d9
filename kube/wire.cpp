#include "kube/wire.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <limits>

namespace kube::wire {
namespace {

using entries = boost::container::small_vector<packed_map::entry, 48>;

constexpr std::string_view magic{"k8s\0", 4};

owner_ref read_owner(std::string_view message) {
  owner_ref made;
  each_field(message, field<1>(made.kind), field<3>(made.name),
             field<4>([&](std::string_view id) { made.id = uid::parse(id); }), field<6>(made.controller));
  return made;
}

void collect(entries& entries, std::string_view message, const keep& keep) {
  const auto [key, value] = read_entry(message);
  if (keep.wants(key)) entries.emplace_back(key, value);
}

packed_map pack(entries& entries) { return packed_map::of(std::span(entries.data(), entries.size())); }

/// The last occurrence of field 1; empty where there is none.
std::string_view first_field(std::string_view message) {
  std::string_view out;
  each_field(message, field<1>(out));
  return out;
}

}  // namespace

void read_metadata(std::string_view bytes, object& object, const keep& labels, const keep& annotations) {
  entries label_entries, annotation_entries;
  each_field(
      bytes, field<1>(object.key.name), field<3>(object.key.ns),
      field<5>([&](std::string_view id) { object.id = uid::parse(id); }), field<6>([&](std::string_view version) {
        std::from_chars(version.data(), version.data() + version.size(), object.resource_version);
      }),
      field<7>(object.generation), field<8>([&](std::string_view time) { object.created = read_time(time).seconds; }),
      field<9>([&](std::string_view) { object.deleting = true; }),
      field<11>([&](std::string_view entry) { collect(label_entries, entry, labels); }),
      field<12>([&](std::string_view entry) { collect(annotation_entries, entry, annotations); }),
      field<13>([&](std::string_view owner) { object.owners.push_back(read_owner(owner)); }));
  object.labels = pack(label_entries);
  object.annotations = pack(annotation_entries);
}

std::int64_t time::micros() const {
  std::int64_t scaled = 0;
  if (__builtin_mul_overflow(seconds, std::int64_t{1'000'000}, &scaled) ||
      __builtin_add_overflow(scaled, std::int64_t{nanos / 1000}, &scaled)) {
    return seconds < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  }
  return scaled;
}

time read_time(std::string_view bytes) {
  time made;
  each_field(bytes, field<1>(made.seconds), field<2>(made.nanos));
  return made;
}

map_entry read_entry(std::string_view bytes) {
  map_entry made;
  each_field(bytes, field<1>(made.key), field<2>(made.value));
  return made;
}

void add_extended_resource(quantities& quantities, std::string_view entry) {
  const auto [name, value] = read_entry(entry);
  if (!is_extended_resource(name)) return;
  const auto digits = first_field(value);
  const auto match =
      std::ranges::lower_bound(quantities, name, {}, [](const auto& held) { return std::string_view(held.first); });
  const std::int64_t held = parse_quantity(digits).value_or(0);
  if (match != quantities.end() && match->first == name) {
    match->second = held;
  } else {
    quantities.emplace(match, std::string(name), held);
  }
}

condition read_condition(std::string_view bytes) {
  condition made;
  each_field(bytes, field<1>(made.type), field<2>(made.status),
             field<4>([&](std::string_view time) { made.since = read_time(time).seconds; }));
  return made;
}

result<envelope> unwrap(std::string_view bytes) {
  if (!bytes.starts_with(magic)) return envelope{{}, bytes};
  return guarded("envelope", [&] {
    envelope made;
    // TypeMeta: apiVersion 1, kind 2.
    each_field(bytes.substr(magic.size()), field<1>([&](std::string_view type) { made.kind = read_entry(type).value; }),
               field<2>(made.raw));
    return made;
  });
}

result<watch_event> read_event(std::string_view frame) {
  const auto outer = unwrap(frame);
  if (!outer) return std::unexpected(outer.error());
  std::string_view object;
  auto made = guarded("watch event", [&] {
    watch_event event;
    each_field(outer->raw, field<1>(event.type), field<2>([&](std::string_view extension) {
                 object = read_entry(extension).key;
               }));  // RawExtension: raw 1
    return event;
  });
  if (!made) return made;
  if (made->type.empty()) return std::unexpected(error{errc::decode, 0, "watch event without a type", {}});
  const auto inner = unwrap(object);
  if (!inner) return std::unexpected(inner.error());
  made->kind = inner->kind;
  made->object = inner->raw;
  return made;
}

result<stamp> read_stamp(std::string_view object) {
  return guarded("metadata", [&] {
    stamp made;
    each_field(first_field(object), field<6>(made.resource_version), field<12>([&](std::string_view entry) {
                 const auto [key, value] = read_entry(entry);
                 if (key == "k8s.io/initial-events-end" && value == "true") made.initial_events_end = true;
               }));
    return made;
  });
}

result<list> read_list(std::string_view body, const std::function<void(std::string_view)>& each) {
  const auto outer = unwrap(body);
  if (!outer) return std::unexpected(outer.error());
  auto made = guarded("list", [&] {
    list page;
    each_field(first_field(outer->raw), field<2>(page.resource_version), field<3>(page.next));
    return page;
  });
  if (!made) return made;
  if (made->resource_version.empty()) return std::unexpected(error{errc::decode, 0, "list without a version", {}});
  each_field(outer->raw, field<2>(each));
  return made;
}

}  // namespace kube::wire
