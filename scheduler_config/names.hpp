#pragma once
// The names a kube-scheduler's configuration gives to what the API server is to store, by the API server's own rules.

#include <string_view>

#include "text/resource_name.hpp"

namespace scheduler_config {

inline bool is_lease_name(std::string_view text) { return text::is_dns_subdomain(text); }
inline bool is_namespace_name(std::string_view text) { return text::is_dns_label(text); }
/// Pods may name any scheduler, but its events carry the name as reportingController, a qualified name
/// (pkg/apis/core/validation/events.go).
inline bool is_scheduler_name(std::string_view text) { return text::is_label_key(text); }

}  // namespace scheduler_config
