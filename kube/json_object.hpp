#pragma once
// Custom resources come as JSON only. This reads them with simdjson On-Demand: the metadata every projection keeps is
// read here, the fields of its own are handed to the projection one by one, and no tree is built. For use in .cpp files
// (simdjson's header is large).
//
//   result<thing> thing::decode(std::string_view bytes) {
//     return on_demand::decode<thing>(bytes, {annotation_patterns}, [](thing& into, std::string_view key,
//     on_demand::value field)
//     {
//       if (key == "spec") read_spec(field, into);
//     });
//   }
//
// On-Demand reads forward once: a value is taken where it is met, and what no one asks for is skipped without being
// checked.

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/error.hpp"
#include "kube/keep.hpp"
#include "kube/object.hpp"

namespace kube::on_demand {

using value = simdjson::ondemand::value;

/// A parser and the padded copy of what it reads; both are reused. Views taken out of a document live until the next
/// `open`.
class document {
 public:
  /// Throws simdjson::simdjson_error, as does everything read from the result.
  simdjson::ondemand::document open(std::string_view bytes);
  /// The part of the bytes given to `open` that `inside`, a view into the copy, stands for.
  std::string_view original(std::string_view inside) const;

 private:
  std::string buffer_;
  std::string_view opened_;
  simdjson::ondemand::parser parser_;
};

/// The members that are being read, outermost first. An exception leaves them, for who says where the object is wrong.
std::vector<std::string_view>& open_members();

/// Calls `member(key, value)` for each member of an object; null is an object without members.
template <class Member>
void each_member(value object, Member member) {
  if (object.is_null()) return;
  for (auto field : object.get_object()) {
    const std::string_view key = field.unescaped_key();
    open_members().push_back(key);
    member(key, value(field.value()));
    open_members().pop_back();
  }
}

/// Calls `item(value)` for each item of an array; null is empty.
template <class Item>
void each_item(value value, Item item) {
  if (value.is_null()) return;
  for (auto entry : value.get_array()) item(entry.value());
}

/// Text, or `other` where the value is not a string.
std::string_view text_or(value value, std::string_view other = {});
std::int64_t number_or(value value, std::int64_t other);
bool flag_or(value value, bool other);
/// RFC 3339 ("2026-07-01T10:20:30Z", a fraction is cut) as seconds since 1970; 0 for text that is no time.
std::int64_t seconds_of(std::string_view time);

void read_metadata(value metadata, object& object, const keep& labels, const keep& annotations);

using field_reader = std::function<void(std::string_view key, value field)>;
/// Metadata into `object`, every other top-level member to `field`. errc::decode names the object where its name was
/// read. `field` must not decode another document: the parser is shared.
result<void> read_object(std::string_view kind, std::string_view bytes, object& object, const keep& annotations,
                         const field_reader& field);

/// All labels are kept, and the annotations asked for.
template <class T, class Field>
result<T> decode(std::string_view bytes, const keep& annotations, Field field) {
  T made;
  const auto done = read_object(T::of().kind, bytes, made, annotations,
                                [&](std::string_view key, value value) { field(made, key, value); });
  if (!done) return std::unexpected(done.error());
  return made;
}

}  // namespace kube::on_demand
