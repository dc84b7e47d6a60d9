#include "kube/projections/daemon_set.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

/// The bytes of the first occurrence of one field; empty where there is none.
std::string_view first(std::string_view bytes, std::uint32_t field) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    if (message.tag_and_type() == field) return text(message);
    message.skip();
  }
  return {};
}

/// spec.template(2).spec(2).containers(2)[0].image(2).
std::string_view image_of(std::string_view spec) {
  return first(first(first(first(spec, bytes_field(2)), bytes_field(2)), bytes_field(2)), bytes_field(2));
}

void read_status(std::string_view bytes, daemon_set& into) {
  reader status(bytes.data(), bytes.size());
  while (status.next()) {
    switch (status.tag_and_type()) {
      case number_field(1):
        into.current = status.get_int32();
        break;
      case number_field(2):
        into.misscheduled = status.get_int32();
        break;
      case number_field(3):
        into.desired = status.get_int32();
        break;
      case number_field(4):
        into.ready = status.get_int32();
        break;
      case number_field(5):
        into.observed_generation = status.get_int64();
        break;
      case number_field(6):
        into.updated = status.get_int32();
        break;
      case number_field(7):
        into.available = status.get_int32();
        break;
      default:
        status.skip();
    }
  }
}

void read(std::string_view bytes, daemon_set& into) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, keep_all, {annotation_patterns});
        break;
      case bytes_field(2):
        into.image = image_of(text(message));
        break;
      case bytes_field(3):
        read_status(text(message), into);
        break;
      default:
        message.skip();
    }
  }
}

}  // namespace

const resource& daemon_set::of() { return resources::daemon_sets; }

result<daemon_set> daemon_set::decode(std::string_view bytes) {
  daemon_set made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
