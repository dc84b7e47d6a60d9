#pragma once
// Declarations on their way from the console's server to `lint --cluster`: what the labels and fields of their
// ConfigMaps declare, and nothing else of them. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "cli/cluster/cluster.hpp"

namespace cli {

/// One line of JSON. Labels and data that declare nothing are left out.
std::string document_of(const declared_resources& declared);
/// Nothing: it is no such document. Which RuntimeClasses there are is then not known.
std::optional<declared_resources> declared_in(std::string_view document);

}  // namespace cli
