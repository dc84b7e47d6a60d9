#pragma once
// The walk of one node from its label to what pods can ask for, and of the cluster around it: every step in order, what
// is wrong there, and what to do. Pure: facts go in, steps come out; cli/verify/verify.cpp fetches the facts.
//
// One cause is reported once. A step that fails only because an earlier one did is `skipped` and says so; a phase or a
// condition that only repeats what another step found is no finding of its own.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_node.hpp"
#include "api/accelerator_quota.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "reconcilers/nodes/preflight.hpp"
#include "text/phrase.hpp"

namespace reconcilers::verify {

/// A pod on the node that asks for extended resources and is not finished.
struct claim {
  std::string pod;  ///< "namespace/name"
  kube::quantities requests;
};

struct node_view {
  kube::node node;
  node_facts known;                        ///< for preflight
  std::optional<api::mode_status> status;  ///< AcceleratorNode.status
  std::vector<plugin_pod> plugins;
  std::vector<claim> claims;
  foreign_pods foreign;
  std::vector<api::reported_card> cards;           ///< as the agent reports them; empty: no agent
  text::phrase old_report;                         ///< why the report is old; empty: it is recent, or there is none
  std::vector<std::string> given_twice;            ///< overbooked cards, each with its pods
  std::vector<std::string> perhaps_given_twice{};  ///< the same, where it is a guess which card a pod has
  /// Usable cards with room that get no new share: the plugin picks cards itself, and would take one that may not be
  /// used.
  std::size_t withheld_cards = 0;
  std::vector<text::phrase> uncounted_pods;  ///< whose limits the ledger cannot count, each with the reason
  /// What others than device plugins offer of its cards: "8 devices of the DRA driver gpu.nvidia.com".
  std::vector<text::phrase> claimed_devices{};
};

struct leader_view {
  std::string holder;                ///< empty: released
  std::chrono::seconds age{0};       ///< since the last renewal, by our clock
  std::chrono::seconds duration{0};  ///< how long it may be silent
  bool renewed = false;              ///< it was renewed while we looked: alive, whatever the clocks say
};

struct cluster_view {
  std::vector<std::string> missing_types;  ///< CRDs that are not there, by name
  std::optional<accelerator_policy> policy;
  std::vector<std::string> other_policies;
  std::vector<label_alias> declared;          ///< the labels that device configurations name
  std::vector<kube::daemon_set> daemon_sets;  ///< ours
  std::optional<leader_view> leader;
  text::phrase leader_unseen;  ///< why the lease could not be read; empty: reading it worked
  text::phrase ledger_unseen;  ///< why it is not known which cards are given out twice; empty: that is known
  text::phrase sets_unseen;    ///< why our DaemonSets could not be seen; empty: they were
  std::vector<std::string> unread_declarations{};  ///< ConfigMaps outside the namespace in which they are read
  std::vector<declarations::refused_declaration> refused_declarations{};
  text::phrase declarations_unseen{};  ///< why it is not known which are refused; empty: that is known
  text::phrase old_quotas_unseen;      ///< why kube-system/gpuquota could not be seen; empty: it was, or is not there
  text::phrase old_quotas_trouble;     ///< what in it cannot be read; empty: nothing
  text::phrase slices_unseen;          ///< why it is not known what DRA drivers offer; empty: that is known
  text::phrase labels_unseen;          ///< why the labels of device configurations could not be seen; empty: they were
  std::string
      view_api_problem{};  ///< why the console's aggregated API does not answer; empty: it does, or is not there
  bool whole = true;       ///< `nodes` are all that have or ask for a mode
  std::vector<api::accelerator_quota> quotas;
  std::vector<node_view> nodes;
};

enum class stage : std::uint8_t {
  types,
  policy,
  rules,
  daemon_sets,
  leader,
  scheduler,
  extender,  ///< a kube-scheduler was seen to ask it, or not
  callers,   ///< the certificates that kube-schedulers show it
  runtimes,  ///< `agent fix-runtime` where the policy asks for it
  health,    ///< are sick cards withdrawn?
  quotas,
  view_api,  ///< only where it does not answer
  // of a node
  label,
  node,
  module,
  enrolment,
  agent,  ///< only where its report is old
  preflight,
  module_label,
  plugin,
  other_plugins,
  resources,
  pods,
  taint,
  allocation,
};

enum class outcome : std::uint8_t {
  good,
  wrong,
  changing,  ///< a change goes on; the text has what it waits for
  warning,   ///< works, but not for everything
  unknown,   ///< could not be seen
  skipped,   ///< follows from something that is wrong, or has nothing to look at
};

/// Names are stable: `code` in JSON.
enum class stage_code : std::uint8_t {
  none,
  types_missing,
  policy_missing,
  policy_not_ready,
  policy_not_looked_at,
  policy_unknown,
  rules_not_enforced,
  declarations_elsewhere,
  declaration_refused,  ///< value: the ConfigMap, with its key
  daemon_set_missing,
  daemon_set_not_rolled_out,
  daemon_set_updating,  ///< all its pods are available, and some are not of the newest version
  leader_missing,
  leader_silent,
  mode_label_missing,   ///< value: the modes that are on
  mode_label_mistyped,  ///< value: the label as it is; other: as it should be
  unknown_mode,         ///< value: the label as it should be
  conflicting_labels,
  foreign_label,
  refused,
  node_not_ready,
  node_state_unseen,
  annotation_unreadable,  ///< value: the annotation; other: why
  left_out_by_product,    ///< value: the annotation; other: what it says
  node_cordoned,
  cards_cordoned,
  cordon_unknown,
  module_off,
  not_enrolled,
  enrolment_behind,
  waits_for_pods,
  change_under_way,
  stuck,
  rolled_back,
  agent_gone,
  preflight_failed,
  module_label_missing,
  module_label_other,
  plugin_missing,
  taint_not_tolerated,
  plugin_not_ready,
  foreign_plugin,
  nothing_advertised,
  no_cards,  ///< value: what the mode would offer; other: the mode
  cards_unhealthy,
  cards_sick,  ///< value: the cards; other: the number of an XID, where one has it
  cards_missing,
  shares_withheld,  ///< value: how many cards
  overbooked,
  card_given_twice,
  card_perhaps_given_twice,
  pods_not_counted,
  pods_on_missing_cards,  ///< their placement names a card that the node does not have
  pod_of_other_mode,
  taint_left,
  allocation_failed,
  allocation_sees_nothing,
  scheduler_not_ready,
  scheduler_asks_no_one,  ///< value: the mode; pods are sent to it, and no operator leads
  scheduler_leaving,
  control_plane_node_stopped,
  control_plane_node_rolled_back,
  control_plane_node_without_agent,
  control_plane_node_not_ready,
  caller_certificate_ends,
  runtimes_not_fixed,
  withdrawals_held_back,
  watches_refused,
  condition_unknown,
  quota_not_enforced,
  quota_counts_in_part,
  quota_not_looked_at,
  old_quotas_unreadable,
  scheduler_unseen,
  scheduler_looks_itself,
  scheduler_found_no_node,
  scheduler_did_not_ask,
  extender_unreachable,
  extender_untrusted,
  extender_refuses,
  test_pod_refused,
  view_api_silent,  ///< value: why
};
inline constexpr std::size_t code_count = static_cast<std::size_t>(stage_code::view_api_silent) + 1;

struct step {
  stage position{};
  outcome is{};
  stage_code cause = stage_code::none;  ///< of a wrong step or a warning
  std::string value, other;             ///< what the words are filled with
  std::optional<preflight_row> row;
  /// In Chinese where it is one of our sentences; empty: the same.
  std::string other_zh = {}, value_zh = {};
  kube::object_key pod = {};  ///< the test pod; its events say more
};

struct node_walk {
  std::string node;
  std::string mode;        ///< what it asks for, or what serves it; empty: none
  std::string current;     ///< in which it is; empty: none
  std::string requested;   ///< what its label or the policy asks for; empty: none
  std::string shown_mode;  ///< in which it is, for people: "pgpu -> vgpu" while it changes; where in none, `mode`
  std::vector<step> steps;
};

struct report {
  std::vector<step> cluster;
  std::vector<node_walk> nodes;
  /// Of one node: how much more is found in the cluster that does not concern it; nothing: all nodes were walked.
  std::optional<std::size_t> other_findings{};
};

report walk(const cluster_view& view);

/// The report of one node without what does not concern it, which is only counted. `all` is the walk of all nodes.
report about_node(report of_node, const report& all);

/// Steps that are wrong.
std::size_t problems(const report& report);
/// Is every step good, or has nothing to look at? A warning, a change and what could not be seen are not.
bool all_good(const report& report);

/// True where a step is wrong only because the operator has not looked at an object yet. That passes within moments.
bool unsettled(const report& report);

std::string_view to_string(stage stage) noexcept;
std::string_view name_of(stage stage, text::language language);
std::string_view to_string(outcome is) noexcept;
std::string_view to_string(stage_code code) noexcept;
std::string text_of(const step& step, text::language language);
/// What to do; empty where there is nothing to do. `node` fills the commands.
std::string remedy_of(const step& step, std::string_view node, text::language language);

/// What a pod holds of its node: the sum of main containers and sidecars, or the most that one init container needs
/// with the sidecars before it, where that is more.
kube::quantities asked_by(const kube::pod& pod);

}  // namespace reconcilers::verify
