#include "cli/explain/explain_pod.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/engine_words.hpp"
#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "cli/cluster/cluster.hpp"
#include "cli/cluster/declaration_registry.hpp"
#include "cli/cluster/pod_target.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/explain/made_pods.hpp"
#include "cli/explain/node_rules.hpp"
#include "cli/explain/obstacles.hpp"
#include "cli/explain/open_nodes.hpp"
#include "cli/explain/other_plugins.hpp"
#include "cli/explain/own_view.hpp"
#include "cli/explain/proposals.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/flags/flags.hpp"
#include "cli/lint/unserved.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/listing.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "controller/coded_message.hpp"
#include "controller/conditions.hpp"
#include "kube/config.hpp"
#include "kube/projections/from_json.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "text/list.hpp"
#include "text/quotation.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using nlohmann::ordered_json;
using text::shown;

/// Bytes of a line that names cards, as an agent reports them.
constexpr std::size_t most_shown = 2000;

ordered_json as_json(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     const ext::pod_request& request) {
  ordered_json out{{"nodes", explanation.nodes},
                   {"fitting", explanation.fitting},
                   {"text", words_of(explanation, nodes, request, text::language::en)}};
  out["causes"] = ordered_json::array();
  for (const auto& entry : explanation.causes) {
    ordered_json cause{{"reason", api::words_of(entry, text::language::en)}, {"nodes", entry.nodes}};
    if (entry.container >= 0 && static_cast<std::size_t>(entry.container) < request.names().size())
      cause["container"] = request.names()[static_cast<std::size_t>(entry.container)]->name;
    if (!entry.key.empty()) cause["key"] = entry.key;
    if (entry.too_small) cause.update({{"tooSmall", true}, {"needed", entry.needed}, {"largest", entry.available}});
    out["causes"].push_back(std::move(cause));
  }
  out["nearest"] = explanation.nearest ? ordered_json(nodes[*explanation.nearest].inventory->name) : ordered_json();
  out["changeOfPod"] = explanation.of_pod
                           ? ordered_json(words_of(*explanation.of_pod, nodes, request, text::language::en))
                           : ordered_json();
  out["changeOfNode"] = explanation.of_node
                            ? ordered_json(words_of(*explanation.of_node, nodes, request, text::language::en))
                            : ordered_json();
  return out;
}

/// A sentence of the answer, on a line of its own.
void print_line(std::string_view key, std::initializer_list<text::parameter> parameters, const bilingual& say,
                std::ostream& out) {
  out << say.message("explain." + std::string(key), parameters) << "\n";
}

/// A reason, and of how many nodes.
struct reason_row {
  std::size_t nodes;
  std::string reason, object;
};
const listing<reason_row>& reasons_listing() {
  static const listing<reason_row> out{
      .name = "reasons",
      .columns = {{"nodes", [](const reason_row& row, const bilingual&) { return std::to_string(row.nodes); }},
                  {"reason", [](const reason_row& row, const bilingual&) { return row.reason; }},
                  {"object", [](const reason_row& row, const bilingual&) { return row.object; }}},
      .json = {},
      .object = {}};
  return out;
}

struct node_reason {
  std::string node, reason;
};
const listing<node_reason>& node_reasons_listing() {
  static const listing<node_reason> out{
      .name = "nodes",
      .columns = {{"node", [](const node_reason& row, const bilingual&) { return row.node; }},
                  {"reason", [](const node_reason& row, const bilingual&) { return row.reason; }}},
      .json = {},
      .object = {}};
  return out;
}

const listing<held_row>& held_listing() {
  static const listing<held_row> out{
      .name = "holds",
      .columns = {{"container", [](const held_row& row, const bilingual&) { return row.container; }},
                  {"card", [](const held_row& row, const bilingual&) { return shown(row.card, most_shown); }},
                  {"amount", [](const held_row& row, const bilingual&) { return row.amount; }}},
      .json = {},
      .object = {}};
  return out;
}

/// A table within the answer.
template <class Row>
void print_rows(const listing<Row>& listing, const std::vector<Row>& rows, const bilingual& say, std::ostream& out) {
  print_table(listing, rows, listing_style("table", say.zh ? "zh" : "en"), out);
}

void print_proposals(const std::vector<proposal>& proposals, const bilingual& say, std::ostream& out) {
  for (const auto& entry : proposals) {
    out << words_of(line_of(entry), say.locale()) << "\n";
    if (!entry.command.empty()) out << "  " << entry.command << "\n";
  }
}

ordered_json as_json(const std::vector<proposal>& proposals, text::language locale) {
  ordered_json out = ordered_json::array();
  for (const auto& entry : proposals)
    out.push_back({{"kind", to_string(entry.action)},
                   {"text", words_of(entry.text, locale)},
                   {"command", entry.command.empty() ? ordered_json() : ordered_json(entry.command)}});
  return out;
}

/// Why a pod with cards is refused whatever it tolerates, and where to look.
void print_changing(std::span<const quota::node_view> nodes, const bilingual& say, std::ostream& out) {
  std::vector<std::string> names;
  for (const auto& node : nodes)
    if (node.inventory->changes_mode) names.push_back(node.inventory->name);
  if (names.empty()) return;
  print_line(names.size() == 1 ? "changing.one" : "changing.many",
             {{"list", some_of(names, 3, say.locale())}, {"first", names.front()}}, say, out);
}

void print(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
           const ext::pod_request& request, const picture& picture, const std::vector<std::string>& unserved,
           const std::vector<proposal>& proposals, const bilingual& say, std::ostream& out) {
  std::vector<reason_row> rows;
  std::map<std::string, std::size_t> refusals;
  for (const auto& node : nodes)
    if (auto text = refusal_of(node, request, picture, say.locale()); !text.empty()) ++refusals[std::move(text)];
  quota::demand needs;
  const bool has_advice = std::ranges::any_of(nodes, [&](const auto& node) {  // "add ... to the same container"
    const auto no = quota::read(request.containers(), node.inventory->serves, needs);
    return no && no->kind != quota::wrong::not_served;
  });
  for (const auto& [text, count] : refusals) rows.push_back({count, text, ""});
  const auto containers = ext::names_of_containers(request);
  for (const auto& cause : explanation.causes) {
    const bool is_refused = cause.code == quota::reason::refused || cause.code == quota::reason::not_offered;
    if (is_refused && !refusals.empty()) continue;
    rows.push_back({cause.nodes, std::string(api::words_of(cause, say.locale())),
                    api::object_of(cause, containers, say.locale())});
  }
  print_rows(reasons_listing(), rows, say, out);
  if (explanation.nearest) print_line("nearest", {{"name", nodes[*explanation.nearest].inventory->name}}, say, out);
  print_proposals(proposals, say, out);
  for (const auto& text : unserved) out << text << "\n";
  print_changing(nodes, say, out);
  const bool changes = std::ranges::any_of(nodes, [](const auto& node) { return node.inventory->changes_mode; });
  if (!changes && proposals.empty() && unserved.empty() && !has_advice) print_line("no_change", {}, say, out);
}

/// Of the nodes that fit, those where a nominated pod goes before this one: "node a is kept for lab/urgent".
void add_kept_nodes(const kube::pod& pod, const picture& picture, text::language locale, others names,
                    waiting_answer& answer) {
  const auto& nodes = answer.nodes;
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(answer.request.containers(), nodes, found, answer.request.only());
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    ++fitting;
    if (const auto* other = picture.book->goes_before(pod, answer.request, nodes[i].inventory->name))
      answer.kept.push_back(names == others::unnamed && other->key.ns != pod.key.ns
                                ? text::message("explain.kept_for_other", locale, {{"node", nodes[i].inventory->name}})
                                : text::message("explain.kept", locale,
                                                {{"node", nodes[i].inventory->name}, {"pod", other->key.to_string()}}));
  }
  answer.is_kept_everywhere = fitting > 0 && answer.kept.size() == fitting;
}

/// Every node and what it says, for -o wide.
void print_nodes(std::span<const quota::node_view> nodes, const ext::pod_request& request, const picture& picture,
                 const bilingual& say, std::ostream& out) {
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(request.containers(), nodes, found, request.only());
  std::vector<node_reason> rows;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto text = refusal_of(nodes[i], request, picture, say.locale());
    if (text.empty()) text = api::words_of(found[i], say.locale());
    rows.push_back({nodes[i].inventory->name, std::move(text)});
  }
  print_rows(node_reasons_listing(), rows, say, out);
}

/// "2 other nodes are left out: cordoned, or without cards that someone serves (a, b)."
void print_left_out(std::span<const quota::node_view> nodes, const picture& picture, const bilingual& say,
                    std::ostream& out) {
  std::set<std::string> names;
  for (const auto& node : picture.nodes.all()) names.insert(node.key.name);
  for (const auto& node : nodes) names.erase(node.inventory->name);
  if (names.empty()) return;
  print_line(
      names.size() == 1 ? "left_out.one" : "left_out.many",
      {{"number", std::to_string(names.size())}, {"list", some_of({names.begin(), names.end()}, 3, say.locale())}}, say,
      out);
}

/// Those of the nodes of which the cards are what an agent that is gone reported last.
std::vector<std::string> old_reports(const std::vector<std::string>& nodes, const picture& picture) {
  std::vector<std::string> out;
  for (const auto& node : nodes)
    if (const auto* report = picture.cards.find({{}, node}); report && report->is_report_old()) out.push_back(node);
  return out;
}

std::vector<std::string> old_reports(std::span<const quota::node_view> nodes, const picture& picture) {
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node.inventory->name);
  return old_reports(names, picture);
}

void say_old(const std::vector<std::string>& nodes, const bilingual& say, std::ostream& out) {
  if (nodes.empty()) return;
  print_line("old_report", {{"list", some_of(nodes, 8, say.locale())}}, say, out);
}

/// The sentence about a card with more given out than it has.
std::vector<std::string> overfull(const quota::holding& held, const quota::node_view& node, const bilingual& say) {
  std::vector<std::string> out;
  const auto add = [&](const char* key, const std::string& card, std::int64_t amount, std::int64_t all) {
    out.push_back(say.message(key, {{"card", card}, {"amount", std::to_string(amount)}, {"all", std::to_string(all)}}));
  };
  for (std::size_t i = 0; i < std::min(node.used.size(), node.inventory->cards.size()); ++i) {
    const auto& card = node.inventory->cards[i];
    const auto& used = node.used[i];
    if (std::ranges::find(held.grants, card.uuid, &quota::grant::card) == held.grants.end()) continue;
    const auto whole_mib = used.wholes * card.memory_mib, memory = used.memory_mib + whole_mib;
    const auto cores = used.cores + used.wholes * quota::whole_card;
    if (memory > card.lendable_mib() && card.memory_mib > 0)
      add("explain.over_memory", card.uuid, memory, card.lendable_mib());
    else if (cores > quota::whole_card)
      add("explain.over_cores", card.uuid, cores, quota::whole_card);
  }
  return out;
}

void print_obstacles(const std::vector<obstacle>& obstacles, std::ostream& out) {
  for (const auto& entry : obstacles) out << entry.text << "\n";
}
ordered_json as_json(const std::vector<obstacle>& obstacles) {
  ordered_json out = ordered_json::array();
  for (const auto& entry : obstacles) out.push_back({{"code", entry.code}, {"text", entry.text}});
  return out;
}

void print_closed(const std::vector<closed_nodes>& closed, const bilingual& say, std::ostream& out) {
  for (const auto& [reason, count] : closed)
    print_line("closed",
               {{"nodes", text::counted(count, "explain.nodes", say.locale())},
                {"text", shown(words_of(reason, say.locale()), most_shown)}},
               say, out);
}
ordered_json as_json(const std::vector<closed_nodes>& closed, text::language locale) {
  auto out = ordered_json::object();
  for (const auto& [reason, count] : closed) out[words_of(reason, locale)] = count;
  return out;
}

/// What keeps a pod back. Of one whose whole object was not read: as far as the projection has it, which of one that
/// waits is nothing.
std::vector<obstacle> known_obstacles(const kube::pod& pod, const std::optional<kube::described_pod>& whole,
                                      const picture& picture, const claim_states& claims, const bilingual& say) {
  const bool waits = pod.node_name.empty() && !pod.finished();
  auto first = waits ? missing_operator(pod, picture, say.locale()) : std::vector<obstacle>();
  if (whole) {
    auto all = obstacles_of(*whole, asking_scheduler(picture), say.locale(), claims);
    if (!waits) return all;
    auto more = devices_of_classes(*whole, resources_of(picture), say.locale());
    std::ranges::move(unmet_selectors(*whole, picture, say.locale()), std::back_inserter(more));
    const auto decisive = std::ranges::find(all, false, &obstacle::decisive);
    all.insert(decisive, more.begin(), more.end());
    all.insert(all.begin(), first.begin(), first.end());
    return all;
  }
  if (waits) {
    first.push_back({"not_read", say.message("explain.pod_not_read"), false});
    return first;
  }
  kube::described_pod kept{pod};
  kept.status.reason = pod.reason;
  return obstacles_of(kept, asking_scheduler(picture), say.locale());
}

/// What no node takes, where no node of the cluster says so.
void add_faults(const waiting_answer& answer, text::language locale, std::vector<obstacle>& obstacles) {
  const auto faults = fault_obstacles(answer.reason.faults, answer.request, locale);
  obstacles.insert(obstacles.begin(), faults.begin(), faults.end());
}

/// A pod that asks for no card, but for what other device plugins offer.
void add_other_plugins(const kube::pod& pod, const known_resources& known, const node_rules* rules,
                       const picture& picture, const bilingual& say, std::vector<obstacle>& obstacles) {
  const auto amounts = foreign_amounts(pod, known, picture);
  if (amounts.empty()) return;
  const auto fit = fit_of(picture, foreign_room(picture), rules, amounts, say.locale());
  const auto list = keys_in(amounts, say.locale());
  const auto nodes = text::counted(fit.nodes, "explain.nodes", say.locale());
  const auto refusals = fit.refusals.empty() ? say.message("explain.simulate.no_open_node") : fit.refusals;
  const obstacle made{"other_plugin",
                      fit.nodes > 0
                          ? say.message("explain.obstacle.other_plugin_has", {{"list", list}, {"nodes", nodes}})
                          : say.message("explain.obstacle.other_plugin", {{"list", list}, {"text", refusals}}),
                      fit.nodes == 0};
  obstacles.insert(made.decisive ? obstacles.begin() : obstacles.end(), made);
}

constexpr std::string_view no_source = "nothing of ours";

/// A waiting pod that asks for keys no one knows (`unknown` is the sentence), or for nothing that is managed here.
int explain_without_cards(const kube::pod& pod, const std::string& unknown, const std::vector<obstacle>& obstacles,
                          const report_style& style, std::ostream& out) {
  const bilingual say(style.language);
  const auto name = pod.key.to_string();
  const bool held_back = !obstacles.empty() && obstacles.front().decisive;
  const int rc = !unknown.empty() || held_back ? 3 : 0;
  if (style.as_data()) {
    ordered_json doc{{"pod", name}};
    if (unknown.empty())
      doc.update({{"waits", false}, {"source", no_source}});
    else
      doc.update({{"node", nullptr}, {"waits", true}, {"unknown", unknown}});
    doc["obstacles"] = as_json(obstacles);
    printed_as_data(doc, style.output, out);
    return rc;
  }
  if (unknown.empty())
    print_line("no_card", {{"pod", name}, {"command", "kubectl describe pod -n " + pod.key.ns + " " + pod.key.name}},
               say, out);
  else
    print_line("fits_nowhere", {{"pod", name}, {"text", unknown}}, say, out);
  print_obstacles(obstacles, out);
  return rc;
}

/// A pod that has ended, or is deleted before it had a node: it waits for nothing.
int explain_over(const kube::pod& pod, std::vector<obstacle> obstacles, const report_style& style, std::ostream& out) {
  const bilingual say(style.language);
  if (!pod.finished()) std::erase_if(obstacles, [](const obstacle& entry) { return entry.code != "deleted"; });
  const int rc = pod.phase == kube::pod_phase::failed || !pod.finished() ? 3 : 0;
  if (style.as_data()) {
    printed_as_data({{"pod", pod.key.to_string()},
                     {"node", pod.node_name.empty() ? ordered_json() : ordered_json(pod.node_name)},
                     {"waits", false},
                     {"source", no_source},
                     {"obstacles", as_json(obstacles)}},
                    style.output, out);
    return rc;
  }
  const auto* key = !pod.finished() ? "leaves" : pod.node_name.empty() ? "ended" : "ended_on";
  print_line(key, {{"pod", pod.key.to_string()}, {"node", pod.node_name}}, say, out);
  print_obstacles(obstacles, out);
  return rc;
}

std::vector<std::string> why_these(const quota::holding& held, const quota::node_view& node,
                                   const ext::pod_request& request, text::language locale) {
  std::vector<std::string> out;
  for (const auto& reason : ext::why_these(held, node, request)) out.push_back(words_of(reason, locale));
  return out;
}

int explain_bound(const kube::pod& pod, const picture& picture, const std::vector<obstacle>& obstacles,
                  const report_style& style, std::ostream& out) {
  const bilingual say(style.language);
  const ext::pod_request request(pod, picture.book->keys());
  const auto* held = picture.book->book().find(pod.id.to_string());
  const auto view = picture.book->book().view(pod.node_name);
  std::string_view source = no_source;
  if (held && view) source = ext::to_string(ext::held_by(pod, *view, request).origin);
  const auto reasons = held && view && source != "guessed" ? why_these(held->held, *view, request, say.locale())
                                                           : std::vector<std::string>();
  auto unread = held || !view ? std::string() : words_of(miscounted(*view, request), say.locale());
  if (!held && view && unread.empty()) unread = refusal_of(*view, request, picture, say.locale());
  const auto too_full = held && view ? overfull(held->held, *view, say) : std::vector<std::string>();
  const auto old = held ? old_reports(std::vector{pod.node_name}, picture) : std::vector<std::string>();
  if (style.as_data()) {
    ordered_json doc{{"pod", pod.key.to_string()}, {"node", pod.node_name}, {"waits", false}, {"source", source}};
    if (!unread.empty()) doc["unread"] = unread;
    doc["holds"] = held ? json_of(held->held, request) : ordered_json::array();
    doc["why"] = reasons;
    doc["overGiven"] = too_full;
    doc["oldReports"] = old;
    doc["obstacles"] = as_json(obstacles);
    printed_as_data(doc, style.output, out);
    return 0;
  }
  const auto name = pod.key.to_string();
  if (!obstacles.empty()) print_line("first", {{"pod", name}, {"node", pod.node_name}}, say, out);
  print_obstacles(obstacles, out);
  if (!held) {
    print_line("bound_without", {{"pod", name}, {"node", pod.node_name}}, say, out);
    if (!unread.empty()) print_line("not_counted", {{"text", unread}}, say, out);
    return 0;
  }
  print_line(source == "guessed" ? "bound_guessed" : "bound",
             {{"pod", name},
              {"node", pod.node_name},
              {"scheduler", pod.scheduler_name.empty() ? std::string("default-scheduler") : pod.scheduler_name}},
             say, out);
  print_rows(held_listing(), rows_of(held->held, request, say.locale()), say, out);
  for (const auto& text : reasons) print_line("these", {{"text", shown(text, most_shown)}}, say, out);
  for (const auto& text : too_full) print_line("over_given", {{"text", shown(text, most_shown)}}, say, out);
  say_old(old, say, out);
  return 0;
}

constexpr std::string_view pod_example = R"(Examples:
  $ quartermaster explain pod trainer -n lab
  $ quartermaster explain pod lab/trainer -o wide    # with every node
  $ quartermaster inspect --save now.json && quartermaster explain pod lab/trainer --snapshot now.json

Judged are cards, declared keys, amounts that other device plugins offer, limits of the namespace, scheduling gates, the
scheduler's name, nodeSelector, required node affinity and taints; not CPU, memory, ports, pod affinity and topology
spread (kubectl describe pod). A file of
--snapshot that an older version saved has no gates and selectors, and the answer says so.
Exit codes: 0 it is bound, or would fit; 1 there is no such pod, or the cluster cannot be read; 2 wrong usage;
3 it fits nowhere, is held back, or has failed)";

/// The commands that show what limits a namespace.
std::string where_limits_are(const picture& picture, const std::string& ns) {
  std::string out;
  if (std::ranges::any_of(picture.quotas.all(), [&](const auto& entry) { return entry.key.ns == ns; }))
    out += "  kubectl get acceleratorquota -n " + ns + "\n";
  for (const auto& entry : picture.old_quotas.all())
    if (entry.data.value_or(api::gpu_quota_key, "").contains("\"" + ns + "\""))
      out += "  kubectl get configmap -n " + entry.key.ns + " " + entry.key.name + " -o yaml\n";
  return out;
}

}  // namespace

std::string_view asking_scheduler(const picture& picture) {
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  const auto mode = policy ? std::string_view(policy->scheduler.mode) : std::string_view();
  return mode == "Dedicated" ? api::names::scheduler_name : mode == "StaticPod" ? "default-scheduler" : "";
}

waiting_answer why_waiting(const picture& picture, const known_resources& known, const kube::pod& pod,
                           text::language locale, others names) {
  waiting_answer out{unknown_keys(pod, known, locale), {pod, picture.book->keys()}, {}, {}, {}, {}, {}, false};
  if (!out.unknown.empty() || out.request.nothing()) return out;
  out.nodes = ext::candidates(picture.book->book(), picture.nodes);
  out.reason = quota::explain(out.request.containers(), out.nodes, out.request.only());
  out.limit = ext::limit_of(*picture.book, pod, out.request, out.nodes);
  add_kept_nodes(pod, picture, locale, names, out);
  if (out.reason.fitting == 0) out.unserved = unserved_resources(picture, known, pod, locale);
  return out;
}

std::optional<node_refusal> refusal_by(const quota::node_view& node, const ext::pod_request& request,
                                       const picture& picture, text::language locale) {
  if (node.inventory->changes_mode) return {};  // what it does not serve now it may serve in a moment
  quota::demand needs;
  const auto no = quota::read(request.containers(), node.inventory->serves, needs);
  if (!no) return {};
  if (no->kind != quota::wrong::not_served)
    return node_refusal{.text = api::words_of(*no, locale), .mode = {}, .key = {}};
  const auto* known = picture.nodes.find({{}, node.inventory->name});
  const auto module = known ? known->labels.value_or(api::names::module_label, "") : std::string_view();
  return node_refusal{.text = text::message(module.empty() ? "explain.mode.none" : "explain.mode.one", locale,
                                            {{"mode", std::string(module)}, {"key", std::string(no->key)}}),
                      .mode = std::string(module),
                      .key = std::string(no->key)};
}

std::string refusal_of(const quota::node_view& node, const ext::pod_request& request, const picture& picture,
                       text::language locale) {
  const auto refusal = refusal_by(node, request, picture, locale);
  return refusal ? refusal->text : std::string();
}

void say_doubts(const picture& picture, const std::set<std::string>& namespaces, text::language locale,
                std::ostream& err) {
  for (const auto& entry : picture.quotas.all()) {
    if (!namespaces.contains(entry.key.ns)) continue;
    const auto status = nlohmann::json::parse(entry.status, nullptr, false);
    if (!status.is_object() || !status.contains("conditions")) continue;
    const auto* enforced = controller::find_condition(status["conditions"], reconcilers::enforced_condition);
    if (enforced && enforced->value("status", "") == "False")
      err << "quartermaster: "
          << text::message("explain.doubt.quota", locale,
                           {{"name", entry.key.to_string()},
                            {"text", words_of(controller::quoted_message_of(*enforced), locale)}})
          << "\n";
  }
  if (const auto reason = picture.reason_unseen(part::old_quotas); !reason.empty())
    err << "quartermaster: "
        << text::message("explain.doubt.old_quotas_unseen", locale, {{"text", words_of(reason, locale)}}) << "\n";
  if (!picture.book->trouble().empty())
    err << "quartermaster: "
        << text::message("explain.doubt.old_quotas", locale,
                         {{"text", words_of(text::quotation_of(picture.book->trouble()), locale)}})
        << "\n";
}

namespace {

/// The reasons of nodes that take no such pod at all, each once.
std::set<std::string> refusals_of(std::span<const quota::node_view> nodes, const ext::pod_request& request,
                                  const picture& picture, text::language locale) {
  std::set<std::string> out;
  for (const auto& node : nodes)
    if (auto text = refusal_of(node, request, picture, locale); !text.empty()) out.insert(std::move(text));
  return out;
}

/// What a pod waits for whose cards fit.
void print_other_wait(const std::string& refused, const std::string& describe, const bilingual& say,
                      std::ostream& out) {
  if (refused.empty())
    print_line("not_cards", {{"command", describe}}, say, out);
  else
    print_line("refused_before", {{"key", refused}, {"command", describe}}, say, out);
}

}  // namespace

int explain_pod(const picture& picture, const kube::object_key& key, const report_style& style, std::ostream& out,
                std::ostream& err, const std::optional<kube::described_pod>& whole, others names,
                const claim_states& claims) {
  const bilingual say(style.language);
  say_doubts(picture, {key.ns}, say.locale(), err);
  const auto* pod = picture.pods.find(key);
  if (!pod) {
    return failed(say.message("explain.no_pod", {{"name", key.name}, {"namespace", key.ns}}), err);
  }
  auto obstacles = known_obstacles(*pod, whole, picture, claims, say);
  const bool is_leaving = pod->deleting && pod->node_name.empty();
  if (pod->finished() || is_leaving) return explain_over(*pod, std::move(obstacles), style, out);
  if (!pod->node_name.empty()) return explain_bound(*pod, picture, obstacles, style, out);
  const auto describe = "kubectl describe pod -n " + key.ns + " " + key.name;
  const auto rules = whole ? std::optional(node_rules(*whole)) : std::nullopt;
  const auto* known_rules = rules ? &*rules : nullptr;
  const auto judged = why_waiting_with_rules(picture, resources_of(picture), *pod, known_rules, say.locale(), names);
  const auto& answer = judged.about;
  add_faults(answer, say.locale(), obstacles);
  if (answer.unknown.empty() && answer.request.nothing())
    add_other_plugins(*pod, resources_of(picture), known_rules, picture, say, obstacles);
  const bool held_back = !obstacles.empty() && obstacles.front().decisive;
  if (!answer.unknown.empty() || answer.request.nothing())
    return explain_without_cards(*pod, answer.unknown, obstacles, style, out);
  const auto& request = answer.request;
  const auto& [unknown, pod_limits, nodes, reason, limit, kept, unserved, is_kept_everywhere] = answer;
  const int rc = judged.fits() && !held_back ? 0 : 3;
  const auto old = old_reports(nodes, picture);
  const auto proposals = proposals_of(picture, *pod, answer, known_rules);
  const auto refused = refused_before(judged, whole ? &*whole : nullptr, held_back);
  if (style.as_data()) {
    ordered_json doc{{"pod", key.to_string()}, {"node", nullptr}, {"waits", true}};
    doc["explanation"] = as_json(reason, nodes, request);
    const auto annotations = change_of_annotations(*pod, request, nodes, text::language::en);
    doc["changeOfAnnotations"] = annotations.empty() ? ordered_json() : ordered_json(annotations);
    // The engine tries fewer changes than there are proposals: it has found none, and another is enough.
    if (!proposals.empty() && !reason.of_pod && !reason.of_node)
      doc["explanation"]["text"] = words_of_causes(reason, nodes, request, text::language::en);
    doc["changes"] = as_json(proposals, say.locale());
    doc["quota"] = limit ? ordered_json(api::words_of(*limit, text::language::en)) : ordered_json();
    doc["kept"] = kept;
    doc["unserved"] = unserved;
    doc["refusals"] = refusals_of(nodes, request, picture, say.locale());
    doc["closed"] = as_json(judged.closed, say.locale());
    doc["obstacles"] = as_json(obstacles);
    doc["oldReports"] = old;
    doc["refusedBefore"] = refused.empty() ? ordered_json() : ordered_json(refused);
    printed_as_data(doc, style.output, out);
    return rc;
  }
  print_line(
      reason.nodes == 1 ? "waits.one" : "waits.many",
      {{"pod", key.to_string()}, {"fitting", std::to_string(reason.fitting)}, {"number", std::to_string(reason.nodes)}},
      say, out);
  print_left_out(judged.nodes, picture, say, out);
  say_old(old, say, out);
  if (style.output == "wide") print_nodes(nodes, request, picture, say, out);
  const auto decisive = std::ranges::find(obstacles, false, &obstacle::decisive);
  print_obstacles({obstacles.begin(), decisive}, out);
  if (limit) {
    print_line("quota", {{"text", api::words_of(*limit, say.locale())}}, say, out);
    print_proposals(proposals, say, out);
    print_line("see", {}, say, out);
    out << where_limits_are(picture, key.ns);
    return rc;
  }
  for (const auto& text : kept) print_line("has_made_room", {{"text", text}}, say, out);
  print_closed(judged.closed, say, out);
  // Where the cards fit nowhere, what the scheduler says of it is the same in other words.
  if (reason.fitting > 0) print_obstacles({decisive, obstacles.end()}, out);
  if (is_kept_everywhere) return rc;
  if (reason.fitting > 0) {
    if (!held_back && !judged.fits_on_closed_alone()) print_other_wait(refused, describe, say, out);
    return rc;
  }
  print(reason, nodes, request, picture, unserved, proposals, say, out);
  return rc;
}

namespace {

/// The whole object of the pod: empty without the right to get it, or where it is gone by then.
kube::task<void> read_whole(kube::transport& transport, const kube::object_key& key, std::string& whole) {
  const auto answer =
      co_await send_patiently(transport, "get pod " + key.to_string(), kube::get_request(kube::pod::of(), key));
  if (!answer) {
    const auto code = answer.error().code;
    if (code == kube::errc::not_found || code == kube::errc::forbidden) co_return kube::result<void>();
    co_return std::unexpected(answer.error());
  }
  whole = answer->body;
  co_return kube::result<void>();
}

std::optional<kube::described_pod> described_in(const std::string& whole) {
  auto pod = kube::from_json<kube::described_pod>(whole);
  return pod ? std::optional(std::move(*pod)) : std::nullopt;
}

listing_style as_listing(const report_style& style) {
  listing_style out;
  static_cast<report_style&>(out) = style;
  return out;
}

struct pod_question {
  picture all;
  std::expected<pod_choice, text::phrase> pod;
  std::string whole;                ///< JSON
  claim_states claims;              ///< of the pod
  std::optional<own_view> own;      ///< in place of the picture, without the right to see all of it
  text::phrase refused;             ///< what is missing then
  std::optional<view_reply> reply;  ///< of the console's server, which sees it
};

/// A lease that was looked for and is not there is one that no one holds.
void note_absent_lease(picture& all) {
  if (!all.leader.lease && all.reason_unseen(part::lease).empty()) all.leader.lease.emplace();
}

/// The pod that is meant, or why there is none, with the namespace where there is one.
std::expected<pod_choice, text::phrase> pod_or_reason(const picture& all, const pod_target& target,
                                                      text::language locale) {
  auto out = chosen_pod(all, target, locale);
  if (out && all.pods.find(out->key)) return out;
  if (auto other = meant_elsewhere(all, target); !other.empty()) return std::unexpected(std::move(other));
  if (!out) return out;
  return std::unexpected(text::phrase{"explain.no_pod", {{"name", target.key.name}, {"namespace", target.key.ns}}});
}

kube::task<void> read_ledger_and_lease(kube::transport& transport, picture& all) {
  auto request = ledger_parts();
  request.wished.insert(part::lease);
  auto done = co_await read_picture(transport, std::move(request), all);
  if (!done) co_return done;
  note_absent_lease(all);
  all.finish();
  co_return done;
}

/// From the cluster, or from the file. An error is one of reading.
std::expected<void, text::phrase> read_question(const cluster_options& cluster, const std::string& snapshot,
                                                const pod_target& target, const report_style& style,
                                                pod_question& out) {
  const auto locale = bilingual(style.language).locale();
  if (!snapshot.empty()) {
    if (auto read = gather(cluster, snapshot, out.all); !read) return read;
    note_absent_lease(out.all);
    out.pod = pod_or_reason(out.all, target, locale);
    const auto saved = out.pod ? out.all.whole_pods.find(out.pod->key) : out.all.whole_pods.end();
    if (saved != out.all.whole_pods.end()) out.whole = saved->second;
    if (const auto pod = described_in(out.whole)) out.claims = saved_claims(out.all, *pod);
    return {};
  }
  const auto work = [&](kube::transport& transport) -> kube::task<void> {
    auto read = co_await read_ledger_and_lease(transport, out.all);
    if (!read && read.error().code == kube::errc::forbidden) {
      out.refused = phrase_of(read.error());
      const auto seen = co_await read_own_view(transport, target, locale, out.own.emplace());
      if (seen && out.own->pod) {
        const auto& key = out.own->pod->key;
        view_question question{key.ns, "podviews", key.name};
        auto form = as_listing(style);
        auto outcome = co_await ask_view(transport, std::move(question), std::move(form));
        if (outcome) out.reply = std::move(outcome->reply);
      }
      if (!out.own->absent.empty()) {
        out.pod = std::unexpected(std::move(out.own->absent));
        out.own.reset();
        co_return kube::result<void>();
      }
      co_return seen&& out.own->pod ? kube::result<void>() : read;
    }
    if (!read) co_return read;
    out.pod = pod_or_reason(out.all, target, locale);
    if (!out.pod && out.pod.error().key == "explain.no_pods_of") {
      text::phrase refused;
      read = co_await read_refused_pods(transport, target, refused);
      out.pod = std::unexpected(no_pods(target, refused));
    }
    if (!out.pod) co_return read;
    read = co_await read_whole(transport, out.pod->key, out.whole);
    const auto pod = described_in(out.whole);
    if (!read || !pod) co_return read;
    if (auto classes = co_await read_device_classes(transport)) out.all.classes = std::move(*classes);
    const auto* found = out.all.pods.find(out.pod->key);
    if (found && !unknown_keys(*found, resources_of(out.all), locale).empty()) {
      if (auto refused = co_await read_refused_declarations(transport))
        out.all.refused_declarations = std::move(*refused);
    }
    co_return pod->claims.empty() ? read : co_await read_claims(transport, *pod, out.claims);
  };
  auto done = in_words(ask_cluster(cluster, work));
  // The pod, its events and its namespace are an answer, too.
  if (!done && done.error().key == "transport.forbidden")
    return std::unexpected(where_view_suffices(std::move(done.error()), target.key.ns));
  return done;
}

}  // namespace

void add_explain_pod(CLI::App& explain, int& rc) {
  struct options {
    std::string pod, ns, snapshot;
    report_style style;
    cluster_options cluster;
  };
  auto* verb =
      add_verb(explain, "pod", "Why a pod waits for cards and what smallest change would help, or which cards it has");
  verb->alias("pods");  // kubectl takes the plural too
  auto flags = std::make_shared<options>();
  add_option(*verb, "pod", flags->pod,
             "NAME, NAMESPACE/NAME, or what makes pods: deploy/NAME, job/NAME, sts/NAME and so on")
      ->required();
  add_namespace_option(*verb, flags->ns,
                       "Namespace of the pod; without it: that of the kubeconfig's context, else default");
  add_answer_options(*verb, flags->style.language, flags->style.output);
  add_option(*verb, "--snapshot", flags->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(pod_example));
  verb->callback([flags, &rc] {
    const auto locale = bilingual(flags->style.language).locale();
    const auto fail = [&](const text::phrase& reason, int code) { rc = failed(reason, locale, std::cerr, code); };
    const bool of_context = flags->ns.empty() && flags->snapshot.empty();
    const auto target = pod_named(flags->pod, flags->ns, of_context ? namespace_of(flags->cluster) : "default");
    if (!target) return fail(target.error(), 2);
    pod_question question;
    const auto read = read_question(flags->cluster, flags->snapshot, *target, flags->style, question);
    if (!read) return fail(read.error(), 1);
    if (question.own) {
      if (!question.own->note.empty()) failed(question.own->note, std::cerr);
      if (question.reply) {
        rc = print(*question.reply, locale, std::cout, std::cerr);
        return;
      }
      rc = explain_own_view(*question.own, question.refused, flags->style, std::cout);
      return;
    }
    if (!question.pod) return fail(question.pod.error(), 1);
    if (!question.pod->note.empty()) failed(question.pod->note, std::cerr);
    rc = explain_pod(question.all, question.pod->key, flags->style, std::cout, std::cerr, described_in(question.whole),
                     others::named, question.claims);
  });
}

}  // namespace cli
