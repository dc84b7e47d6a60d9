#pragma once
// The declarations that were read of a cluster, judged together as the operator judges them.

#include <string>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/declarations/verdict.hpp"

namespace cli {

reconcilers::declarations::registry registry_of(const declared_resources& declared, std::string ns);

/// Those of the namespace in which declarations are read.
kube::task<std::vector<reconcilers::declarations::refused_declaration>> read_refused_declarations(
    kube::transport& transport);

}  // namespace cli
