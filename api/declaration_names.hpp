#pragma once
// By which labels a ConfigMap is a declaration of a resource, or a device configuration.

#include <string_view>

namespace api::declaration {

inline constexpr std::string_view alauda = "features.alauda.io/";
inline constexpr std::string_view cpaas = "features.cpaas.io/";
inline constexpr std::string_view type_value = "CustomResourceLimitation";
inline constexpr std::string_view device_label = "device-plugin.cpaas.io/config";
/// The selectors of the three watches that bring everything we judge (a selector has no "or" over keys).
inline constexpr std::string_view alauda_selector = "features.alauda.io/type=CustomResourceLimitation";
inline constexpr std::string_view cpaas_selector = "features.cpaas.io/type=CustomResourceLimitation";
inline constexpr std::string_view device_selector = "device-plugin.cpaas.io/config=true";

}  // namespace api::declaration
