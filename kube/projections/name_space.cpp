#include "kube/projections/name_space.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

void read_name_space(std::string_view bytes, name_space& name_space) {
  wire::each_field(bytes, wire::field<1>([&](std::string_view meta) {
                     wire::read_metadata(meta, name_space, keep_all, keep_none);
                   }));
}

}  // namespace

const resource& name_space::of() { return resources::namespaces; }

result<name_space> name_space::decode(std::string_view bytes) {
  return wire::decode<name_space>(bytes, read_name_space);
}

}  // namespace kube
