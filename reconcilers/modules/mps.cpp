// mps: shares of a card by NVIDIA MPS: nvidia.com/mps-core (100 a card) and nvidia.com/mps-memory (1 GiB units). The
// plugin and the program that keeps the control daemons are ours (agent/card_plugin.hpp, agent/mps_host.hpp): NVIDIA's
// (k8s-device-plugin v0.20.0, cmd/mps-control-daemon) offer equal shares only, as nvidia.com/gpu.shared.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/own_plugin.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"

namespace reconcilers::modules {
namespace {
namespace mps_plugin {

using nlohmann::json;

constexpr std::string_view values[] = {"mps"};
constexpr std::string_view resources[] = {"nvidia.com/mps-core", "nvidia.com/mps-memory"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "nvidia-mps-device-plugin-daemonset";

std::vector<json> objects(const module_spec& spec, const facts& known) {
  return {service_account(own_plugin_account("mps")),
          own_plugin_set({.module = "mps",
                          .daemon_set = name,
                          .shares = {{std::string(resources[0]), "cores"}, {std::string(resources[1]), "memory:1024"}}},
                         spec, known)};
}

std::vector<json> declarations(const module_spec&, const facts&) {
  const published group{"nvidia-mps", "NVIDIA MPS", "英伟达 MPS"};
  resource_declaration core, memory;
  core.config_map = "cf-crl-nvidia-mps-core";
  core.key = "nvidia.com/mps-core";
  core.default_value = "20";
  core.unit = "%";
  core.label_en = "MPS core";
  core.label_zh = "MPS 算力";
  core.description_en = "hundredths of a card's compute";
  core.description_zh = "一张卡算力的百分比";
  core.related = "nvidia.com/mps-memory";
  core.excluded = memory.excluded = "nvidia.com/gpualloc";
  memory.config_map = "cf-crl-nvidia-mps-memory";
  memory.key = "nvidia.com/mps-memory";
  memory.unit = "GiB";
  memory.label_en = "MPS memory";
  memory.label_zh = "MPS 显存";
  memory.description_en = "memory of the card, in GiB";
  memory.description_zh = "显存，单位 GiB";
  memory.related = "nvidia.com/mps-core";
  return {declaration(group, core), declaration(group, memory), device_config({"mps", "MPS", "MPS"})};
}

constexpr privilege privileges[] = {
    {"", "hostPID", "the control daemon tells clients apart by their host process ids"},
    {"", "token", "the plugin reads the pods of its node, their placements and the agent's report"},
};

constexpr product_label labels[] = {
    {"ack.node.gpu.schedule", "mps", "ACK"},
};

}  // namespace mps_plugin
}  // namespace

/// Volta (7.0) or newer, CUDA 11.5: the first with a memory limit for MPS clients. MPS and MIG are not mixed.
constinit const module_type mps = {
    .name = "mps",
    .title = "shares of a card by NVIDIA MPS",
    .label_values = mps_plugin::values,
    .resources = mps_plugin::resources,
    .daemon_set = mps_plugin::name,
    .needs = {.architectures = mps_plugin::architectures, .compute_capability = 70, .cuda = 1105, .mig = false},
    .objects = mps_plugin::objects,
    .isolates = isolation::mps,
    .rolls_out = {rollout::strategy::when_idle, 10,
                  "the control daemon is in the pod: when it ends, every process that uses the card ends with it",
                  "CUDA error 806 in each client, recorded on an H200 with driver 580.159.04"},
    .declarations = mps_plugin::declarations,
    .follows_placement = [](const module_spec&) { return true; },
    .privileges = mps_plugin::privileges,
    .labels = mps_plugin::labels,
};

}  // namespace reconcilers::modules
