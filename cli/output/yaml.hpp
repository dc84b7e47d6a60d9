#pragma once
// YAML in files and on the screen, by its short name.

#include "text/yaml/source.hpp"
#include "text/yaml/writer.hpp"

namespace cli {
namespace yaml = reconcilers::yaml;
}  // namespace cli
