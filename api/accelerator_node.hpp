#pragma once
// What we keep of an AcceleratorNode: the controller's part of its status, which is also our memory of what the node
// went through (a phase and since when), so that a restart goes on where it was.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/check.hpp"
#include "api/other_card.hpp"
#include "kube/object.hpp"
#include "quota/inventory.hpp"
#include "text/phrase_code.hpp"

namespace api {

/// A change that was given up: what was asked for, why, and what it takes to try it again.
struct rolled_back {
  std::string request;  ///< the mode that was asked for
  std::string reason, message;
  text::phrase_code code;      ///< of the message
  std::int64_t timestamp = 0;  ///< seconds since 1970; 0: it is being tried again
  std::int64_t attempts = 0;
  std::int64_t policy_generation = 0;
  std::vector<std::string> blockers;  ///< pods that prevented it
  friend bool operator==(const rolled_back&, const rolled_back&) = default;
};

/// The controller's part of AcceleratorNode.status; crds/acceleratornodes.quartermaster.io.yaml says what each means.
struct mode_status {
  std::string requested_mode;
  std::string actual_mode;
  std::string phase;
  std::string reason;
  std::string message;
  text::phrase_code code;  ///< of the message
  std::string since;       ///< RFC 3339
  /// Condition Ready: the node is in the mode it asks for, and its plugin works. Its reason and message are those
  /// above.
  std::string ready;                  ///< "True", "False"; empty: there is no such condition
  std::string ready_since;            ///< RFC 3339
  std::vector<std::string> blockers;  ///< pods, "namespace/name", and in brackets in English why one stays
  std::map<std::string, text::phrase_code, std::less<>> blocker_causes;  ///< why one stays, by pod
  std::optional<rolled_back> given_up;
  friend bool operator==(const mode_status&, const mode_status&) = default;
};

/// The pods that a change waits for, each with why it stays. Where that has no code that is known here: its entry.
std::vector<text::phrase> blockers_of(const mode_status& status);
/// "namespace/name" of an entry of `blockers`.
std::string_view pod_of_blocker(std::string_view entry);

/// `memoryLimits` of a card.
inline constexpr std::string_view limits_by_driver = "Driver";

/// A card as the node's agent reports it.
struct reported_card {
  std::string uuid, model, health;  ///< health "Healthy" or nothing: in order
  std::int64_t memory_mib = 0;      ///< 0: not said
  std::int32_t index = -1;          ///< N of /dev/nvidiaN; -1: its place in the list
  std::int32_t numa = -1;           ///< -1: not known
  bool mig = false;
  bool is_limited = false;                 ///< the driver itself limits the memory of pods on it
  std::string compute_capability, bus_id;  ///< "8.0", "00000000:07:00.0"
  std::vector<quota::link> links;          ///< to each card of the node, ordered by index; empty: not said
  std::vector<std::string> warnings;       ///< what a person should look at; the card is used all the same
  bool healthy() const { return health.empty() || health == "Healthy"; }
  friend bool operator==(const reported_card&, const reported_card&) = default;
};

/// As `nvidia-smi topo -m` writes a link: NV and the number of NVLinks, or PIX, PXB, PHB, NODE, SYS. "X": unknown, or
/// the card itself. With both, PCI follows: "NV12 PXB".
std::string text_of(const quota::link& link);
quota::link link_in(std::string_view text);

/// The last run of `agent fix-runtime` on the node that the policy asked for (spec.containerRuntime.fix).
struct runtime_fix {
  std::string result;          ///< Done or Failed
  std::string message;         ///< what was written, or why it failed
  text::phrase_code code;      ///< of the message
  std::string pod;             ///< UID of the pod that ran it
  std::int64_t timestamp = 0;  ///< seconds since 1970
  friend bool operator==(const runtime_fix&, const runtime_fix&) = default;
};
/// By the controller: False while no agent runs that keeps the report of a node true, True once one does again.
inline constexpr std::string_view agent_reporting_condition = "AgentReporting";

struct accelerator_node : kube::object {
  mode_status mode;
  std::vector<reported_card> cards;                ///< the agent's; empty: none reports
  std::string boot;                                ///< of the machine, when the agent reported
  std::string driver, cuda;                        ///< versions that the agent found
  std::string cards_healthy, cards_healthy_since;  ///< the agent's condition; RFC 3339
  std::string cards_healthy_reason, cards_healthy_message;
  /// The agent's checks default_runtime and container_toolkit; nothing: no agent reports.
  std::optional<check_state> default_runtime, container_toolkit;
  std::optional<runtime_fix> fix;
  std::string preflight_passed;            ///< the agent's condition PreflightPassed: "True", "False"; empty: none
  std::vector<std::string> failed_checks;  ///< of the agent's preflight
  std::vector<std::string> restore;  ///< UUIDs of cards that a person calls in order again, until the agent agrees
  std::string agent_reporting;       ///< condition AgentReporting, by the controller; empty: never was otherwise
  std::string agent_reporting_message;
  text::phrase_code agent_reporting_code;  ///< of that message

  /// An agent has reported, whether or not it is still there.
  bool has_report() const { return !boot.empty() || !cards.empty() || !preflight_passed.empty(); }
  /// The agent that wrote the report is gone: nothing of it is kept true.
  bool is_report_old() const { return agent_reporting == "False"; }

  static const kube::resource& of() { return kube::resources::accelerator_nodes; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<accelerator_node> decode(std::string_view bytes);
  friend bool operator==(const accelerator_node&, const accelerator_node&) = default;
};

/// What an agent says of its node, besides its cards.
struct agent_report {
  std::vector<check_row> checks;        ///< status.preflight
  std::vector<other_card> other_cards;  ///< of other vendors
  std::string passed_since;             ///< condition PreflightPassed; RFC 3339
  friend bool operator==(const agent_report&, const agent_report&) = default;
};

/// An AcceleratorNode with all of the agent's part, which the operator does not keep.
struct reported_node : accelerator_node {
  agent_report report;

  static kube::result<reported_node> decode(std::string_view bytes);
  friend bool operator==(const reported_node&, const reported_node&) = default;
};

}  // namespace api
