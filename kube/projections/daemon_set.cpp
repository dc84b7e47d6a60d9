#include "kube/projections/daemon_set.hpp"

#include <optional>

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

/// The first occurrence of a field; empty where there is none.
template <std::uint32_t Number>
std::string_view first(std::string_view bytes) {
  std::optional<std::string_view> out;
  each_field(bytes, field<Number>([&](std::string_view value) {
               if (!out) out = value;
             }));
  return out.value_or(std::string_view());
}

/// spec.template(2).spec(2).containers(2)[0].image(2).
std::string_view image_of(std::string_view spec) { return first<2>(first<2>(first<2>(first<2>(spec)))); }

void read_status(std::string_view bytes, daemon_set& set) {
  each_field(bytes, field<1>(set.current), field<2>(set.misscheduled), field<3>(set.desired), field<4>(set.ready),
             field<5>(set.observed_generation), field<6>(set.updated), field<7>(set.available));
}

void read_daemon_set(std::string_view bytes, daemon_set& set) {
  each_field(bytes,
             field<1>([&](std::string_view meta) { wire::read_metadata(meta, set, keep_all, {own_annotations}); }),
             field<2>([&](std::string_view spec) { set.image = image_of(spec); }),
             field<3>([&](std::string_view status) { read_status(status, set); }));
}

}  // namespace

const resource& daemon_set::of() { return resources::daemon_sets; }

result<daemon_set> daemon_set::decode(std::string_view bytes) {
  return wire::decode<daemon_set>(bytes, read_daemon_set);
}

}  // namespace kube
