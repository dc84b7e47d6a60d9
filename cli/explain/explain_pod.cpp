#include "cli/explain/explain_pod.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "controller/conditions.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/quotas/quota_status.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using json = nlohmann::ordered_json;

json as_json(const quota::explanation& why, std::span<const quota::node_view> nodes, const ext::asked& by) {
  json out{{"nodes", why.nodes}, {"fitting", why.fitting}, {"text", ext::text_of(why, nodes, by)}};
  out["causes"] = json::array();
  for (const auto& one : why.causes) {
    json cause{{"reason", quota::text_of(one.why)}, {"nodes", one.nodes}};
    if (one.container >= 0 && static_cast<std::size_t>(one.container) < by.names().size())
      cause["container"] = by.names()[static_cast<std::size_t>(one.container)]->name;
    if (!one.key.empty()) cause["key"] = one.key;
    out["causes"].push_back(std::move(cause));
  }
  out["nearest"] = why.nearest ? json(nodes[*why.nearest].what->name) : json();
  out["changeOfPod"] = why.of_pod ? json(ext::by_name(quota::text_of(*why.of_pod, nodes), by)) : json();
  out["changeOfNode"] = why.of_node ? json(quota::text_of(*why.of_node, nodes)) : json();
  return out;
}

void print(const quota::explanation& why, std::span<const quota::node_view> nodes, const ext::asked& by,
           const placements& in, const bilingual& say, std::ostream& to) {
  table rows(say.zh ? std::vector<std::string>{"节点数", "原因", "对象"}
                    : std::vector<std::string>{"NODES", "REASON", "OF"});
  std::map<std::string, std::size_t> refusals;
  for (const auto& node : nodes)
    if (auto text = refusal_of(node, by, in); !text.empty()) ++refusals[std::move(text)];
  for (const auto& [text, count] : refusals) rows.add({std::to_string(count), text, ""});
  for (const auto& one : why.causes) {
    const bool said = one.why == quota::reason::refused || one.why == quota::reason::not_offered;
    if (said && !refusals.empty()) continue;
    std::string of(one.key);
    if (of.empty() && one.container >= 0 && static_cast<std::size_t>(one.container) < by.names().size())
      of = "container " + by.names()[static_cast<std::size_t>(one.container)]->name;
    rows.add({std::to_string(one.nodes), std::string(quota::text_of(one.why)), of});
  }
  rows.print(to);
  if (why.nearest) to << say("Nearest: node ", "最接近的节点：") << nodes[*why.nearest].what->name << "\n";
  if (why.of_pod)
    to << say("Smallest change of the pod: ", "对 Pod 的最小改动：")
       << ext::by_name(quota::text_of(*why.of_pod, nodes), by) << "\n";
  if (why.of_node)
    to << say("Smallest change of a node: ", "对节点的最小改动：") << quota::text_of(*why.of_node, nodes) << "\n";
  if (!why.of_pod && !why.of_node)
    to << say("No single change of the pod or of a node is enough.\n", "仅改动 Pod 或某个节点的一处不够。\n");
}

/// Of the nodes that fit, those where a nominated pod goes before this one: "node a is kept for lab/urgent".
struct kept {
  std::vector<std::string> texts;
  bool everywhere = false;
};
kept kept_nodes(const kube::pod& pod, std::span<const quota::node_view> nodes, const ext::asked& by,
                const placements& in) {
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(by.containers(), nodes, found, by.only());
  kept out;
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    ++fitting;
    if (const auto* other = in.book->goes_before(pod, by, nodes[i].what->name))
      out.texts.push_back("node " + nodes[i].what->name + " is kept for pod " + other->key.to_string());
  }
  out.everywhere = fitting > 0 && out.texts.size() == fitting;
  return out;
}

/// Every node and what it says, for -o wide.
void print_nodes(std::span<const quota::node_view> nodes, const ext::asked& by, const placements& in,
                 const bilingual& say, std::ostream& to) {
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(by.containers(), nodes, found, by.only());
  table rows(say.zh ? std::vector<std::string>{"节点", "原因"} : std::vector<std::string>{"NODE", "REASON"});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto text = refusal_of(nodes[i], by, in);
    if (text.empty()) text = found[i].fits() ? "fits" : ext::by_name(quota::text_of(found[i]), by);
    rows.add({nodes[i].what->name, text});
  }
  rows.print(to);
}

/// "2 other nodes are left out: cordoned, or without cards that somebody serves (a, b)."
void print_left_out(std::span<const quota::node_view> nodes, const placements& in, const bilingual& say,
                    std::ostream& to) {
  std::set<std::string> names;
  for (const auto& node : in.nodes.all()) names.insert(node.key.name);
  for (const auto& node : nodes) names.erase(node.what->name);
  if (names.empty()) return;
  std::string list;
  std::size_t count = 0;
  for (const auto& name : names)
    if (++count <= 3) list += (list.empty() ? "" : ", ") + name;
  if (names.size() > 3) list += say(" and " + std::to_string(names.size() - 3) + " more", " 等");
  if (say.zh)
    to << "另有 " << names.size() << " 个节点不在其中：已停止调度，或没有可提供的卡（" << list << "）。\n";
  else
    to << plural(names.size(), "other node is", "other nodes are")
       << " left out: cordoned, or without cards that anybody serves (" << list << ").\n";
}

/// A card with more given out than it has: what is said of it.
std::vector<std::string> overfull(const quota::holding& held, const quota::node_view& node) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(node.used.size(), node.what->cards.size()); ++i) {
    const auto& card = node.what->cards[i];
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

int explain_bound(const kube::pod& pod, const placements& in, const report_style& how, std::ostream& out) {
  const bilingual say(how.language);
  const ext::asked by(pod, in.book->keys());
  const auto* held = in.book->book().find(pod.id.to_string());
  const auto view = in.book->book().view(pod.node_name);
  std::string_view from = "nothing of ours";
  if (held && view) from = ext::to_string(ext::held_by(pod, *view, by).from);
  const auto too_full = held && view ? overfull(held->held, *view) : std::vector<std::string>();
  if (how.as_data()) {
    json doc{{"pod", pod.key.to_string()}, {"node", pod.node_name}, {"waits", false}, {"source", from}};
    doc["holds"] = held ? json_of(held->held, by) : json::array();
    doc["overGiven"] = too_full;
    printed_as_data(doc, how.output, out);
    return 0;
  }
  const auto name = pod.key.to_string();
  if (say.zh)
    out << "Pod " << name << " 在节点 " << pod.node_name << " 上";
  else
    out << "Pod " << name << " is on node " << pod.node_name;
  if (!held) {
    out << say(" and holds nothing that is managed here.\n", "，没有占用这里管理的资源。\n");
    return 0;
  }
  const auto scheduler = pod.scheduler_name.empty() ? std::string("default-scheduler") : pod.scheduler_name;
  if (from != "guessed")
    out << say(" and holds:\n", "，占用：\n");
  else if (say.zh)
    out << "。" << scheduler << " 未记录所用的卡，推测为：\n";
  else
    out << ". " << scheduler << " placed it and recorded no card; probably:\n";
  table rows(say.zh ? std::vector<std::string>{"容器", "卡", "数量"}
                    : std::vector<std::string>{"CONTAINER", "CARD", "AMOUNT"});
  for (const auto& one : rows_of(held->held, by)) rows.add({one.container, one.card, one.amount});
  rows.print(out);
  for (const auto& text : too_full) out << say("More than there is: ", "超出实际：") << text << "\n";
  return 0;
}

constexpr std::string_view pod_example = R"(Examples:
  $ quartermaster explain pod trainer -n lab
  $ quartermaster explain pod lab/trainer -o wide    # with every node
  $ quartermaster inspect --save now.json && quartermaster explain pod lab/trainer --snapshot now.json

Only cards and declared keys are judged here; taints, CPU and affinity are the scheduler's (kubectl describe pod).
Exit codes: 0 it is bound, or would fit; 1 there is no such pod, or the cluster cannot be read; 2 wrong usage; 3 it fits nowhere)";

/// The commands that show what limits a namespace.
std::string where_limits_are(const placements& in, const std::string& ns) {
  std::string out;
  if (std::ranges::any_of(in.quotas.all(), [&](const auto& one) { return one.key.ns == ns; }))
    out += "  kubectl get acceleratorquota -n " + ns + "\n";
  for (const auto& one : in.old_quotas.all())
    if (one.data.value_or(reconcilers::gpu_quota_key, "").contains("\"" + ns + "\""))
      out += "  kubectl get configmap -n " + one.key.ns + " " + one.key.name + " -o yaml\n";
  return out;
}

}  // namespace

std::string refusal_of(const quota::node_view& node, const ext::asked& by, const placements& in) {
  quota::demand needs;
  const auto no = quota::read(by.containers(), node.what->serves, needs);
  if (!no) return {};
  if (no->what != quota::wrong::not_served) return quota::text_of(*no);
  const auto* known = in.nodes.find({{}, node.what->name});
  const auto module = known ? known->labels.value_or(reconcilers::names::module_label, "") : std::string_view();
  return (module.empty() ? std::string("no mode of ours") : "mode " + std::string(module)) + ", which does not offer " +
         std::string(no->key);
}

void say_doubts(const placements& in, const std::set<std::string>& namespaces, std::ostream& err) {
  for (const auto& one : in.quotas.all()) {
    if (!namespaces.contains(one.key.ns)) continue;
    const auto status = nlohmann::json::parse(one.status, nullptr, false);
    if (!status.is_object() || !status.contains("conditions")) continue;
    const auto* enforced = controller::find_condition(status["conditions"], reconcilers::enforced_condition);
    if (enforced && enforced->value("status", "") == "False")
      err << "quartermaster: AcceleratorQuota " << one.key.to_string()
          << " counts in this answer and is not enforced: " << enforced->value("message", "") << "\n";
  }
  if (!in.book->trouble().empty())
    err << "quartermaster: kube-system/gpuquota does not count: " << in.book->trouble() << "\n";
}

std::expected<kube::object_key, std::string> pod_named(const std::string& text, const std::string& ns) {
  const auto slash = text.find('/');
  const auto first = slash == std::string::npos ? std::string() : text.substr(0, slash);
  const auto name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (name.empty() || name.contains('/') || (slash != std::string::npos && first.empty()))
    return std::unexpected("\"" + text + "\" names no pod; give NAME with -n NAMESPACE, or NAMESPACE/NAME");
  // As kubectl has it: pod/NAME. A namespace of that name is meant with -n.
  if (first.empty() || first == "pod" || first == "pods" || first == "po")
    return kube::object_key{ns.empty() ? "default" : ns, name};
  if (!ns.empty() && ns != first)
    return std::unexpected("\"" + text + "\" is in namespace " + first + ", -n says " + ns + "; leave one of them out");
  return kube::object_key{first, name};
}

int explain_pod(const placements& in, const kube::object_key& key, const report_style& how, std::ostream& out,
                std::ostream& err) {
  const bilingual say(how.language);
  say_doubts(in, {key.ns}, err);
  const auto* pod = in.pods.find(key);
  if (!pod) {
    err << "quartermaster: there is no pod " << key.name << " in namespace " << key.ns
        << "; another namespace is named with -n NAMESPACE\n";
    return 1;
  }
  if (!pod->node_name.empty()) return explain_bound(*pod, in, how, out);
  const auto describe = "kubectl describe pod -n " + key.ns + " " + key.name;
  if (const auto unknown = unknown_keys(*pod, resources_of(in)); !unknown.empty()) {
    if (how.as_data())
      printed_as_data({{"pod", key.to_string()}, {"node", nullptr}, {"waits", true}, {"unknown", unknown}}, how.output,
                      out);
    else
      out << "Pod " << key.to_string() << say(" fits on no node: ", " 无法放到任何节点：") << unknown << "\n";
    return 3;
  }
  const ext::asked by(*pod, in.book->keys());
  if (by.nothing()) {
    if (how.as_data())
      printed_as_data({{"pod", key.to_string()}, {"waits", false}, {"source", "nothing of ours"}}, how.output, out);
    else
      out << "Pod " << key.to_string()
          << say(" asks for no card and for no declared key; why it waits, the scheduler's events say: ",
                 " 不请求卡，也不请求已声明的资源；等待的原因见调度器事件：")
          << describe << "\n";
    return 0;
  }
  const auto nodes = ext::candidates(in.book->book(), in.nodes);
  const auto why = quota::explain(by.containers(), nodes, by.only());
  const auto limit = ext::limit_of(*in.book, *pod, by, nodes);
  const auto kept = kept_nodes(*pod, nodes, by, in);
  const int rc = why.fitting > 0 && !limit && !kept.everywhere ? 0 : 3;
  if (how.as_data()) {
    json doc{{"pod", key.to_string()}, {"node", nullptr}, {"waits", true}};
    doc["explanation"] = as_json(why, nodes, by);
    doc["quota"] = limit ? json(quota::text_of(*limit)) : json();
    doc["kept"] = kept.texts;
    printed_as_data(doc, how.output, out);
    return rc;
  }
  if (say.zh)
    out << "Pod " << key.to_string() << " 在等待：" << why.nodes << " 个有卡的节点中有 " << why.fitting
        << " 个能放下。\n";
  else
    out << "Pod " << key.to_string() << " waits: its cards fit on " << why.fitting << " of "
        << plural(why.nodes, "node", "nodes") << " with cards.\n";
  print_left_out(nodes, in, say, out);
  if (how.output == "wide") print_nodes(nodes, by, in, say, out);
  if (limit) {
    out << say("Its namespace's quota refuses it: ", "命名空间的配额不允许：") << quota::text_of(*limit) << "\n"
        << say("See:\n", "查看：\n") << where_limits_are(in, key.ns);
    return rc;
  }
  for (const auto& text : kept.texts)
    out << say("kube-scheduler has made room for another pod: ", "kube-scheduler 已为另一个 Pod 腾出位置：") << text
        << "\n";
  if (kept.everywhere) return rc;
  if (why.fitting > 0) {
    out << say("Cards are not what it waits for: ", "它等待的不是卡：") << describe << "\n";
    return rc;
  }
  print(why, nodes, by, in, say, out);
  return rc;
}

void add_explain_pod(CLI::App& explain, int& rc) {
  struct options {
    std::string pod, ns, snapshot;
    report_style how;
    cluster_options cluster;
  };
  auto* verb = explain.add_subcommand(
      "pod", "Why a pod waits for cards and what smallest change would help, or which cards it has");
  auto given = std::make_shared<options>();
  verb->add_option("pod", given->pod, "NAME, pod/NAME or NAMESPACE/NAME")->required();
  verb->add_option("-n,--namespace", given->ns, "Of the pod; without it: default");
  add_answer_options(*verb, given->how.language, given->how.output);
  verb->add_option("--snapshot", given->snapshot, "Instead of a cluster: a file of quartermaster inspect --save");
  add_cluster_options(*verb, given->cluster);
  verb->footer(std::string(pod_example));
  verb->callback([given, &rc] {
    const auto fail = [&](const std::string& why, int code) {
      std::cerr << "quartermaster: " << why << "\n";
      rc = code;
    };
    const auto pod = pod_named(given->pod, given->ns);
    if (!pod) return fail(pod.error(), 2);
    placements all;
    const auto read = gather(given->cluster, given->snapshot, all);
    if (!read) return fail(read.error().what, 1);
    rc = explain_pod(all, *pod, given->how, std::cout, std::cerr);
  });
}

}  // namespace cli
