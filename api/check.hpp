#pragma once
// The checks of a node: what each is called, to which version it holds a node, and how it can end. One table for the
// agent, which judges what it reads on the node, and for the operator, which judges what only a mode needs. A row of
// the agent is the verdict: no one judges the same thing again. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace api {

enum class check_state : std::uint8_t {
  ok,
  warning,     ///< cards work, and something does not
  failed,      ///< cards do not work for all pods
  unknown,     ///< could not be seen, or no one has reported it
  not_needed,  ///< does not matter on this node, or to its mode
};
std::string_view to_string(check_state state) noexcept;
/// Any other word is unknown.
check_state check_state_in(std::string_view word) noexcept;

enum class check : std::uint8_t {
  kubernetes,
  platform,
  cards,
  nouveau,
  kernel,
  driver,
  driver_library,
  driver_branch,
  kernel_module,
  cuda,
  compute_capability,
  mig,
  device_nodes,
  nvidia_uvm,
  dev_char,
  persistence,
  fabric_manager,
  fabric,
  container_toolkit,
  container_runtime,
  default_runtime,
  visible_devices,
  cdi,
  cgroup,
  kubelet_device_plugins,
  kubelet_pod_resources,
  rdma,
  rdma_ports,
  peermem,
  rdma_affinity,
  machine,
  vgpu_license,
};

/// How one who judges can end a check, besides ok and unknown.
struct check_ends {
  bool judges = false, warns = false, fails = false;
  friend bool operator==(const check_ends&, const check_ends&) = default;
};

struct check_entry {
  check id;
  std::string_view name;     ///< stable: `check` of a row, and of a metric's label
  std::string_view version;  ///< what a node is held to on every mode: "384.81"; empty: no version
  check_ends by_agent, by_operator;
};
std::span<const check_entry> checks() noexcept;
const check_entry& entry_of(check check) noexcept;
std::string_view to_string(check check) noexcept;

/// A row of AcceleratorNode.status.preflight. An agent of another version may have checks that are not in the table.
struct check_row {
  std::string name;
  check_state state = check_state::ok;
  std::string found;        ///< of some checks a word that programs read: "1.17.8", "missing", "v2"; of unknown: why
  std::string remedy = {};  ///< empty unless warning or failed
  friend bool operator==(const check_row&, const check_row&) = default;
};

}  // namespace api
