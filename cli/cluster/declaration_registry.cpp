#include "cli/cluster/declaration_registry.hpp"

#include "reconcilers/declarations/custom_resource.hpp"

namespace cli {

namespace declarations = reconcilers::declarations;

declarations::registry registry_of(const declared_resources& declared, std::string ns) {
  declarations::parse_settings settings;
  settings.ns = std::move(ns);
  declarations::registry out(std::move(settings));
  out.set_runtime_classes(declared.runtime_classes);
  for (const auto& config_map : declared.config_maps) out.put(reconcilers::view_of(config_map));
  return out;
}

kube::task<std::vector<declarations::refused_declaration>> read_refused_declarations(kube::transport& transport) {
  const auto ns = declarations::parse_settings().ns;
  const auto declared = co_await read_declared(transport, ns);
  if (!declared) co_return std::unexpected(declared.error());
  co_return refused_declarations(registry_of(*declared, ns));
}

}  // namespace cli
