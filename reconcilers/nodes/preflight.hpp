#pragma once
// What must be true of a node before cards can be given out on it: the list of checks, their verdicts and remedies, as
// pure code over facts. Facts come from the node's labels and status, and from the agent where it reports them
// (AcceleratorNode.status); what no one has reported is unknown, never failed.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "reconcilers/declarations/finding.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers {

/// One row of the agent's report (AcceleratorNode.status.preflight).
struct agent_row {
  std::string check, found;
  std::string state = {};   ///< ok, warning, failed or unknown
  std::string remedy = {};  ///< what to do; empty unless warning or failed
  friend bool operator==(const agent_row&, const agent_row&) = default;
};

/// What is known of a node. Empty: no one has said.
struct node_facts {
  std::string kubelet;             ///< "v1.36.3"
  std::string platform;            ///< "linux/amd64"
  std::string driver;              ///< "550.144.03"
  std::string cuda;                ///< the newest CUDA the driver runs: "12.4"
  std::string compute_capability;  ///< of the cards: "8.0"
  std::string mig;                 ///< "none", or the strategy by which cards are cut: "single", "mixed"
  std::string container_runtime;   ///< "containerd://2.1.4"
  std::string toolkit;             ///< NVIDIA container toolkit: "1.17.8"; "missing"
  std::string default_runtime;     ///< of containerd or Docker: "nvidia", "runc"; "cdi" where devices come by CDI
  /// The agent's verdict on it, which looks at the program and not at the name: "ok", "warning"; empty: no agent.
  std::string default_runtime_state;
  std::string cgroup;          ///< "v1", "v2"
  std::string rdma;            ///< "none", "capable" (an adapter), "available" (its kernel modules are loaded)
  std::string rdma_resource;   ///< what an RDMA device plugin advertises: "rdma/hca"; empty: nothing
  std::string fabric_manager;  ///< "active", "inactive", "missing", or its version where it is active
  std::string product;         ///< "NVIDIA-H100-80GB-HBM3"
  int cards = 0;
  bool has_switches = false;        ///< the agent has seen an NVSwitch; false: seen none, or no agent
  std::vector<agent_row> reported;  ///< what only the agent judges, and what it could not see
};

/// By name, as in AcceleratorNode.status.preflight[].check.
enum class preflight_check : std::uint8_t {
  kubernetes,
  platform,
  driver,
  cuda,
  compute_capability,
  mig,
  container_toolkit,
  default_runtime,
  cgroup,
  rdma,
  fabric_manager,
};
inline constexpr std::size_t preflight_check_count = static_cast<std::size_t>(preflight_check::fabric_manager) + 1;

enum class preflight_verdict : std::uint8_t {
  passed,
  failed,      ///< cards cannot be given out so
  warning,     ///< works, but not for everything
  unknown,     ///< no one has reported it
  not_needed,  ///< does not matter to this module on this node
};

struct preflight_row {
  preflight_check check{};
  preflight_verdict is{};
  std::string found;        ///< empty: not reported
  std::string needed;       ///< "1.7.0 or newer"; empty where nothing is
  std::string reason = {};  ///< of unknown: why the agent could not see it
  friend bool operator==(const preflight_row&, const preflight_row&) = default;
};

/// From the labels of GPU Feature Discovery and NFD, and the node's own status.
node_facts facts_of(const kube::node& node);

/// `found` of the agent's rows takes the place of what labels say. Rows of checks that are not ours are kept as they
/// are: the agent has judged them.
void take_in(node_facts& node_facts, std::span<const agent_row> reported);

/// All checks in their order, for one module.
std::vector<preflight_row> preflight(const node_facts& known, const modules::module_type& type);
/// Checks that the agent alone judges, as it judged them.
std::vector<agent_row> agent_checks(const node_facts& known);

std::string_view to_string(preflight_check preflight_check) noexcept;
std::string_view to_string(preflight_verdict is) noexcept;
/// What is so, in one line: "CUDA 11.4; needed is 11.5 or newer".
std::string text_of(const preflight_row& row, text::language language);
/// What to do about it; empty unless failed or warning.
std::string remedy_of(const preflight_row& row, text::language language);

/// Numbers between dots ("550.144.03", "v1.36.3-rc.1", "1.17.8-1"), compared part by part. Empty for text without a
/// number.
struct dotted_version {
  int parts[3] = {0, 0, 0};
  friend auto operator<=>(const dotted_version&, const dotted_version&) = default;
};
std::optional<dotted_version> parse_version(std::string_view text);

}  // namespace reconcilers
