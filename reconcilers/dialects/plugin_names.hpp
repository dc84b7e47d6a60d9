#pragma once
// How the device plugins of other products are recognized: by the DaemonSets of the products' own manifests and charts.

#include <string_view>
#include <vector>

namespace reconcilers::dialects {

struct plugin_name {
  std::string_view part;     ///< of the DaemonSet's name; a Helm release puts its own name in front
  std::string_view product;  ///< as people know it
};

/// Of the products that have a dialect; the first that fits counts.
const std::vector<plugin_name>& plugin_names();

}  // namespace reconcilers::dialects
