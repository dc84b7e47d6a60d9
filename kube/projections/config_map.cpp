#include "kube/projections/config_map.hpp"

#include <algorithm>

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

void read_config_map(std::string_view bytes, config_map& config_map) {
  std::vector<packed_map::entry> data;
  each_field(bytes, field<1>([&](std::string_view meta) {
               wire::read_metadata(meta, config_map, keep_all, {own_annotations});
             }),
             field<2>([&](std::string_view entry) {
               const auto [key, value] = wire::read_entry(entry);
               data.emplace_back(key, value);
             }),
             field<3>([&](std::string_view entry) {
               const auto [key, value] = wire::read_entry(entry);
               config_map.binary.emplace_back(key, value.size());
             }),
             field<4>(config_map.immutable));
  config_map.data = packed_map::of(std::span(data));
  std::ranges::sort(config_map.binary);
}

}  // namespace

const resource& config_map::of() { return resources::config_maps; }

result<config_map> config_map::decode(std::string_view bytes) {
  return wire::decode<config_map>(bytes, read_config_map);
}

}  // namespace kube
