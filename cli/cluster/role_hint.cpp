#include "cli/cluster/role_hint.hpp"

namespace cli {

std::string role_hint(const kube::error& refused) {
  const std::string_view operation(refused.message);
  const bool reads = operation.starts_with("list ") || operation.starts_with("get ");
  if (refused.code != kube::errc::forbidden || !reads) return {};
  if (operation.starts_with("list configmaps"))
    return "; where declarations are, the chart's Role quartermaster-user allows it: ask an administrator to bind it";
  if (operation.starts_with("list acceleratorusages"))
    return "; the chart's ClusterRole quartermaster-chargeback allows it: ask an administrator to bind it";
  return "; the chart's ClusterRole quartermaster-user allows people to read this: ask an administrator to bind it";
}

}  // namespace cli
