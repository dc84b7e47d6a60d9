#include "kube/projections/lease.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

void read_spec(std::string_view bytes, lease& into) {
  reader spec(bytes.data(), bytes.size());
  while (spec.next()) {
    switch (spec.tag_and_type()) {
      case bytes_field(1):
        into.holder = text(spec);
        break;
      case number_field(2):
        into.duration_seconds = spec.get_int32();
        break;
      case bytes_field(3):
        into.acquired_us = wire::read_time(text(spec)).micros();
        break;
      case bytes_field(4):
        into.renewed_us = wire::read_time(text(spec)).micros();
        break;
      case number_field(5):
        into.transitions = spec.get_int32();
        break;
      default:
        spec.skip();
    }
  }
}

void read(std::string_view bytes, lease& into) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, keep_all, {annotation_patterns});
        break;
      case bytes_field(2):
        read_spec(text(message), into);
        break;
      default:
        message.skip();
    }
  }
}

}  // namespace

const resource& lease::of() { return resources::leases; }

result<lease> lease::decode(std::string_view bytes) {
  lease made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
