#pragma once
// What we keep of the objects the admission webhook lives by: the Secret with its certificates, and who has to call
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
/// The MutatingWebhookConfiguration.
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

struct mutating_webhooks : kube::object {
  // labels: all. annotations: none.
  std::vector<webhook_entry> webhooks;  ///< in the order of the object

  static const kube::resource& of() { return kube::resources::mutating_webhook_configurations; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<mutating_webhooks> decode(std::string_view bytes);
  friend bool operator==(const mutating_webhooks&, const mutating_webhooks&) = default;
};

}  // namespace reconcilers
