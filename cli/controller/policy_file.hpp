#pragma once
// --policy FILE: the AcceleratorPolicy that comes with the installation (the chart's values). It is applied by the
// leader, because helm cannot make an object of a type that the same release brings. What the file names replaces
// edits by hand each time a leader starts. What it does not name stays as it is.

#include <expected>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/client.hpp"
#include "text/phrase.hpp"

namespace cli {

/// One AcceleratorPolicy named `default`, as YAML or JSON. What else it is, with the place.
std::expected<nlohmann::json, text::phrase> read_policy_file(const std::string& path);

/// Server-side apply as field owner quartermaster-values; again until it is done, or the fence says that we do not
/// lead. A policy that the server refuses is logged and tried again: an upgrade may bring the CRD it fits.
/// @param settled once: the first try has failed, or what was applied is in the stores by now
kube::task<void> keep_policy(kube::client& api, nlohmann::json policy, std::function<void()> settled);

}  // namespace cli
