#pragma once
// Small objects that have no generation (Service, ServiceAccount, ConfigMap, Secret): metadata, and a
// fingerprint of everything else, so that an edit by others is noticed. Watched with the label
// app.kubernetes.io/managed-by, so there are a handful.

#include <cstdint>
#include <string_view>

#include "kube/object.hpp"

namespace api {

/// Reads metadata into `object`; the result is a hash of all other bytes. errc::decode.
kube::result<std::uint64_t> read_owned(std::string_view kind, std::string_view bytes, kube::object& object);

template <const kube::resource& Type>
struct owned : kube::object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  std::uint64_t content = 0;

  static const kube::resource& of() { return Type; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<owned> decode(std::string_view bytes) {
    owned made;
    const auto content = read_owned(Type.kind, bytes, made);
    if (!content) return std::unexpected(content.error());
    made.content = *content;
    return made;
  }
  friend bool operator==(const owned&, const owned&) = default;
};

using owned_service = owned<kube::resources::services>;
/// Someone else's; the same reading does.
using owned_runtime_class = owned<kube::resources::runtime_classes>;
using owned_service_account = owned<kube::resources::service_accounts>;
/// Of the chart.
using owned_secret = owned<kube::resources::secrets>;
using owned_config_map = owned<kube::resources::config_maps>;

}  // namespace api
