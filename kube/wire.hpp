#pragma once
// The protobuf shapes around every object: the "k8s\0" envelope, lists, watch events and metadata, read by field
// number. Numbers are those of the generated.proto files of k8s.io/apimachinery and k8s.io/api. Nothing is copied until
// it is kept.
//
// Readers below throw protozero::exception on bytes that are not protobuf; `guarded` turns that into errc::decode, and
// every public decoder goes through it. A field of an unexpected wire type is skipped like an unknown one.

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kube/error.hpp"
#include "kube/keep.hpp"
#include "kube/object.hpp"
#include "kube/quantity.hpp"

namespace kube::wire {

using reader = protozero::pbf_reader;

constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}

inline std::string_view text(reader& field) {
  const auto view = field.get_view();
  return {view.data(), view.size()};
}
inline std::string copy(reader& field) { return std::string(text(field)); }
/// Not get_bool: that looks at a byte before it knows that there is one.
inline bool flag(reader& field) { return field.get_uint64() != 0; }

/// A field of a message and what takes it: a text or a number that is set, or a function of one. `each_field` calls it
/// once per occurrence.
template <std::uint32_t Number, class Target>
struct field_reader {
  using value = std::remove_reference_t<Target>;
  static constexpr bool takes_number = std::is_integral_v<value> || (std::is_invocable_v<value&, std::int64_t> &&
                                                                     !std::is_invocable_v<value&, std::string_view>);
  static constexpr std::uint32_t tag = takes_number ? number_field(Number) : bytes_field(Number);

  void read(reader& message) const {
    if constexpr (std::is_invocable_v<value&, std::string_view>)
      target(text(message));
    else if constexpr (std::is_invocable_v<value&, std::int64_t>)
      target(message.get_int64());
    else if constexpr (std::is_same_v<value, bool>)
      target = flag(message);
    else if constexpr (takes_number)
      target = static_cast<value>(message.get_int64());
    else
      target = text(message);
  }

  Target target;
};
/// Keeps a reference to a variable, and a function by value.
template <std::uint32_t Number, class Target>
constexpr field_reader<Number, Target> field(Target&& target) {
  return {std::forward<Target>(target)};
}

/// Reads the fields named, `each_field(bytes, field<1>(name), field<2>([&](std::string_view entry) { ... }))`, in the
/// order in which they come; others, and those of an unexpected wire type, are skipped.
template <class... Fields>
void each_field(std::string_view bytes, const Fields&... fields) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    const auto tag = message.tag_and_type();
    const bool known = ((tag == Fields::tag && (fields.read(message), true)) || ...);
    if (!known) message.skip();
  }
}

/// Runs a decoder; what it throws becomes errc::decode beginning with `label`.
template <class Decoder>
auto guarded(std::string_view label, Decoder decoder) -> result<std::invoke_result_t<Decoder>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Decoder>>) {
      decoder();
      return {};
    } else {
      return decoder();
    }
  } catch (const protozero::exception& problem) {
    return std::unexpected(error{errc::decode, 0, std::string(label) + ": " + problem.what(), {}});
  }
}

/// ObjectMeta (field 1 of every object) into `object`. managedFields are skipped without a look.
void read_metadata(std::string_view meta, object& object, const keep& labels, const keep& annotations);

/// What is left to say about a decoded object: errc::decode when it has no name. `problem` is the decoder's own result.
template <class T>
result<T> named(T made, const result<void>& problem) {
  const std::string name = std::string(T::of().kind) + " " + made.key.to_string();
  if (!problem) return std::unexpected(error{errc::decode, 0, name + ": " + problem.error().message, {}});
  if (made.key.name.empty()) return std::unexpected(error{errc::decode, 0, name + "without a name", {}});
  return made;
}

/// An object that `read(bytes, made)` fills.
template <class T>
result<T> decode(std::string_view bytes, auto read) {
  T made;
  const auto done = guarded("protobuf", [&] { read(bytes, made); });
  return named(std::move(made), done);
}

/// Time and MicroTime: seconds 1, nanos 2.
struct time {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
  std::int64_t micros() const;  ///< saturates
};
time read_time(std::string_view message);

/// map<string, V>: key 1, value 2; both may be missing and are empty then.
struct map_entry {
  std::string_view key, value;
};
map_entry read_entry(std::string_view message);

/// Adds one entry of a map<string, Quantity> to `quantities` when it is an extended resource; amounts that cannot be
/// read count as 0.
void add_extended_resource(quantities& quantities, std::string_view entry);

/// Condition of a Node or Pod: type 1, status 2, lastTransitionTime 4.
struct condition {
  std::string_view type, status;
  std::int64_t since = 0;
};
condition read_condition(std::string_view message);

struct envelope {
  std::string_view kind;  ///< empty when there was no envelope
  std::string_view raw;   ///< the message itself
};
/// Takes "k8s\0" and runtime.Unknown off; bytes without that prefix are the message already.
result<envelope> unwrap(std::string_view bytes);

struct watch_event {
  std::string_view type;    ///< "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
  std::string_view kind;    ///< of the object; empty when not said
  std::string_view object;  ///< the message itself
};
result<watch_event> read_event(std::string_view frame);

/// The part of metadata that a watch needs.
struct stamp {
  std::string_view resource_version;
  bool initial_events_end = false;
};
result<stamp> read_stamp(std::string_view object);

struct list {
  std::string_view resource_version;
  std::string_view next;  ///< continue token, empty on the last page
};
/// `each` gets the bytes of one item, in order, after the whole page was found readable.
result<list> read_list(std::string_view body, const std::function<void(std::string_view)>& each);

}  // namespace kube::wire
