#pragma once
// What we keep of the objects the admission webhook lives by: the Secret with its certificates, and who is told to call
// it. Watched by name, so there is one of each.

#include <string>
#include <string_view>
#include <vector>

#include "controller/authority.hpp"
#include "kube/object.hpp"

namespace reconcilers {

namespace names {
/// The Secret, and the Service that the chart makes.
inline constexpr std::string_view webhook = "quartermaster-webhook";
/// Both webhook configurations.
inline constexpr std::string_view webhook_configuration = "quartermaster";
// In the Secret.
inline constexpr std::string_view webhook_authorities = "ca.crt";
inline constexpr std::string_view webhook_signer_key = "ca.key";
inline constexpr std::string_view webhook_certificate = "tls.crt";
inline constexpr std::string_view webhook_key = "tls.key";
}  // namespace names

struct webhook_secret : kube::object {
  // labels: all. annotations: none.
  controller::authority_keys keys;

  static const kube::resource& of() { return kube::resources::secrets; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<webhook_secret> decode(std::string_view bytes);
  friend bool operator==(const webhook_secret&, const webhook_secret&) = default;
};

/// One entry of webhooks[].
struct webhook_entry {
  std::string name;
  std::string authorities;  ///< clientConfig.caBundle, PEM
  std::string url;          ///< clientConfig.url; empty where a Service is called

  friend bool operator==(const webhook_entry&, const webhook_entry&) = default;
};

/// Reads either kind of configuration; errc::decode.
kube::result<std::vector<webhook_entry>> read_webhooks(std::string_view kind, std::string_view bytes,
                                                       kube::object& into);

template <const kube::resource& Type>
struct webhook_configuration : kube::object {
  // labels: all. annotations: none.
  std::vector<webhook_entry> webhooks;  ///< in the order of the object

  static const kube::resource& of() { return Type; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<webhook_configuration> decode(std::string_view bytes) {
    webhook_configuration made;
    auto read = read_webhooks(Type.kind, bytes, made);
    if (!read) return std::unexpected(std::move(read.error()));
    made.webhooks = std::move(*read);
    return made;
  }
  friend bool operator==(const webhook_configuration&, const webhook_configuration&) = default;
};
using mutating_webhooks = webhook_configuration<kube::resources::mutating_webhook_configurations>;
using validating_webhooks = webhook_configuration<kube::resources::validating_webhook_configurations>;

}  // namespace reconcilers
