#pragma once
// What every projection has: the part of metadata we keep. Projections are small structs decoded straight from the
// wire; fields no one asks for are never stored. Equality leaves resourceVersion out: two versions with the same
// content are "equal to before".

#include <array>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/error.hpp"
#include "kube/packed_map.hpp"
#include "kube/request.hpp"
#include "kube/resource.hpp"

namespace kube {

/// A UUID as 16 bytes; text that is not a UUID (mirror pods have a 32-digit hash) is hashed into it and is only
/// compared.
struct uid {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const uid&, const uid&) = default;
  bool empty() const { return *this == uid{}; }
  /// Lower-case 8-4-4-4-12, what preconditions want.
  std::string to_string() const;
  static uid parse(std::string_view text);
};

struct owner_ref {
  std::string kind;
  std::string name;
  uid id;
  bool controller = false;
  friend bool operator==(const owner_ref&, const owner_ref&) = default;
};

struct object {
  object_key key;
  uid id;
  /// Opaque by contract, but compared as an integer within one resource type (guaranteed by Kubernetes >= 1.35, true
  /// for all).
  std::uint64_t resource_version = 0;
  std::int64_t generation = 0;
  std::int64_t created = 0;  ///< seconds since 1970
  bool deleting = false;     ///< metadata.deletionTimestamp is set
  packed_map labels;
  packed_map annotations;  ///< only those the projection keeps; see each projection
  std::vector<owner_ref> owners;

  /// Content without the resourceVersion.
  friend bool operator==(const object& a, const object& b) {
    return a.key == b.key && a.id == b.id && a.generation == b.generation && a.created == b.created &&
           a.deleting == b.deleting && a.labels == b.labels && a.annotations == b.annotations && a.owners == b.owners;
  }
};

/// T derives from kube::object, knows its resource and wire encoding, and decodes itself from the bytes of one object
/// (for protobuf: the message itself, without the "k8s\0" envelope).
template <class T>
concept projection = std::derived_from<T, object> && std::equality_comparable<T> && requires(std::string_view bytes) {
  { T::of() } -> std::same_as<const resource&>;
  { T::wire } -> std::convertible_to<encoding>;
  { T::decode(bytes) } -> std::same_as<result<T>>;
};

}  // namespace kube
