#pragma once
// YAML in files and on the screen, by its short name.

#include "reconcilers/yaml/source.hpp"
#include "reconcilers/yaml/writer.hpp"

namespace cli {
namespace yaml = reconcilers::yaml;
}  // namespace cli
