#include "kube/projections/config_map.hpp"

#include <algorithm>

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

void read(std::string_view bytes, config_map& into) {
  std::vector<packed_map::entry> data;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, keep_all, {annotation_patterns});
        break;
      case bytes_field(2): {
        const auto [key, value] = wire::read_entry(text(message));
        data.emplace_back(key, value);
        break;
      }
      case bytes_field(3): {
        const auto [key, value] = wire::read_entry(text(message));
        into.binary.emplace_back(key, value.size());
        break;
      }
      case number_field(4):
        into.immutable = wire::flag(message);
        break;
      default:
        message.skip();
    }
  }
  into.data = packed_map::of(std::span(data));
  std::ranges::sort(into.binary);
}

}  // namespace

const resource& config_map::of() { return resources::config_maps; }

result<config_map> config_map::decode(std::string_view bytes) {
  config_map made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
