#pragma once
// The address of an extender, and what it says of the way there.

#include <optional>
#include <string>
#include <string_view>

#include "scheduler_config/judge/terms.hpp"

namespace scheduler_config {

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

/// Why nothing can be sent to an absolute URL, one of three; nothing: it can. libcurl's parser decides, and of what it
/// takes we refuse port 0 and an invalid IPv4 address.
std::optional<term> fault_of_url(const std::string& url);

/// A name that only the cluster's own DNS resolves: "NAME.NAMESPACE.svc" and what follows, "NAME" and
/// "NAME.NAMESPACE". A name of two parts whose last is a top-level domain is none, and no IP address is one.
bool is_service_name(std::string_view host);

/// "${kube-apiserver}", "<address>", "{{ .Host }}", "$(HOST)"; empty: none.
std::string_view placeholder_in(std::string_view url);

}  // namespace scheduler_config
