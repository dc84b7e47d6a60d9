#pragma once
// The address of an extender, and what it says of the way there.

#include <optional>
#include <string>
#include <string_view>

namespace reconcilers::scheduler_config {

struct extender_url {
  std::string_view scheme, host, path;  ///< host without port and brackets

  /// "/api/v1/namespaces/NS/services/[https:]NAME[:PORT]/proxy/...", the API server's service proxy.
  struct proxy {
    std::string_view ns, service;  ///< the literal path segment, which is what RBAC's resourceNames are compared with
    bool whole = false;            ///< "/proxy" follows
  };
  std::optional<proxy> through() const;
};
/// Empty parts where there are none; never fails.
extender_url split_url(std::string_view url);

/// "${kube-apiserver}", "<address>", "{{ .Host }}", "$(HOST)"; empty: none.
std::string_view placeholder_in(std::string_view url);

}  // namespace reconcilers::scheduler_config
