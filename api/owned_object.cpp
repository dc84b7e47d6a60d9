#include "api/owned_object.hpp"

#include <string>

#include "api/hash.hpp"
#include "kube/wire.hpp"

namespace api {
namespace {}  // namespace

kube::result<std::uint64_t> read_owned(std::string_view kind, std::string_view bytes, kube::object& object) {
  namespace wire = kube::wire;
  auto read = wire::guarded(std::string(kind), [&] {
    std::uint64_t hash = fnv1a({});
    const auto add = [&](std::string_view value) { hash = fnv1a(value, hash); };
    wire::each_field(bytes, wire::field<1>([&](std::string_view meta) {
                       wire::read_metadata(meta, object, kube::keep_all, {kube::own_annotations});
                     }),
                     wire::field<2>(add),  // spec; secrets of a ServiceAccount; each entry of data
                     wire::field<3>(add),  // each entry of binaryData; type of a Secret
                     // automountServiceAccountToken; immutable
                     wire::field<4>([&](std::int64_t is) { add(is != 0 ? "1" : "0"); }));
    return hash;
  });
  if (read && object.key.name.empty())
    return std::unexpected(kube::error{kube::errc::decode, 0, std::string(kind) + " without a name", {}});
  return read;
}

}  // namespace api
