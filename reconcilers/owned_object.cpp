#include "reconcilers/owned_object.hpp"

#include <string>

#include "kube/wire.hpp"
#include "reconcilers/hash.hpp"

namespace reconcilers {
namespace {

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

}  // namespace

kube::result<std::uint64_t> read_owned(std::string_view kind, std::string_view bytes, kube::object& into) {
  namespace wire = kube::wire;
  auto read = wire::guarded(std::string(kind), [&] {
    std::uint64_t hash = fnv1a({});
    wire::reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag_and_type()) {
        case wire::bytes_field(1):
          wire::read_metadata(wire::text(message), into, kube::keep_all, {annotation_patterns});
          break;
        case wire::bytes_field(2):  // spec; secrets of a ServiceAccount; each entry of data
        case wire::bytes_field(3):  // each entry of binaryData; type of a Secret
          hash = fnv1a(wire::text(message), hash);
          break;
        case wire::number_field(4):  // automountServiceAccountToken; immutable
          hash = fnv1a(wire::flag(message) ? "1" : "0", hash);
          break;
        default:
          message.skip();
      }
    }
    return hash;
  });
  if (read && into.key.name.empty())
    return std::unexpected(kube::error{kube::errc::decode, 0, std::string(kind) + " without a name", {}});
  return read;
}

}  // namespace reconcilers
