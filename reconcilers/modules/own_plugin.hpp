#pragma once
// The product's own device plugin (agent/card_plugin.hpp) as a DaemonSet: for whole cards, and for shares next to the
// program that keeps MPS (agent/mps_host.hpp).

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Its ServiceAccount; two modules never share an object. It reads pods, placements and the agents' reports, and writes
/// nothing.
std::string own_plugin_account(std::string_view module);

struct own_plugin {
  std::string_view module, daemon_set;
  std::string_view cards = {};               ///< resource of whole cards; empty: shares
  std::string_view cores = {}, memory = {};  ///< resources of shares
  std::int64_t memory_unit_mib = 1024;
};

nlohmann::json own_plugin_set(const own_plugin& plugin, const module_spec& spec, const facts& known);

}  // namespace reconcilers::modules
