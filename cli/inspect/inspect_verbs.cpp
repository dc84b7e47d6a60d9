// Flags of inspect nodes, modules and pods, and the names the program may be called by.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/cluster/pod_target.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/completion/completion.hpp"
#include "cli/flags/flags.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "cli/inspect/inspect_watch.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::string_view nodes_example = R"(Examples:
  $ quartermaster inspect nodes
  NAME   MODE  PHASE  CARDS  FREE                                      SICK  CORDONED  REASON
  gpu-1  vgpu  Ready  4      vcuda-core 380/400, vcuda-memory 232/240  0     0         Enrolled
  $ quartermaster inspect nodes --compat cgpu      # also: kubectl inspect cgpu, where this program is installed as
                                                   # kubectl-inspect-cgpu
Nodes that have cards, or have or ask for a mode. FREE is what a new pod can get right now:
allocatable less what pods on the node ask for; nothing on a node that is cordoned, not ready or changes its mode, and
nothing of SICK and CORDONED cards.
--watch draws the table again on a terminal; elsewhere it prints the rows that changed.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view modules_example = R"(Example:
  $ quartermaster inspect modules
  NAME  ENABLED  READY  NODES  RESOURCES       MESSAGE
  pgpu  yes      3/3    3      nvidia.com/gpu  -

READY: plugin pods, ready of desired. NODES: those enrolled by our label. -o wide adds label values, DaemonSet and image.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view pods_example = R"(Example:
  $ quartermaster inspect pods -n team
  NAMESPACE  NAME   NODE   MODE  PHASE    ASKS                            CARDS
  team       infer  gpu-1  vgpu  Running  vcuda-core 20, vcuda-memory 8   gpu-1/0

Pods that ask for an extended resource and are not finished. CARDS as the scheduler's or the plugin's annotation says.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

enum class subject : std::uint8_t { nodes, modules, pods };

/// What a person sees without the right to read all: of nodes what the roles of all people show, and pods of one
/// namespace.
picture_request own_parts(const look_options& options, subject about) {
  picture_request out{
      {part::types},
      {part::policies, part::accelerator_nodes, part::nodes, part::daemon_sets, part::device_labels, part::lease},
      options.operator_ns};
  if (options.only.size() == 1) out.node = options.only.front();
  if (about == subject::pods) out.needed.insert(part::pods), out.pods_in = options.scope.ns;
  return out;
}

bool is_unseen(const picture& picture, part part) { return !picture.reason_unseen(part).empty(); }

/// A row of a Node that may not be seen is made of what the operator wrote of it.
void add_unseen_nodes(picture& picture) {
  if (!is_unseen(picture, part::nodes)) return;
  for (const auto& entry : picture.cards.all()) {
    kube::node node;
    node.key = entry.key;
    picture.nodes.put(std::move(node));
  }
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

/// Of the console's server; without a reply where it is not there, or has no such answer.
view_outcome viewed(const look_options& options, subject about) {
  if (about == subject::modules || !options.compat.empty()) return {};
  if (about == subject::nodes) return view_reply_of(options.cluster, nodes_question(options), options);
  view_question question{options.scope.ns, "podviews"};
  if (!options.pods.empty()) question.more.emplace_back("names", joined_names(options.pods));
  return view_reply_of(options.cluster, question, options);
}

/// Nothing: the picture has been read. Otherwise what the console's server says.
using fetched = std::expected<std::optional<view_reply>, text::phrase>;

/// With fewer rights less is seen, and one line names it.
fetched fetch(const look_options& options, picture& picture, std::ostream& err, subject about) {
  auto request = about == subject::nodes ? node_parts(options) : fleet_parts(options);
  if (about == subject::pods) request.pods_in = options.scope.ns;
  auto read = gather(options.cluster, options.snapshot, picture, request);
  const bool has_less = about == subject::nodes || (about == subject::pods && !options.scope.ns.empty());
  if (!read && read.error().key == "transport.forbidden" && has_less) {
    if (auto outcome = viewed(options, about); outcome.reply) return std::move(outcome.reply);
    const auto seen = gather(options.cluster, options.snapshot, picture, own_parts(options, about));
    const bool sees_none =
        about == subject::nodes && is_unseen(picture, part::nodes) && is_unseen(picture, part::accelerator_nodes);
    if (!seen || sees_none)
      return std::unexpected(about == subject::nodes ? where_everyone_suffices(std::move(read.error()))
                                                     : where_view_suffices(std::move(read.error()), options.scope.ns));
    if (about == subject::nodes) picture.unseen.emplace(part::pods, read.error());
    add_unseen_nodes(picture);
    failed({about == subject::pods ? "inspect.own_pods" : "inspect.own_nodes", {{"reason", read.error()}}},
           bilingual(options.language).locale(), err);
  } else if (!read) {
    return std::unexpected(read.error());
  } else if (about == subject::nodes && !picture.book && sees_ledger(picture)) {
    picture.finish();
  }
  for (const auto& name : options.only)
    if (!picture.nodes.find({{}, name}))
      return std::unexpected(text::phrase{"transport.no_node", {{"node", text::shown(name)}}});
  return std::nullopt;
}

/// Tables of a cluster without the chart are empty and look like those of one where nothing is switched on.
void note_if_not_installed(const picture& picture, const look_options& options, std::ostream& err) {
  if (picture.knows(kube::resources::accelerator_policies)) return;
  failed({"transport.not_installed"}, bilingual(options.language).locale(), err);
}

CLI::App* add(CLI::App& inspect, const char* name, const char* description, std::string_view example,
              std::vector<std::string> headers, look_options& options) {
  auto* verb = add_verb(inspect, name, description);
  verb->alias(std::string(name).substr(0, std::strlen(name) - 1));  // kubectl takes the singular too
  add_listing_options(*verb, options, std::move(headers));
  add_option(*verb, "--snapshot", options.snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*verb, options.cluster);
  verb->footer(std::string(example));
  return verb;
}

}  // namespace

picture_request fleet_parts(const look_options& options) {
  picture_request out{
      {part::types, part::policies, part::accelerator_nodes, part::nodes, part::daemon_sets, part::pods},
      {part::device_labels, part::lease},
      options.operator_ns};
  if (options.only.size() == 1) out.node = options.only.front();
  return out;
}

view_question nodes_question(const look_options& options) {
  view_question out{namespace_of(options.cluster), "nodeviews"};
  if (!options.only.empty()) out.more.emplace_back("names", joined_names(options.only));
  return out;
}

picture_request node_parts(const look_options& options) {
  auto out = fleet_parts(options);
  out.wished.insert({part::rules, part::quotas, part::old_quotas});
  return out;
}

int run_inspect_nodes(const look_options& options, std::ostream& out, std::ostream& err) {
  picture picture;
  const auto read = fetch(options, picture, err, subject::nodes);
  if (!read) return failed(read.error(), bilingual(options.language).locale(), err);
  if (*read) return print(**read, bilingual(options.language).locale(), out, err);
  note_if_not_installed(picture, options, err);
  const fleet found(picture);
  if (options.compat == "cgpu")
    print_cgpu(found, options.only, options.details, out);
  else
    print(node_rows(found, options.only, node_selector(options)), options, out);
  return 0;
}

int run_inspect_modules(const look_options& options, std::ostream& out, std::ostream& err) {
  picture picture;
  const auto read = fetch(options, picture, err, subject::modules);
  if (!read) return failed(read.error(), bilingual(options.language).locale(), err);
  note_if_not_installed(picture, options, err);
  const fleet found(picture);
  print(module_rows(found), options, out);
  return 0;
}

int run_inspect_pods(const look_options& options, std::ostream& out, std::ostream& err) {
  picture picture;
  const auto read = fetch(options, picture, err, subject::pods);
  if (!read && read.error().key == "transport.forbidden" && options.scope.is_open()) {
    auto own = options;
    own.scope.ns = namespace_of(options.cluster);
    std::ostringstream rows;
    const int code = run_inspect_pods(own, rows, err);
    if (code == 0) failed(own_namespace(own.scope.ns), bilingual(options.language).locale(), err);
    out << rows.str();
    return code;
  }
  if (!read) return failed(read.error(), bilingual(options.language).locale(), err);
  if (*read) return print(**read, bilingual(options.language).locale(), out, err);
  note_if_not_installed(picture, options, err);
  const fleet found(picture);
  const auto rows = pod_rows(found, options.scope.ns, options.pods);
  for (const auto& name : options.pods)
    if (std::ranges::find(rows, name, [](const pod_row& row) { return row.key.name; }) == rows.end())
      return failed({options.scope.ns.empty() ? "inspect.no_pod_of_name" : "inspect.no_pod_of_name_in",
                     {{"pod", text::shown(name)}, {"namespace", options.scope.ns}}},
                    bilingual(options.language).locale(), err);
  print(rows, options, out);
  return 0;
}

std::vector<std::string> command_of(const std::string& called, std::vector<std::string> words) {
  const auto name = called.substr(called.rfind('/') + 1);
  std::vector<std::string> verb;
  if (name == "kubectl-inspect-cgpu") verb = {"inspect", "nodes", "--compat", "cgpu"};
  if (name == "kubectl_complete-quartermaster") verb = {completion_request};
  words.insert(words.begin(), verb.begin(), verb.end());
  return words;
}

void add_inspect_fleet(CLI::App& inspect, int& rc) {
  const auto of_nodes = std::make_shared<look_options>();
  auto* nodes = add(inspect, "nodes", "Nodes: mode, phase, cards, what is free, and why", nodes_example, node_headers(),
                    *of_nodes);
  add_nodes(*nodes, of_nodes->only, "Only these nodes");
  add_operator_namespace(*nodes, of_nodes->operator_ns);
  add_unused_namespace(*nodes);
  add_node_selector(*nodes, *of_nodes);
  auto* compat = add_option(*nodes, "--compat", of_nodes->compat, "cgpu: the table of kubectl inspect cgpu")
                     ->check(choice({"cgpu"}));
  add_flag(*nodes, "-d", of_nodes->details, "With --compat cgpu: the pods that have the memory too")->needs(compat);
  const auto watches = std::make_shared<bool>(false);
  add_flag(*nodes, "-w,--watch", *watches, "Print the table again whenever it has changed, until Ctrl-C")
      ->excludes(compat);
  nodes->callback([of_nodes, watches, &rc] {
    const auto locale = bilingual(of_nodes->language).locale();
    if (*watches && !of_nodes->snapshot.empty())
      rc = failed({"usage.excludes", {{"name", "--watch"}, {"value", "--snapshot"}}}, locale, std::cerr, 2);
    else if (!*watches)
      rc = run_inspect_nodes(*of_nodes, std::cout, std::cerr);
    else if (of_nodes->as_data() || of_nodes->output == "name")
      rc = failed({"usage.watch_prints_tables", {{"value", of_nodes->output}}}, locale, std::cerr, 2);
    else
      rc = run_watch_nodes(*of_nodes, isatty(STDOUT_FILENO) != 0, std::cout, std::cerr);
  });

  const auto of_modules = std::make_shared<look_options>();
  auto* modules = add(inspect, "modules", "Modules: on or off, how far, what they offer", modules_example,
                      module_headers(), *of_modules);
  add_operator_namespace(*modules, of_modules->operator_ns);
  add_unused_namespace(*modules);
  modules->callback([of_modules, &rc] { rc = run_inspect_modules(*of_modules, std::cout, std::cerr); });

  const auto of_pods = std::make_shared<look_options>();
  auto* pods =
      add(inspect, "pods", "Pods that ask for cards, and which they got", pods_example, pod_headers(), *of_pods);
  add_option(*pods, "pod", of_pods->pods, "Only pods of these names: NAME, or NAMESPACE/NAME");
  add_namespace_scope(*pods, of_pods->scope, "Only pods of this namespace; without it all that you may see");
  pods->callback([of_pods, &rc] {
    const auto ns = plain_pod_names(of_pods->pods, of_pods->scope.ns);
    if (!ns) {
      rc = failed(ns.error(), bilingual(of_pods->language).locale(), std::cerr, 2);
      return;
    }
    of_pods->scope.ns = *ns;
    rc = run_inspect_pods(*of_pods, std::cout, std::cerr);
  });
}

}  // namespace cli
