#include "cli/explain/explain_pod.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "cli/cluster/cluster.hpp"
#include "cli/explain/node_rules.hpp"
#include "cli/explain/obstacles.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/explain/unserved.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "controller/conditions.hpp"
#include "kube/config.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "text/list.hpp"
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
                   {"text", ext::text_of(explanation, nodes, request)}};
  out["causes"] = ordered_json::array();
  for (const auto& entry : explanation.causes) {
    ordered_json cause{{"reason", quota::text_of(entry.code)}, {"nodes", entry.nodes}};
    if (entry.container >= 0 && static_cast<std::size_t>(entry.container) < request.names().size())
      cause["container"] = request.names()[static_cast<std::size_t>(entry.container)]->name;
    if (!entry.key.empty()) cause["key"] = entry.key;
    out["causes"].push_back(std::move(cause));
  }
  out["nearest"] = explanation.nearest ? ordered_json(nodes[*explanation.nearest].inventory->name) : ordered_json();
  out["changeOfPod"] =
      explanation.of_pod ? ordered_json(ext::text_of(*explanation.of_pod, nodes, request)) : ordered_json();
  out["changeOfNode"] =
      explanation.of_node ? ordered_json(quota::text_of(*explanation.of_node, nodes)) : ordered_json();
  return out;
}

/// Why a pod with cards is refused whatever it tolerates, and where to look.
void print_changing(std::span<const quota::node_view> nodes, const bilingual& say, std::ostream& out) {
  std::vector<std::string> names;
  for (const auto& node : nodes)
    if (node.inventory->changes_mode) names.push_back(node.inventory->name);
  if (names.empty()) return;
  const auto list = (names.size() == 1 ? "Node " : "Nodes ") + text::some_of(names);
  out << say(list + (names.size() == 1 ? " changes its mode and gets" : " change their modes and get") +
                 " no new pod with cards until that is over: quartermaster verify " + names.front(),
             "节点 " + text::some_of(names) + " 正在切换模式，完成之前不接收带卡的新 Pod：quartermaster verify " +
                 names.front())
      << "\n";
}

void print(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
           const ext::pod_request& request, const picture& picture, const std::vector<std::string>& unserved,
           const bilingual& say, std::ostream& out) {
  table rows(say.zh ? std::vector<std::string>{"节点数", "原因", "对象"}
                    : std::vector<std::string>{"NODES", "REASON", "OF"});
  std::map<std::string, std::size_t> refusals;
  for (const auto& node : nodes)
    if (auto text = refusal_of(node, request, picture); !text.empty()) ++refusals[std::move(text)];
  quota::demand needs;
  const bool has_advice = std::ranges::any_of(nodes, [&](const auto& node) {  // "add ... to the same container"
    const auto no = quota::read(request.containers(), node.inventory->serves, needs);
    return no && no->kind != quota::wrong::not_served;
  });
  for (const auto& [text, count] : refusals) rows.add({std::to_string(count), text, ""});
  for (const auto& cause : explanation.causes) {
    const bool is_refused = cause.code == quota::reason::refused || cause.code == quota::reason::not_offered;
    if (is_refused && !refusals.empty()) continue;
    std::string object(cause.key);
    if (object.empty() && cause.container >= 0 && static_cast<std::size_t>(cause.container) < request.names().size())
      object = "container " + request.names()[static_cast<std::size_t>(cause.container)]->name;
    rows.add({std::to_string(cause.nodes), std::string(quota::text_of(cause.code)), object});
  }
  rows.print(out);
  if (explanation.nearest)
    out << say("Nearest: node ", "最接近的节点：") << nodes[*explanation.nearest].inventory->name << "\n";
  if (explanation.of_pod)
    out << say("Smallest change of the pod: ", "对 Pod 的最小改动：")
        << shown(ext::text_of(*explanation.of_pod, nodes, request), most_shown) << "\n";
  if (explanation.of_node)
    out << say("Smallest change of a node: ", "对节点的最小改动：")
        << shown(quota::text_of(*explanation.of_node, nodes), most_shown) << "\n";
  for (const auto& text : unserved) out << text << "\n";
  print_changing(nodes, say, out);
  const bool changes = std::ranges::any_of(nodes, [](const auto& node) { return node.inventory->changes_mode; });
  if (!changes && !explanation.of_pod && !explanation.of_node && unserved.empty() && !has_advice)
    out << say("No single change of the pod or of a node is enough.\n", "仅改动 Pod 或某个节点的一处不够。\n");
}

/// Of the nodes that fit, those where a nominated pod goes before this one: "node a is kept for lab/urgent".
void add_kept_nodes(const kube::pod& pod, const picture& picture, waiting_answer& answer) {
  const auto& nodes = answer.nodes;
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(answer.request.containers(), nodes, found, answer.request.only());
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    ++fitting;
    if (const auto* other = picture.book->goes_before(pod, answer.request, nodes[i].inventory->name))
      answer.kept.push_back("node " + nodes[i].inventory->name + " is kept for pod " + other->key.to_string());
  }
  answer.is_kept_everywhere = fitting > 0 && answer.kept.size() == fitting;
}

/// Every node and what it says, for -o wide.
void print_nodes(std::span<const quota::node_view> nodes, const ext::pod_request& request, const picture& picture,
                 const bilingual& say, std::ostream& out) {
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(request.containers(), nodes, found, request.only());
  table rows(say.zh ? std::vector<std::string>{"节点", "原因"} : std::vector<std::string>{"NODE", "REASON"});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto text = refusal_of(nodes[i], request, picture);
    if (text.empty()) text = found[i].fits() ? "fits" : quota::text_of(found[i]);
    rows.add({nodes[i].inventory->name, text});
  }
  rows.print(out);
}

/// "2 other nodes are left out: cordoned, or without cards that someone serves (a, b)."
void print_left_out(std::span<const quota::node_view> nodes, const picture& picture, const bilingual& say,
                    std::ostream& out) {
  std::set<std::string> names;
  for (const auto& node : picture.nodes.all()) names.insert(node.key.name);
  for (const auto& node : nodes) names.erase(node.inventory->name);
  if (names.empty()) return;
  std::string list;
  std::size_t count = 0;
  for (const auto& name : names)
    if (++count <= 3) list += (list.empty() ? "" : ", ") + name;
  if (names.size() > 3) list += say(" and " + std::to_string(names.size() - 3) + " more", " 等");
  if (say.zh)
    out << "另有 " << names.size() << " 个节点不在其中：已停止调度，或没有可提供的卡（" << list << "）。\n";
  else
    out << plural(names.size(), "other node is", "other nodes are")
        << " left out: cordoned, or without cards that anyone serves (" << list << ").\n";
}

/// Those of the nodes of which the cards are what an agent that is gone reported last.
std::vector<std::string> old_reports(const std::vector<std::string>& nodes, const picture& picture) {
  std::vector<std::string> out;
  for (const auto& node : nodes)
    if (const auto* report = picture.cards.find({{}, node}); report && report->is_report_old()) out.push_back(node);
  return out;
}

void say_old(const std::vector<std::string>& nodes, const bilingual& say, std::ostream& out) {
  if (nodes.empty()) return;
  out << say("Cards are as an agent that is gone reported them last (quartermaster verify NODE): ",
             "以下节点的卡信息来自已不在运行的代理（quartermaster verify 节点名）：")
      << text::some_of(nodes, 8) << "\n";
}

/// The sentence about a card with more given out than it has.
std::vector<std::string> overfull(const quota::holding& held, const quota::node_view& node) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(node.used.size(), node.inventory->cards.size()); ++i) {
    const auto& card = node.inventory->cards[i];
    const auto& used = node.used[i];
    if (std::ranges::find(held.grants, card.uuid, &quota::grant::card) == held.grants.end()) continue;
    const auto whole_mib = used.wholes * card.memory_mib, memory = used.memory_mib + whole_mib;
    const auto cores = used.cores + used.wholes * quota::whole_card;
    if (memory > card.lendable_mib() && card.memory_mib > 0)
      out.push_back("card " + card.uuid + ": " + std::to_string(memory) + " MiB of " +
                    std::to_string(card.lendable_mib()) + " are given out");
    else if (cores > quota::whole_card)
      out.push_back("card " + card.uuid + ": " + std::to_string(cores) + " cores of " +
                    std::to_string(quota::whole_card) + " are given out");
  }
  return out;
}

void print_obstacles(const std::vector<obstacle>& obstacles, const bilingual& say, std::ostream& out) {
  for (const auto& entry : obstacles) out << say(entry.en, entry.zh) << "\n";
}
ordered_json as_json(const std::vector<obstacle>& obstacles, const bilingual& say) {
  ordered_json out = ordered_json::array();
  for (const auto& entry : obstacles) out.push_back({{"code", entry.code}, {"text", say(entry.en, entry.zh)}});
  return out;
}

/// The scheduler that asks the extender in this cluster; empty: none does.
std::string_view asking_scheduler(const picture& picture) {
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  const auto mode = policy ? std::string_view(policy->scheduler.mode) : std::string_view();
  return mode == "Dedicated" ? api::names::scheduler_name : mode == "StaticPod" ? "default-scheduler" : "";
}

/// As far as the projection has it: of a pod whose whole object was not read. Null for one that waits, of which it has
/// neither gates nor what a scheduler said.
nlohmann::json kept_of(const kube::pod& pod) {
  if (pod.node_name.empty() && !pod.finished()) return {};
  nlohmann::json out{{"spec", {{"nodeName", pod.node_name}, {"schedulerName", pod.scheduler_name}}},
                     {"status", {{"reason", pod.reason}}}};
  if (pod.finished()) out["status"]["phase"] = pod.phase == kube::pod_phase::failed ? "Failed" : "Succeeded";
  return out;
}

obstacle not_read() {
  return {"not_read", text::message("explain.pod_not_read", text::language::en),
          text::message("explain.pod_not_read", text::language::zh), false};
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
    doc["obstacles"] = as_json(obstacles, say);
    printed_as_data(doc, style.output, out);
    return rc;
  }
  out << "Pod " << name;
  if (unknown.empty())
    out << say(" asks for no card and for no declared key; why it waits, the scheduler's events say: ",
               " 不请求卡，也不请求已声明的资源；等待的原因见调度器事件：")
        << "kubectl describe pod -n " << pod.key.ns << " " << pod.key.name << "\n";
  else
    out << say(" fits on no node: ", " 无法放到任何节点：") << unknown << "\n";
  print_obstacles(obstacles, say, out);
  return rc;
}

int explain_ended(const kube::pod& pod, const std::vector<obstacle>& obstacles, const report_style& style,
                  std::ostream& out) {
  const bilingual say(style.language);
  const int rc = pod.phase == kube::pod_phase::failed ? 3 : 0;
  if (style.as_data()) {
    printed_as_data({{"pod", pod.key.to_string()},
                     {"node", pod.node_name.empty() ? ordered_json() : ordered_json(pod.node_name)},
                     {"waits", false},
                     {"source", no_source},
                     {"obstacles", as_json(obstacles, say)}},
                    style.output, out);
    return rc;
  }
  out << "Pod " << pod.key.to_string();
  if (!pod.node_name.empty()) out << say(" was on node ", " 曾在节点 ") << pod.node_name << say("", " 上");
  out << say(".\n", "。\n");
  print_obstacles(obstacles, say, out);
  return rc;
}

/// The fitting nodes that the pod's own spec, or their taints, close to it: number by reason.
struct closed_nodes {
  std::map<std::string, std::size_t> reasons;
  std::size_t open = 0;
};
closed_nodes closed_to(const nlohmann::json& whole, const ext::pod_request& request,
                       std::span<const quota::node_view> nodes, const picture& picture) {
  closed_nodes out;
  const node_rules rules(whole.is_object() ? whole.value("spec", nlohmann::json()) : nlohmann::json());
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(request.containers(), nodes, found, request.only());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    const auto* node = picture.nodes.find({{}, nodes[i].inventory->name});
    auto reason = node && whole.is_object() ? rules.refuses(*node) : std::string();
    if (reason.empty())
      ++out.open;
    else
      ++out.reasons[std::move(reason)];
  }
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
  const auto reasons =
      held && view && source != "guessed" ? ext::why_these(held->held, *view, request) : std::vector<std::string>();
  auto unread = held || !view ? std::string() : miscounted(*view, request);
  if (!held && view && unread.empty()) unread = refusal_of(*view, request, picture);
  const auto too_full = held && view ? overfull(held->held, *view) : std::vector<std::string>();
  const auto old = held ? old_reports({pod.node_name}, picture) : std::vector<std::string>();
  if (style.as_data()) {
    ordered_json doc{{"pod", pod.key.to_string()}, {"node", pod.node_name}, {"waits", false}, {"source", source}};
    if (!unread.empty()) doc["unread"] = unread;
    doc["holds"] = held ? json_of(held->held, request) : ordered_json::array();
    doc["why"] = reasons;
    doc["overGiven"] = too_full;
    doc["oldReports"] = old;
    doc["obstacles"] = as_json(obstacles, say);
    printed_as_data(doc, style.output, out);
    return 0;
  }
  const auto name = pod.key.to_string();
  if (say.zh)
    out << "Pod " << name << " 在节点 " << pod.node_name << " 上";
  else
    out << "Pod " << name << " is on node " << pod.node_name;
  if (!held) {
    out << say(" and holds nothing that is managed here.\n", "，没有占用这里管理的资源。\n");
    if (!unread.empty()) out << say("Its limits do not count: ", "其限额不计入：") << unread << "\n";
    print_obstacles(obstacles, say, out);
    return 0;
  }
  const auto scheduler = pod.scheduler_name.empty() ? std::string("default-scheduler") : pod.scheduler_name;
  if (source != "guessed")
    out << say(" and holds:\n", "，占用：\n");
  else if (say.zh)
    out << "。" << scheduler << " 未记录所用的卡，推测为：\n";
  else
    out << ". " << scheduler << " placed it and recorded no card; probably:\n";
  table rows(say.zh ? std::vector<std::string>{"容器", "卡", "数量"}
                    : std::vector<std::string>{"CONTAINER", "CARD", "AMOUNT"});
  for (const auto& entry : rows_of(held->held, request))
    rows.add({entry.container, shown(entry.card, most_shown), entry.amount});
  rows.print(out);
  for (const auto& text : reasons) out << say("Why these: ", "为何是这些卡：") << shown(text, most_shown) << "\n";
  for (const auto& text : too_full) out << say("More than there is: ", "超出实际：") << shown(text, most_shown) << "\n";
  say_old(old, say, out);
  print_obstacles(obstacles, say, out);
  return 0;
}

constexpr std::string_view pod_example = R"(Examples:
  $ quartermaster explain pod trainer -n lab
  $ quartermaster explain pod lab/trainer -o wide    # with every node
  $ quartermaster inspect --save now.json && quartermaster explain pod lab/trainer --snapshot now.json

Judged are cards, declared keys, limits of the namespace, scheduling gates, the scheduler's name, nodeSelector, required
node affinity and taints; not CPU, memory, ports, pod affinity and topology spread (kubectl describe pod). A file of
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

waiting_answer why_waiting(const picture& picture, const known_resources& known, const kube::pod& pod) {
  waiting_answer out{unknown_keys(pod, known), {pod, picture.book->keys()}, {}, {}, {}, {}, {}, false};
  if (!out.unknown.empty() || out.request.nothing()) return out;
  out.nodes = ext::candidates(picture.book->book(), picture.nodes);
  out.reason = quota::explain(out.request.containers(), out.nodes, out.request.only());
  out.limit = ext::limit_of(*picture.book, pod, out.request, out.nodes);
  add_kept_nodes(pod, picture, out);
  if (out.reason.fitting == 0) out.unserved = unserved_resources(picture, known, pod);
  return out;
}

std::optional<node_refusal> refusal_by(const quota::node_view& node, const ext::pod_request& request,
                                       const picture& picture) {
  if (node.inventory->changes_mode) return {};  // what it does not serve now it may serve in a moment
  quota::demand needs;
  const auto no = quota::read(request.containers(), node.inventory->serves, needs);
  if (!no) return {};
  if (no->kind != quota::wrong::not_served) return node_refusal{.text = quota::text_of(*no), .mode = {}, .key = {}};
  const auto* known = picture.nodes.find({{}, node.inventory->name});
  const auto module = known ? known->labels.value_or(api::names::module_label, "") : std::string_view();
  const auto mode = module.empty() ? std::string("none of our modes") : "mode " + std::string(module);
  return node_refusal{.text = mode + ", which does not offer " + std::string(no->key),
                      .mode = std::string(module),
                      .key = std::string(no->key)};
}

std::string refusal_of(const quota::node_view& node, const ext::pod_request& request, const picture& picture) {
  const auto refusal = refusal_by(node, request, picture);
  return refusal ? refusal->text : std::string();
}

void say_doubts(const picture& picture, const std::set<std::string>& namespaces, std::ostream& err) {
  for (const auto& entry : picture.quotas.all()) {
    if (!namespaces.contains(entry.key.ns)) continue;
    const auto status = nlohmann::json::parse(entry.status, nullptr, false);
    if (!status.is_object() || !status.contains("conditions")) continue;
    const auto* enforced = controller::find_condition(status["conditions"], reconcilers::enforced_condition);
    if (enforced && enforced->value("status", "") == "False")
      err << "quartermaster: AcceleratorQuota " << entry.key.to_string()
          << " counts in this answer and is not enforced: " << enforced->value("message", "") << "\n";
  }
  if (!picture.book->trouble().empty())
    err << "quartermaster: kube-system/gpuquota does not count: " << picture.book->trouble() << "\n";
}

std::expected<kube::object_key, std::string> pod_named(const std::string& text, const std::string& ns,
                                                       const std::string& otherwise) {
  const auto slash = text.find('/');
  const auto first = slash == std::string::npos ? std::string() : text.substr(0, slash);
  const auto name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (name.empty() || name.contains('/') || (slash != std::string::npos && first.empty()))
    return std::unexpected("\"" + text + "\" names no pod; give NAME with -n NAMESPACE, or NAMESPACE/NAME");
  // As kubectl has it: pod/NAME. A namespace of that name is meant with -n.
  if (first.empty() || first == "pod" || first == "pods" || first == "po")
    return kube::object_key{ns.empty() ? otherwise : ns, name};
  // Kinds that kubectl takes in this place.
  for (const std::string_view kind : {"deploy", "deployment", "sts", "statefulset", "ds", "daemonset", "rs",
                                      "replicaset", "job", "cronjob", "node", "no"})
    if (first == kind)
      return std::unexpected("\"" + text + "\" names no pod but a " + first + "; its pods: kubectl get pods -o wide");
  if (!ns.empty() && ns != first)
    return std::unexpected("\"" + text + "\" is in namespace " + first + ", -n says " + ns + "; leave one of them out");
  return kube::object_key{first, name};
}

int explain_pod(const picture& picture, const kube::object_key& key, const report_style& style, std::ostream& out,
                std::ostream& err, const nlohmann::json& whole) {
  const bilingual say(style.language);
  say_doubts(picture, {key.ns}, err);
  const auto* pod = picture.pods.find(key);
  if (!pod) {
    err << "quartermaster: there is no pod " << key.name << " in namespace " << key.ns
        << "; another namespace is named with -n NAMESPACE\n";
    return 1;
  }
  auto obstacles = obstacles_of(whole.is_object() ? whole : kept_of(*pod), asking_scheduler(picture));
  if (!whole.is_object() && pod->node_name.empty() && !pod->finished()) obstacles.push_back(not_read());
  if (pod->finished()) return explain_ended(*pod, obstacles, style, out);
  if (!pod->node_name.empty()) return explain_bound(*pod, picture, obstacles, style, out);
  const auto describe = "kubectl describe pod -n " + key.ns + " " + key.name;
  const bool held_back = !obstacles.empty() && obstacles.front().decisive;
  const auto answer = why_waiting(picture, resources_of(picture), *pod);
  if (!answer.unknown.empty() || answer.request.nothing())
    return explain_without_cards(*pod, answer.unknown, obstacles, style, out);
  const auto& request = answer.request;
  const auto& [unknown, pod_limits, nodes, reason, limit, kept, unserved, is_kept_everywhere] = answer;
  const auto closed = closed_to(whole, request, nodes, picture);
  const int rc = answer.fits() && !held_back && (closed.open > 0 || closed.reasons.empty()) ? 0 : 3;
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node.inventory->name);
  const auto old = old_reports(names, picture);
  if (style.as_data()) {
    ordered_json doc{{"pod", key.to_string()}, {"node", nullptr}, {"waits", true}};
    doc["explanation"] = as_json(reason, nodes, request);
    doc["quota"] = limit ? ordered_json(quota::text_of(*limit)) : ordered_json();
    doc["kept"] = kept;
    doc["unserved"] = unserved;
    std::set<std::string> refusals;
    for (const auto& node : nodes)
      if (auto text = refusal_of(node, request, picture); !text.empty()) refusals.insert(std::move(text));
    doc["refusals"] = refusals;
    doc["closed"] = closed.reasons;
    doc["obstacles"] = as_json(obstacles, say);
    doc["oldReports"] = old;
    printed_as_data(doc, style.output, out);
    return rc;
  }
  if (say.zh)
    out << "Pod " << key.to_string() << " 在等待：" << reason.nodes << " 个有卡的节点中有 " << reason.fitting
        << " 个能放下。\n";
  else
    out << "Pod " << key.to_string() << " waits: its cards fit on " << reason.fitting << " of "
        << plural(reason.nodes, "node", "nodes") << " with cards.\n";
  print_left_out(nodes, picture, say, out);
  say_old(old, say, out);
  if (style.output == "wide") print_nodes(nodes, request, picture, say, out);
  if (held_back) print_obstacles({obstacles.front()}, say, out);
  if (limit) {
    out << say("Its namespace's quota refuses it: ", "命名空间的配额不允许：") << quota::text_of(*limit) << "\n"
        << say("See:\n", "查看：\n") << where_limits_are(picture, key.ns);
    return rc;
  }
  for (const auto& text : kept)
    out << say("kube-scheduler has made room for another pod: ", "kube-scheduler 已为另一个 Pod 腾出位置：") << text
        << "\n";
  for (const auto& [text, count] : closed.reasons)
    out << say("Of the nodes where its cards fit, closed to it: ", "卡能放下但不能使用的节点：")
        << plural(count, "node", "nodes") << ": " << shown(text, most_shown) << "\n";
  // Where the cards fit nowhere, what the scheduler says of it is the same in other words.
  if (reason.fitting > 0) print_obstacles({obstacles.begin() + (held_back ? 1 : 0), obstacles.end()}, say, out);
  if (is_kept_everywhere) return rc;
  if (reason.fitting > 0) {
    if (!held_back) out << say("Cards are not what it waits for: ", "它等待的不是卡：") << describe << "\n";
    return rc;
  }
  print(reason, nodes, request, picture, unserved, say, out);
  return rc;
}

namespace {

/// The cluster, and the whole object of the pod: null without the right to get it, or where it is gone by then.
kube::task<void> read_with_pod(kube::transport& transport, const kube::object_key& key, picture& picture,
                               nlohmann::json& whole) {
  auto done = co_await read_ledger(transport, picture);
  if (!done || !picture.pods.find(key)) co_return done;
  const auto answer =
      co_await send_patiently(transport, "get pod " + key.to_string(), kube::get_request(kube::pod::of(), key));
  if (!answer) {
    const auto code = answer.error().code;
    if (code == kube::errc::not_found || code == kube::errc::forbidden) co_return kube::result<void>();
    co_return std::unexpected(answer.error());
  }
  whole = nlohmann::json::parse(answer->body, nullptr, false);
  co_return kube::result<void>();
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
  add_option(*verb, "pod", flags->pod, "NAME, pod/NAME or NAMESPACE/NAME")->required();
  add_option(*verb, "-n,--namespace", flags->ns,
             "Namespace of the pod; without it: that of the kubeconfig's context, else default");
  add_answer_options(*verb, flags->style.language, flags->style.output);
  add_option(*verb, "--snapshot", flags->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(pod_example));
  verb->callback([flags, &rc] {
    const auto fail = [&](const std::string& reason, int code) { rc = failed(reason, std::cerr, code); };
    const bool of_context = flags->ns.empty() && flags->snapshot.empty();
    const auto pod = pod_named(flags->pod, flags->ns, of_context ? namespace_of(flags->cluster) : "default");
    if (!pod) return fail(pod.error(), 2);
    picture all;
    nlohmann::json whole;
    const auto read =
        flags->snapshot.empty()
            ? ask_cluster(flags->cluster,
                          [&](kube::transport& transport) { return read_with_pod(transport, *pod, all, whole); })
            : gather(flags->cluster, flags->snapshot, all);
    if (!read) return fail(read.error().message, 1);
    if (const auto saved = all.whole_pods.find(*pod); saved != all.whole_pods.end())
      whole = nlohmann::json::parse(saved->second, nullptr, false);
    rc = explain_pod(all, *pod, flags->style, std::cout, std::cerr, whole);
  });
}

}  // namespace cli
