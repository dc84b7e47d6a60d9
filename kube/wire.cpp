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
  reader owner(message.data(), message.size());
  while (owner.next()) {
    switch (owner.tag_and_type()) {
      case bytes_field(1):
        made.kind = text(owner);
        break;
      case bytes_field(3):
        made.name = text(owner);
        break;
      case bytes_field(4):
        made.id = uid::parse(text(owner));
        break;
      case number_field(6):
        made.controller = flag(owner);
        break;
      default:
        owner.skip();
    }
  }
  return made;
}

void collect(entries& into, std::string_view message, const keep& which) {
  const auto [key, value] = read_entry(message);
  if (which.wants(key)) into.emplace_back(key, value);
}

packed_map pack(entries& from) { return packed_map::of(std::span(from.data(), from.size())); }

std::string_view metadata_of(std::string_view object) {
  std::string_view meta;
  reader message(object.data(), object.size());
  while (message.next()) {
    if (message.tag_and_type() == bytes_field(1)) {
      meta = text(message);
    } else {
      message.skip();
    }
  }
  return meta;
}

}  // namespace

void read_metadata(std::string_view bytes, object& into, const keep& labels, const keep& annotations) {
  entries label_entries, annotation_entries;
  reader meta(bytes.data(), bytes.size());
  while (meta.next()) {
    switch (meta.tag_and_type()) {
      case bytes_field(1):
        into.key.name = text(meta);
        break;
      case bytes_field(3):
        into.key.ns = text(meta);
        break;
      case bytes_field(5):
        into.id = uid::parse(text(meta));
        break;
      case bytes_field(6): {
        const std::string_view version = text(meta);
        std::from_chars(version.data(), version.data() + version.size(), into.resource_version);
        break;
      }
      case number_field(7):
        into.generation = meta.get_int64();
        break;
      case bytes_field(8):
        into.created = read_time(text(meta)).seconds;
        break;
      case bytes_field(9):
        into.deleting = true;
        meta.skip();
        break;
      case bytes_field(11):
        collect(label_entries, text(meta), labels);
        break;
      case bytes_field(12):
        collect(annotation_entries, text(meta), annotations);
        break;
      case bytes_field(13):
        into.owners.push_back(read_owner(text(meta)));
        break;
      default:
        meta.skip();
    }
  }
  into.labels = pack(label_entries);
  into.annotations = pack(annotation_entries);
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
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number_field(1):
        made.seconds = message.get_int64();
        break;
      case number_field(2):
        made.nanos = message.get_int32();
        break;
      default:
        message.skip();
    }
  }
  return made;
}

map_entry read_entry(std::string_view bytes) {
  map_entry made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        made.key = text(message);
        break;
      case bytes_field(2):
        made.value = text(message);
        break;
      default:
        message.skip();
    }
  }
  return made;
}

void add_extended_resource(quantities& to, std::string_view entry) {
  const auto [name, value] = read_entry(entry);
  if (!is_extended_resource(name)) return;
  std::string_view digits;
  reader quantity(value.data(), value.size());
  while (quantity.next()) {
    if (quantity.tag_and_type() == bytes_field(1)) {
      digits = text(quantity);
    } else {
      quantity.skip();
    }
  }
  const auto at = std::ranges::lower_bound(to, name, {}, [](const auto& held) { return std::string_view(held.first); });
  const std::int64_t held = parse_quantity(digits).value_or(0);
  if (at != to.end() && at->first == name) {
    at->second = held;
  } else {
    to.emplace(at, std::string(name), held);
  }
}

condition read_condition(std::string_view bytes, std::uint32_t since_field) {
  condition made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    const std::uint32_t field = message.tag_and_type();
    if (field == bytes_field(1)) {
      made.type = text(message);
    } else if (field == bytes_field(2)) {
      made.status = text(message);
    } else if (field == bytes_field(since_field)) {
      made.since = read_time(text(message)).seconds;
    } else {
      message.skip();
    }
  }
  return made;
}

result<envelope> unwrap(std::string_view bytes) {
  if (!bytes.starts_with(magic)) return envelope{{}, bytes};
  return guarded("envelope", [&] {
    envelope made;
    reader unknown(bytes.data() + magic.size(), bytes.size() - magic.size());
    while (unknown.next()) {
      switch (unknown.tag_and_type()) {
        case bytes_field(1):
          made.kind = read_entry(text(unknown)).value;
          break;  // TypeMeta: apiVersion 1, kind 2
        case bytes_field(2):
          made.raw = text(unknown);
          break;
        default:
          unknown.skip();
      }
    }
    return made;
  });
}

result<watch_event> read_event(std::string_view frame) {
  const auto outer = unwrap(frame);
  if (!outer) return std::unexpected(outer.error());
  std::string_view object;
  auto made = guarded("watch event", [&] {
    watch_event event;
    reader message(outer->raw.data(), outer->raw.size());
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes_field(1):
          event.type = text(message);
          break;
        case bytes_field(2):
          object = read_entry(text(message)).key;
          break;  // RawExtension: raw 1
        default:
          message.skip();
      }
    }
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
    const std::string_view bytes = metadata_of(object);
    reader meta(bytes.data(), bytes.size());
    while (meta.next()) {
      switch (meta.tag_and_type()) {
        case bytes_field(6):
          made.resource_version = text(meta);
          break;
        case bytes_field(12): {
          const auto [key, value] = read_entry(text(meta));
          if (key == "k8s.io/initial-events-end" && value == "true") made.initial_events_end = true;
          break;
        }
        default:
          meta.skip();
      }
    }
    return made;
  });
}

result<list> read_list(std::string_view body, const std::function<void(std::string_view)>& each) {
  const auto outer = unwrap(body);
  if (!outer) return std::unexpected(outer.error());
  std::string_view meta;
  auto made = guarded("list", [&] {
    list page;
    reader message(outer->raw.data(), outer->raw.size());
    while (message.next()) {
      if (message.tag_and_type() == bytes_field(1)) {
        meta = text(message);
      } else {
        message.skip();
      }
    }
    reader fields(meta.data(), meta.size());
    while (fields.next()) {
      switch (fields.tag_and_type()) {
        case bytes_field(2):
          page.resource_version = text(fields);
          break;
        case bytes_field(3):
          page.next = text(fields);
          break;
        default:
          fields.skip();
      }
    }
    return page;
  });
  if (!made) return made;
  if (made->resource_version.empty()) return std::unexpected(error{errc::decode, 0, "list without a version", {}});
  reader items(outer->raw.data(), outer->raw.size());
  while (items.next()) {
    if (items.tag_and_type() == bytes_field(2)) {
      each(text(items));
    } else {
      items.skip();
    }
  }
  return made;
}

}  // namespace kube::wire
