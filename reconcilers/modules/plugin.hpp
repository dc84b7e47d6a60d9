#pragma once
// What the DaemonSets of all modules have in common, so that a module's file says only what is particular to it: they
// run where our node label says, tolerate a mode change whatever the policy says, keep people's wishes, and roll out on
// a tenth of the nodes at a time.

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Starts a DaemonSet `name` of module `of` whose pods run `containers` (the first is the plugin: the policy's image,
/// resources, args and env are about it) with `volumes`. `tolerated` are the taint keys the plugin tolerates by itself.
nlohmann::json daemon_set(std::string_view of, std::string_view name, const module_spec& spec,
                          nlohmann::json containers, nlohmann::json volumes,
                          std::initializer_list<std::string_view> tolerated);

/// The policy's image, or `tested`.
std::string image_of(const module_spec& spec, std::string_view tested);

nlohmann::json variable(std::string_view name, std::string_view value);
/// NODE_NAME from spec.nodeName.
nlohmann::json node_name_variable();
nlohmann::json host_path(std::string_view volume, std::string_view path, std::string_view type);
nlohmann::json mount(std::string_view volume, std::string_view path, bool read_only);
/// Nothing but what every process has: no capability, no way to get one.
nlohmann::json confined();

/// Where plugins register with the kubelet.
inline constexpr std::string_view plugin_folder = "/var/lib/kubelet/device-plugins";

}  // namespace reconcilers::modules
