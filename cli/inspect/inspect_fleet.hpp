#pragma once
// `quartermaster inspect nodes|modules|pods`: what a cluster administrator looks at every day, as rows (pure) and as
// text. Cards and what is free come from the node's labels and allocatable less what its pods ask for; from
// AcceleratorNode.status.cards where an agent reports them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/cluster/fleet.hpp"
#include "cli/cluster/placed_cards.hpp"
#include "cli/output/listing.hpp"

namespace cli {

struct resource_use {
  std::string name;
  std::int64_t capacity = 0, allocatable = 0;
  std::optional<std::int64_t> requested = 0;  ///< null: the pods there may not be seen
  /// What new pods can have of it at most: 0 on a node that takes none; else what its usable cards have left, as the
  /// ledger has them.
  std::int64_t most = INT64_MAX;
  /// For new pods, right now. Never less than nothing; null: not known.
  std::optional<std::int64_t> free() const {
    if (most == 0) return 0;
    if (!requested) return {};
    return std::clamp<std::int64_t>(allocatable - *requested, 0, most);
  }
};

struct node_row {
  std::string name, address, mode, requested, phase, reason, model, driver, cuda;
  text::phrase
      message;  ///< what the operator wrote; with words of its own where it can be made again from what is seen
  std::int64_t cards = 0, memory_mib = 0;  ///< memory of one card; 0: not known
  bool cards_known = false;
  std::string shown_mode;                    ///< `mode`, also of a change: "pgpu -> vgpu"
  std::optional<std::int64_t> unhealthy;     ///< cards; null: neither an agent nor a plugin has said
  bool are_looked_at = false;                ///< an agent, or the register of a plugin, says how each card is
  std::int64_t cordoned_cards = 0;           ///< all of a cordoned node, else those that its annotation names
  std::size_t withheld_cards = 0;            ///< usable, and the plugin would take another that is not
  std::vector<api::other_card> other_cards;  ///< of other vendors than NVIDIA
  std::vector<resource_use> resources;       ///< of its mode; next to cards of other vendors, all
  std::vector<std::string> waits_for;        ///< pods a change of mode waits for
  bool is_seen = true;                       ///< the Node; without the right to see it only what the operator wrote is
  kube::condition_status ready = kube::condition_status::unknown;  ///< the Node
  bool cordoned = false;
  bool is_report_old = false;             ///< what the agent reported is as it left it
  std::vector<api::check_row> preflight;  ///< as the agent judged it; empty: none reports
  std::optional<api::runtime_fix> fix;    ///< the last run of fix-runtime that the policy asked for
};

struct module_row {
  std::string name, title, daemon_set, image;
  text::phrase message;
  bool enabled = false;
  std::int64_t desired = 0, ready = 0, nodes = 0;
  std::vector<std::string> resources, label_values;
};

struct pod_row {
  kube::object_key key;
  std::string node, mode, phase, reason, isolation;
  kube::quantities requested;
  std::vector<std::string> cards;  ///< as the decision or the plugin wrote them; empty: no one wrote any
};

/// Nodes that have or ask for a mode, or have cards; in the order of their names. `only`: those, whatever they have.
std::vector<node_row> node_rows(const fleet& fleet, const std::vector<std::string>& only = {},
                                const kube::label_selector& selector = {});
std::vector<module_row> module_rows(const fleet& fleet);
/// Pods that ask for extended resources and are not finished; `ns` empty: of all namespaces.
std::vector<pod_row> pod_rows(const fleet& fleet, std::string_view ns = {}, const std::vector<std::string>& only = {});

struct look_options : listing_style {
  std::vector<std::string> only;  ///< nodes
  std::vector<std::string> pods;  ///< by name; none: all
  namespace_scope scope;          ///< of pods
  std::string operator_ns;        ///< empty: found by its lease
  std::string snapshot;           ///< a file in place of the cluster
  std::string compat;             ///< "cgpu": the table of kubectl-inspect-cgpu
  bool details = false;
  cluster_options cluster;
};

void print(const std::vector<node_row>& rows, const look_options& options, std::ostream& out);
void print(const std::vector<module_row>& rows, const look_options& options, std::ostream& out);
void print(const std::vector<pod_row>& rows, const look_options& options, std::ostream& out);

/// What --sort-by takes.
std::vector<std::string> node_headers();
std::vector<std::string> module_headers();
std::vector<std::string> pod_headers();

/// `kubectl inspect cgpu` (Alibaba's kubectl-inspect-cgpu, gpushare-device-plugin cmd/inspect) for scripts that read
/// it: memory of cards that are shared by memory, in GiB; of `details` also who has it. Columns, rule and rounding as
/// there; without its blanks at line ends, as its documentation prints it.
void print_cgpu(const fleet& fleet, const std::vector<std::string>& only, bool details, std::ostream& out);

/// What the rows are made from. `one_node`: of that one and its pods only; empty: of all.
picture_request fleet_parts(const look_options& options);
/// Of nodes also what the ledger is made from, where it may be seen.
picture_request node_parts(const look_options& options);

/// The exit codes of the verbs: 0 done, 1 failed.
int run_inspect_nodes(const look_options& options, std::ostream& out, std::ostream& err);
int run_inspect_modules(const look_options& options, std::ostream& out, std::ostream& err);
int run_inspect_pods(const look_options& options, std::ostream& out, std::ostream& err);

}  // namespace cli
