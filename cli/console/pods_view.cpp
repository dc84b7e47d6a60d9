// Pods that wait, namespaces, declarations, and who is asking.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/accelerator_quota.hpp"
#include "api/names.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/inspect/inspect.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/verify/verify.hpp"
#include "text/list.hpp"

namespace cli::console {
namespace {

namespace declarations = reconcilers::declarations;
namespace ext = reconcilers::extender;
using text::language;

constexpr std::size_t most_violations = 200;

json both(std::string_view en, std::string_view zh) { return {{"en", en}, {"zh", zh}}; }

/// It has no node yet and asks for something that we place, or that no one knows.
bool waits(const placements& placements, const known_resources& known, const kube::pod& pod) {
  if (!pod.node_name.empty() || pod.finished() || pod.deleting || pod.containers.empty()) return false;
  return ext::asks(pod, placements.book->keys()) || !unknown_keys(pod, known).empty();
}

json asks_json(const kube::pod& pod) {
  auto out = json::object();
  for (const auto& [key, amount] : reconcilers::verify::asked_by(pod)) out[key] = amount;
  return out;
}

/// Without the node on which it fits: node names are for those who may list nodes.
std::string without_place(std::string text) { return text.substr(0, text.rfind(" (fits on ")); }

json causes_json(const waiting_answer& answer) {
  auto out = json::array();
  for (const auto& cause : answer.reason.causes) {
    json entry{
        {"reason", quota::text_of(cause.code)}, {"nodes", cause.nodes}, {"container", nullptr}, {"key", nullptr}};
    const auto& names = answer.request.names();
    if (cause.container >= 0 && static_cast<std::size_t>(cause.container) < names.size())
      entry["container"] = names[static_cast<std::size_t>(cause.container)]->name;
    if (!cause.key.empty()) entry["key"] = cause.key;
    out.push_back(std::move(entry));
  }
  return out;
}

std::string_view kind_of(const waiting_answer& answer) {
  if (!answer.unknown.empty()) return "unknown_resource";
  if (answer.limit) return "quota";
  if (answer.is_kept_everywhere) return "kept_for_others";
  return answer.reason.fitting > 0 ? "other" : "fits_nowhere";
}

std::string reason_of(const waiting_answer& answer) {
  if (!answer.unknown.empty()) return answer.unknown;
  if (answer.limit) return "Its namespace's quota refuses it: " + quota::text_of(*answer.limit);
  if (answer.is_kept_everywhere) return "kube-scheduler keeps each node where it fits for another pod.";
  const auto text = ext::text_of(answer.reason, answer.nodes, answer.request);
  return answer.reason.fitting > 0 ? text + "; cards are not what it waits for" : text.substr(0, text.find("; "));
}

/// All but the pod's name: the same for pods that ask for the same.
json reason_json(const placements& placements, const viewer& viewer, const kube::pod& pod) {
  const auto answer = why_waiting(placements, pod);
  const auto change = [&](const std::optional<quota::change>& entry) -> json {
    if (!entry || answer.fits()) return nullptr;
    const auto text = ext::by_name(quota::text_of(*entry, answer.nodes), answer.request);
    return viewer.nodes ? text : without_place(text);
  };
  const bool names_node = viewer.nodes && answer.reason.nearest;
  return {{"asks", asks_json(pod)},
          {"kind", kind_of(answer)},
          {"reason", reason_of(answer)},
          {"nodes", answer.reason.nodes},
          {"fitting", answer.reason.fitting},
          {"causes", causes_json(answer)},
          {"changeOfPod", change(answer.reason.of_pod)},
          {"changeOfNode", viewer.nodes ? change(answer.reason.of_node) : json()},
          {"nearestNode", names_node ? json(answer.nodes[*answer.reason.nearest].inventory->name) : json()},
          {"quota", answer.limit ? json(quota::text_of(*answer.limit)) : json()}};
}

/// What the answer of a waiting pod follows from. Pods of one workload share it.
std::string signature_of(const kube::pod& pod) {
  auto out = pod.key.ns + "\n" + std::to_string(pod.priority) + "\n";
  for (const auto& container : pod.containers) {
    out += container.name + "\n" + std::to_string(static_cast<int>(container.kind));
    for (const auto& [key, amount] : container.limits) out += "\n" + std::string(key) + "=" + std::to_string(amount);
  }
  for (const auto& map : {&pod.annotations, &pod.labels})
    for (const auto& [key, value] : *map) out.append("\n").append(key).append("=").append(value);
  return out;
}

std::string scope_text(const quota::scope& scope) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (!scope.pool.empty()) add("pool " + scope.pool);
  if (scope.isolated) add("isolation " + std::string(quota::text_of(*scope.isolated)));
  if (scope.priority_from) add("priority from " + std::to_string(*scope.priority_from));
  if (scope.priority_to) add("priority to " + std::to_string(*scope.priority_to));
  return out;
}

struct namespace_row {
  std::int64_t pods = 0, waiting = 0, cards = 0, cores = 0, memory_mib = 0;
};

json quota_json(const placements& placements, const std::string& ns) {
  auto out = json::array();
  for (const auto& row : placements.book->limits().standings(ns))
    out.push_back({{"model", row.model},
                   {"resource", quota::text_of(row.unit)},
                   {"nominal", row.nominal},
                   {"used", row.used},
                   {"borrowed", row.borrowed},
                   {"lent", row.lent},
                   {"scope", scope_text(row.only)}});
  return out;
}

std::string cohort_of(const placements& placements, const std::string& ns) {
  std::string out;
  for (const auto& quota : placements.quotas.all())
    if (quota.key.ns == ns && !quota.cohort.empty()) out = quota.cohort;
  return out;
}

json violations_json(const placements& placements, const viewer& viewer, json& view) {
  const auto* compiled = placements.rules.find(api::compiled_rules::only());
  const auto spec = compiled ? nlohmann::json::parse(compiled->spec, nullptr, false) : nlohmann::json();
  const auto rules = spec.is_object() ? declarations::rules_of(spec) : declarations::rule_set();
  std::size_t count = 0;
  std::map<kube::object_key, json> found;
  for (const auto& pod : placements.pods.all()) {
    if (!viewer.sees(pod.key.ns)) continue;
    const auto held = judge(rules, pod);
    if (held.concerned) ++count;
    if (held.refused.empty()) continue;
    auto reasons = json::array();
    for (const auto& reason : held.refused)
      reasons.push_back(both(text_of(reason, language::en), text_of(reason, language::zh)));
    found[pod.key] = {{"namespace", pod.key.ns}, {"pod", pod.key.name}, {"reasons", std::move(reasons)}};
  }
  view["lookedAt"] = count;
  auto out = json::array();
  for (auto& [key, entry] : found)
    if (out.size() < most_violations) out.push_back(std::move(entry));
  view["moreViolations"] = found.size() - out.size();
  return out;
}

std::size_t nodes_with(const placements& placements, const std::string& key) {
  return static_cast<std::size_t>(std::ranges::count_if(
      placements.nodes.all(), [&](const kube::node& node) { return kube::amount(node.allocatable, key) > 0; }));
}

}  // namespace

json me_view(const placements& placements, const viewer& viewer, bool prometheus) {
  auto namespaces = json::array();
  for (const auto& name : namespaces_of(placements))
    if (viewer.sees(name)) namespaces.push_back(name);
  const bool some_pods = viewer.all_pods || !viewer.namespaces.empty();
  return {{"user", viewer.user},
          {"signedInBy", viewer.by_link ? "link" : "token"},
          {"views",
           {{"fleet", viewer.nodes},
            {"node", viewer.nodes},
            {"waiting", some_pods},
            {"namespaces", some_pods},
            {"declarations", viewer.declarations},
            {"capacity", viewer.nodes},
            {"history", viewer.nodes || some_pods}}},
          {"allNamespaces", viewer.all_pods},
          {"namespaces", std::move(namespaces)},
          {"prometheus", prometheus},
          {"version", QUARTERMASTER_VERSION}};
}

json waiting_view(const placements& placements, const viewer& viewer, std::string_view ns, page_range page) {
  const auto known = resources_of(placements);
  std::vector<const kube::pod*> pods;
  for (const auto& pod : placements.pods.all()) {
    const bool is_asked_for = viewer.sees(pod.key.ns) && (ns.empty() || pod.key.ns == ns);
    if (is_asked_for && waits(placements, known, pod)) pods.push_back(&pod);
  }
  std::ranges::sort(pods, {}, [](const kube::pod* pod) { return pod->key; });
  std::map<std::string, json> answers;
  auto rows = json::array();
  const auto begin = std::min(page.offset, pods.size()), end = begin + std::min(page.limit, pods.size() - begin);
  for (auto i = begin; i < end; ++i) {
    const auto& pod = *pods[i];
    auto& answer = answers[signature_of(pod)];
    if (answer.is_null()) answer = reason_json(placements, viewer, pod);
    json row{{"namespace", pod.key.ns}, {"name", pod.key.name}};
    row.update(answer);
    rows.push_back(std::move(row));
  }
  return {{"total", pods.size()}, {"offset", begin}, {"pods", std::move(rows)}};
}

json namespaces_view(const placements& placements, const viewer& viewer, const costs& costs) {
  std::map<std::string, namespace_row> rows;
  for (const auto& name : namespaces_of(placements))
    if (viewer.sees(name)) rows[name];
  const auto known = resources_of(placements);
  for (const auto& pod : placements.pods.all()) {
    const auto row = rows.find(pod.key.ns);
    if (row == rows.end()) continue;
    if (waits(placements, known, pod)) ++row->second.waiting;
    const auto* entry = pod.node_name.empty() ? nullptr : placements.book->book().find(pod.id.to_string());
    if (entry && !entry->held.grants.empty()) ++row->second.pods;
  }
  for (const auto& node : shares_of(placements))
    for (const auto& card : node.cards)
      for (const auto& share : card.shares) {
        const auto row = share.pod ? rows.find(share.pod->key.ns) : rows.end();
        if (row == rows.end()) continue;
        ++row->second.cards;
        row->second.cores += share.cores;
        row->second.memory_mib += share.memory_mib;
      }
  auto namespaces = json::array();
  for (const auto& [name, row] : rows) {
    const bool shows_quota = viewer.sees_quotas(name);
    namespaces.push_back({{"name", name},
                          {"pods", row.pods},
                          {"waiting", row.waiting},
                          {"used", {{"cards", row.cards}, {"cores", row.cores}, {"memoryMiB", row.memory_mib}}},
                          {"cohort", shows_quota ? json(cohort_of(placements, name)) : json()},
                          {"quota", shows_quota ? quota_json(placements, name) : json()},
                          {"cost", costs.are_known ? json(costs.text_of(name)) : json()}});
  }
  std::set<std::string> without_price;
  for (const auto& [name, cost] : costs.namespaces)
    if (rows.contains(name)) without_price.insert(cost.without_price.begin(), cost.without_price.end());
  const auto message =
      without_price.empty() ? costs.message : "Not in the cost, without a price: " + text::joined(without_price) + ".";
  return {{"namespaces", std::move(namespaces)}, {"costMessage", message}};
}

json declarations_view(const placements& placements, const viewer& viewer, const declared_resources& declared) {
  const auto ns = declarations::parse_settings().ns;
  json out{{"namespace", ns}, {"resources", json::array()}};
  for (const auto& [declaration, judged] : rows_of(registry_of(declared, ns))) {
    auto findings = json::array();
    for (const auto& finding : judged.findings)
      findings.push_back({{"code", to_string(finding.kind)},
                          {"en", message_of(finding, language::en)},
                          {"zh", message_of(finding, language::zh)}});
    out["resources"].push_back({{"name", declaration.config_map.name},
                                {"key", declaration.key},
                                {"label", both(declaration.label_en, declaration.label_zh)},
                                {"verdict", declarations::to_string(declarations::verdict_of(judged))},
                                {"findings", std::move(findings)},
                                {"nodes", viewer.nodes ? json(nodes_with(placements, declaration.key)) : json()}});
  }
  const auto* policy = placements.policies.find({{}, std::string(api::names::policy)});
  out["enforcement"] = policy ? policy->resources.enforcement : "Off";
  out["violations"] = violations_json(placements, viewer, out);
  return out;
}

}  // namespace cli::console
