#include "kube/projections/lease.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

void read_spec(std::string_view bytes, lease& lease) {
  each_field(bytes, field<1>(lease.holder), field<2>(lease.duration_seconds),
             field<3>([&](std::string_view time) { lease.acquired_us = wire::read_time(time).micros(); }),
             field<4>([&](std::string_view time) { lease.renewed_us = wire::read_time(time).micros(); }),
             field<5>(lease.transitions));
}

void read_lease(std::string_view bytes, lease& lease) {
  each_field(bytes,
             field<1>([&](std::string_view meta) { wire::read_metadata(meta, lease, keep_all, {own_annotations}); }),
             field<2>([&](std::string_view spec) { read_spec(spec, lease); }));
}

}  // namespace

const resource& lease::of() { return resources::leases; }

result<lease> lease::decode(std::string_view bytes) { return wire::decode<lease>(bytes, read_lease); }

}  // namespace kube
