// A module from outside: what "How to add a module" in docs/architecture.md asks for, and nothing else. CMake adds its
// name to the lists of catalogue.hpp and catalogue.cpp, in copies.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/modules/plugin.hpp"

namespace reconcilers::modules {

extern const module_type dummy;

namespace {

using nlohmann::json;

constexpr std::string_view values[] = {"dummy"};
constexpr std::string_view resources[] = {"example.com/dummy"};
constexpr std::string_view architectures[] = {"amd64", "arm64"};
constexpr std::string_view name = "dummy-device-plugin";

std::vector<json> objects(const module_spec& spec, const facts&) {
  json plugin = {{"name", "plugin"},
                 {"image", image_of(spec, "example.com/dummy:v1")},
                 {"securityContext", confined()},
                 {"volumeMounts", {mount("device-plugins", plugin_folder, false)}}};
  return {daemon_set("dummy", name, spec, json::array({std::move(plugin)}),
                     json::array({host_path("device-plugins", plugin_folder, "Directory")}), {"example.com/dummy"})};
}

}  // namespace

constinit const module_type dummy = {
    .name = "dummy",
    .title = "a module from outside",
    .label_values = values,
    .resources = resources,
    .daemon_set = name,
    .needs = {.architectures = architectures},
    .objects = objects,
};

}  // namespace reconcilers::modules
