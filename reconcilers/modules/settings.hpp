#pragma once
// What a policy sets of a module, checked against the module's table. The CRD carries the same table as CEL rules, so
// normally a mistake is refused when it is written; here it is caught where the CRD is older than we are.

#include <string>
#include <string_view>

#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Throws invalid_policy for a setting that is unknown or whose value is not allowed; `path` is its path.
void check_settings(const module_type& type, const settings_map& settings, const std::string& path);

/// The policy's value, or the table's. `known` has the name.
std::string setting_of(std::span<const setting> known, const module_spec& spec, std::string_view name);
bool flag_of(std::span<const setting> known, const module_spec& spec, std::string_view name);

/// "a whole number from 1 to 100".
text::phrase allowed_for_people(const setting& setting);
bool is_legal(const setting& setting, std::string_view value);

}  // namespace reconcilers::modules
