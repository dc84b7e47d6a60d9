#pragma once
// The checks of a node: what each is called, to which version it holds a node, and how it can end. One table for the
// agent, which judges what it reads on the node, and for the operator, which judges what only a mode needs. A row of
// the agent is the verdict: no one judges the same thing again. Pure.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "api/check_cause.hpp"
#include "text/phrase.hpp"

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
  memory_limits,
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

/// A row of AcceleratorNode.status.preflight. An agent of another version may have checks and causes that are not in
/// the tables. What `found` and `remedy` say is English, for people with kubectl; others read `found_text` and
/// `remedy_text`.
struct check_row {
  std::string name;
  check_state state = check_state::ok;
  std::string found;        ///< of some checks a word that programs read: "1.17.8", "missing", "v2"; of unknown: why
  std::string remedy = {};  ///< empty unless warning or failed
  std::string cause = {};   ///< a code of check_cause; empty: none, or of an agent that has no codes
  std::map<std::string, std::string, std::less<>> parameters = {};  ///< what the words of the cause are about
  friend bool operator==(const check_row&, const check_row&) = default;
};

/// Limits of the type, in characters; a reader cuts at them, too, in bytes.
inline constexpr std::size_t longest_check_text = 1024, longest_check_parameter = 512, most_check_parameters = 8;

/// The row of a check that ended so: its English words and, for other readers, its cause.
/// @param found what needs no words, or a word that programs read; empty: the words of the cause
check_row row_of(check check, check_state state, std::string found, const explained_cause& cause);

/// What was found, in the words of the cause. Where this program does not know the cause, or not what its words are
/// about, the row's own text.
std::string found_text(const check_row& row, text::language language);
/// What to do, in the same way; empty where nothing is to be done.
std::string remedy_text(const check_row& row, text::language language);
/// What a cause finds, in English: for those who have no row.
std::string found_text(const explained_cause& cause);
std::string remedy_text(const explained_cause& cause);
std::string remedy_text(check_advice advice);
/// The same as phrases.
text::phrase found_phrase(const explained_cause& cause);
text::phrase remedy_phrase(const explained_cause& cause);
text::phrase remedy_phrase(check_advice advice);

}  // namespace api
