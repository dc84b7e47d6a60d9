#pragma once
// Names that stand twice in one mapping of an object, anywhere in it. Kubernetes takes the last without a word, so the
// cards of the first are gone.

#include <string>
#include <vector>

#include "text/yaml/source.hpp"

namespace cli {

struct repeated_name {
  std::string path;            ///< "spec.containers[0].resources.limits[nvidia.com/gpu]"
  text::yaml::place location;  ///< of the first
};
/// In the order of the file. A part that has several aliases is looked at once.
std::vector<repeated_name> repeated_names(const text::yaml::node& root);

}  // namespace cli
