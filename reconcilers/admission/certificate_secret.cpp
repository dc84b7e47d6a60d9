#include "reconcilers/admission/certificate_secret.hpp"

#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/log.hpp"
#include "kube/config.hpp"
#include "kube/json_text.hpp"

namespace reconcilers {

bool is_ours(const webhook_secret& secret) {
  return secret.labels.value_or(api::names::managed_by_label, "") == api::names::managed_by;
}

void log_foreign(const webhook_secret& secret) {
  controller::log::error(
      "a Secret of our name is not ours: delete it, or label it app.kubernetes.io/managed-by=quartermaster",
      {{"secret", secret.key.to_string()}});
}

kube::task<std::uint64_t> apply_certificates(kube::client& client, kube::object_key key, const webhook_secret* current,
                                             controller::authority_keys keys) {
  const auto& type = kube::resources::secrets;
  nlohmann::json want = {{"apiVersion", type.api_version()},
                         {"kind", type.kind},
                         {"metadata",
                          {{"name", key.name},
                           {"namespace", key.ns},
                           {"labels", {{api::names::managed_by_label, api::names::managed_by}}}}},
                         {"type", "Opaque"}};
  if (current) want["metadata"]["resourceVersion"] = std::to_string(current->resource_version);
  const auto put = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) want["data"][std::string(name)] = kube::base64_encode(value);
  };
  put(names::webhook_authorities, keys.authorities);
  put(names::webhook_signer_key, keys.signer_key);
  put(names::webhook_certificate, keys.leaf.certificate);
  put(names::webhook_key, keys.leaf.key);
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  const auto answer = co_await client.apply(type, key, want, options);
  if (!answer) co_return std::unexpected(answer.error());
  co_return kube::version_of(*answer);
}

}  // namespace reconcilers
