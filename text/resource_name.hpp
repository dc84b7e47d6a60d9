#pragma once
// Which resource names a pod may ask for as an extended resource: the API server's own rule, so that a declaration
// never promises what validation refuses. Source: k8s.io/kubernetes pkg/apis/core/v1/helper IsExtendedResourceName,
// apimachinery IsQualifiedName.

#include <string_view>

namespace text {

enum class resource_name_fault {
  none,
  no_domain,      ///< "fpga": without a domain only Kubernetes' own resources exist
  native_domain,  ///< "kubernetes.io/fpga" and everything below: not extended resources
  requests,       ///< "requests.example.com/fpga": quota's own prefix
  bad_domain,     ///< the part before the slash is not a lower-case DNS name of at most 244 bytes
  bad_name,       ///< the part after it is not 1 to 63 of [-A-Za-z0-9_.] with letters or figures at both ends
};

resource_name_fault fault_of_extended_resource(std::string_view name);
inline bool is_extended_resource(std::string_view name) {
  return fault_of_extended_resource(name) == resource_name_fault::none;
}

/// Lower-case letters, figures, '-' and '.', labels of 1 to 63 bytes (RFC 1123).
bool is_dns_subdomain(std::string_view text, std::size_t max_bytes = 253);
/// A name of containers, volumes and namespaces: such a label alone.
inline bool is_dns_label(std::string_view text) { return is_dns_subdomain(text, 63) && !text.contains('.'); }
/// As Kubernetes checks names of objects (NameIsDNSSubdomain): the same, and a label may have any length. A pod of a
/// Deployment with a long name has one of more than 63.
bool is_object_name(std::string_view text);

/// A label key: an optional DNS prefix and a qualified name.
bool is_label_key(std::string_view text);

/// A label value: empty, or 1 to 63 bytes as in a qualified name.
bool is_label_value(std::string_view text);

}  // namespace text
