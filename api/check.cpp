#include "api/check.hpp"

#include <algorithm>
#include <array>

namespace api {
namespace {

constexpr std::array<std::string_view, 5> states{"ok", "warning", "failed", "unknown", "not_needed"};

constexpr check_ends nobody{}, reports{true, false, false}, warns{true, true, false}, fails{true, false, true},
    both{true, true, true};

/// Kubernetes: the product's promise. Driver and toolkit: prerequisites of NVIDIA's k8s-device-plugin. RDMA: from this
/// branch of the driver on. peermem: from this Linux on DMA-BUF does its work (NVIDIA, GPUDirect RDMA).
constexpr std::array<check_entry, static_cast<std::size_t>(check::vgpu_license) + 1> check_table{{
    {check::kubernetes, "kubernetes", "1.25", nobody, fails},
    {check::platform, "platform", {}, nobody, fails},
    {check::cards, "cards", {}, both, nobody},
    {check::nouveau, "nouveau", {}, both, nobody},
    {check::kernel, "kernel", {}, fails, nobody},
    {check::driver, "driver", "384.81", fails, fails},
    {check::driver_library, "driver_library", {}, both, nobody},
    {check::driver_branch, "driver_branch", {}, fails, nobody},
    {check::kernel_module, "kernel_module", {}, fails, nobody},
    {check::cuda, "cuda", {}, reports, fails},
    {check::compute_capability, "compute_capability", {}, nobody, fails},
    {check::mig, "mig", {}, nobody, fails},
    {check::device_nodes, "device_nodes", {}, both, nobody},
    {check::nvidia_uvm, "nvidia_uvm", {}, both, nobody},
    {check::dev_char, "dev_char", {}, warns, nobody},
    {check::persistence, "persistence", {}, warns, nobody},
    {check::fabric_manager, "fabric_manager", {}, fails, reports},
    {check::fabric, "fabric", {}, both, nobody},
    {check::container_toolkit, "container_toolkit", "1.7.0", fails, reports},
    {check::container_runtime, "container_runtime", {}, both, nobody},
    {check::default_runtime, "default_runtime", {}, warns, reports},
    {check::visible_devices, "visible_devices", {}, warns, nobody},
    {check::cdi, "cdi", {}, both, nobody},
    {check::cgroup, "cgroup", {}, reports, warns},
    {check::kubelet_device_plugins, "kubelet_device_plugins", {}, fails, nobody},
    {check::kubelet_pod_resources, "kubelet_pod_resources", {}, fails, nobody},
    {check::rdma, "rdma", "471", warns, warns},
    {check::rdma_ports, "rdma_ports", {}, warns, nobody},
    {check::peermem, "peermem", "5.12", warns, nobody},
    {check::rdma_affinity, "rdma_affinity", {}, warns, nobody},
    {check::machine, "machine", {}, warns, nobody},
    {check::vgpu_license, "vgpu_license", {}, fails, nobody},
}};
static_assert(
    [] {
      for (std::size_t i = 0; i < check_table.size(); ++i)
        if (check_table[i].id != static_cast<check>(i)) return false;
      return true;
    }(),
    "one entry per check, in the order of the enumeration");

}  // namespace

std::string_view to_string(check_state state) noexcept { return states[static_cast<std::size_t>(state)]; }

check_state check_state_in(std::string_view word) noexcept {
  const auto match = std::ranges::find(states, word);
  return match == states.end() ? check_state::unknown : static_cast<check_state>(match - states.begin());
}

std::span<const check_entry> checks() noexcept { return check_table; }
const check_entry& entry_of(check check) noexcept { return check_table[static_cast<std::size_t>(check)]; }
std::string_view to_string(check check) noexcept { return entry_of(check).name; }

}  // namespace api
