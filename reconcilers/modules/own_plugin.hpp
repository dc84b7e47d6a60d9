#pragma once
// The product's own device plugin (agent/card_plugin.hpp) as a DaemonSet: for whole cards, and for shares next to the
// program that keeps MPS (agent/mps_host.hpp).

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Its ServiceAccount; two modules never share an object. It reads pods, placements and the agents' reports, and writes
/// nothing.
std::string own_plugin_account(std::string_view module);

/// A key of a vocabulary of shares: a row of the table that the plugin reads of its flags.
struct share_key {
  std::string resource;
  std::string meaning;     ///< of one: "cores", "memory:MIB", "slots:NUMBER of a card"
  bool is_offered = true;  ///< false: it stands in limits alone, as "percent" does
};

struct own_plugin {
  std::string_view module, daemon_set;
  std::string_view cards = {};  ///< resource of whole cards; empty: shares
  /// All that have a share ask for the first.
  std::vector<share_key> shares = {};
};

/// @throws invalid_policy for a setting of another plugin of this module next to `plugin: quartermaster`
void refuse_settings_of_others(const module_spec& spec, std::string_view module, std::string_view product,
                               std::span<const std::string_view> allowed);

nlohmann::json own_plugin_set(const own_plugin& plugin, const module_spec& spec, const facts& known);

}  // namespace reconcilers::modules
