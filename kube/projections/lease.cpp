#include "kube/projections/lease.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

void read_spec(std::string_view bytes, lease& into) {
  each_field(bytes, field<1>(into.holder), field<2>(into.duration_seconds),
             field<3>([&](std::string_view time) { into.acquired_us = wire::read_time(time).micros(); }),
             field<4>([&](std::string_view time) { into.renewed_us = wire::read_time(time).micros(); }),
             field<5>(into.transitions));
}

void read(std::string_view bytes, lease& into) {
  each_field(bytes,
             field<1>([&](std::string_view meta) { wire::read_metadata(meta, into, keep_all, {annotation_patterns}); }),
             field<2>([&](std::string_view spec) { read_spec(spec, into); }));
}

}  // namespace

const resource& lease::of() { return resources::leases; }

result<lease> lease::decode(std::string_view bytes) {
  lease made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
