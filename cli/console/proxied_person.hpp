#pragma once
// Whom kube-apiserver speaks for when it passes a request on to an APIService. It shows a client certificate and names
// the person in header fields. ConfigMap kube-system/extension-apiserver-authentication says which certificates and
// which fields these are; a caller with any other certificate is refused. Pure.

#include <expected>
#include <string>
#include <vector>

#include "controller/http_server.hpp"
#include "controller/token_access.hpp"
#include "kube/projections/config_map.hpp"

namespace cli::console {

/// Of the ConfigMap.
struct proxy_trust {
  std::string authorities;         ///< PEM
  std::vector<std::string> names;  ///< common names of certificates; none: all that the authorities have signed
  std::vector<std::string> user_fields, uid_fields, group_fields, extra_prefixes;  ///< in lower case

  friend bool operator==(const proxy_trust&, const proxy_trust&) = default;
};
/// What is wrong with it, in one line: such a cluster has no aggregation, or anyone could speak for anyone.
std::expected<proxy_trust, std::string> trust_in(const kube::config_map& map);

/// The person, as a SubjectAccessReview takes them. 401: the caller is not the API server, or names no one.
std::expected<controller::token_owner, controller::refusal> person_in(const controller::http_request& request,
                                                                      const proxy_trust& trust);

}  // namespace cli::console
