#pragma once
// What the DaemonSets of all modules have in common, so that a module's file says only what is particular to it: they
// run where our node label says, tolerate a mode change whatever the policy says, and keep people's wishes. How they
// roll out and which node set they are for is the catalogue's business.

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Starts a DaemonSet `name` of module `module` whose pods run `containers` (the first is the plugin: the policy's
/// image, resources, args and env are about it) with `volumes`. `tolerated` are the taint keys the plugin tolerates by
/// itself.
nlohmann::json daemon_set(std::string_view module, std::string_view name, const module_spec& spec,
                          nlohmann::json containers, nlohmann::json volumes,
                          std::initializer_list<std::string_view> tolerated);

/// `image` in another registry: with "mirror.example:5000/gpu" both "nvcr.io/nvidia/x:1" and "nvidia/x:1" become
/// "mirror.example:5000/gpu/nvidia/x:1". An empty registry leaves it as it is.
std::string at_registry(std::string_view image, std::string_view registry);
/// The policy's image, or `tested`.
std::string image_of(const module_spec& spec, std::string_view tested);

nlohmann::json variable(std::string_view name, std::string_view value);
/// NODE_NAME from spec.nodeName.
nlohmann::json node_name_variable();
nlohmann::json host_path(std::string_view volume, std::string_view path, std::string_view type);
nlohmann::json mount(std::string_view volume, std::string_view path, bool read_only);
/// Of an own account; the token goes only to pods that ask for it.
nlohmann::json service_account(std::string_view name);
/// A ConfigMap of the module, in our own namespace, with one file. Each node set has its file in the same ConfigMap.
nlohmann::json file(const facts& known, std::string_view config_map, std::string_view name, std::string text);
/// That file as a volume of its own, under its plain name.
nlohmann::json file_volume(const facts& known, std::string_view volume, std::string_view config_map,
                           std::string_view name);
/// NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES: NVIDIA's runtime hands a container the driver by these.
nlohmann::json nvidia_variables();
/// Nothing but what every process has: no capability, no way to get one.
nlohmann::json confined();

inline constexpr std::string_view nvidia_image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0";

/// Where plugins register with the kubelet.
inline constexpr std::string_view plugin_folder = "/var/lib/kubelet/device-plugins";

}  // namespace reconcilers::modules
