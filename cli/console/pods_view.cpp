// Namespaces, declarations, and who is asking.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/accelerator_quota.hpp"
#include "api/names.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "cli/console/waiting.hpp"
#include "cli/inspect/inspect.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "text/list.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

namespace declarations = reconcilers::declarations;
using text::language;

constexpr std::size_t most_violations = 200;

ordered_json both(std::string_view en, std::string_view zh) { return {{"en", en}, {"zh", zh}}; }

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

ordered_json quota_json(const picture& picture, const std::string& ns) {
  auto out = ordered_json::array();
  for (const auto& row : picture.book->limits().standings(ns))
    out.push_back({{"model", row.model},
                   {"resource", api::unit_of(row.unit)},
                   {"nominal", row.nominal},
                   {"used", row.used},
                   {"borrowed", row.borrowed},
                   {"lent", row.lent},
                   {"scope", scope_text(row.only)}});
  return out;
}

std::string cohort_of(const picture& picture, const std::string& ns) {
  std::string out;
  for (const auto& quota : picture.quotas.all())
    if (quota.key.ns == ns && !quota.cohort.empty()) out = quota.cohort;
  return out;
}

ordered_json violations_json(const picture& picture, const viewer& viewer, ordered_json& view) {
  const auto* compiled = picture.rules.find(api::compiled_rules::only());
  const auto spec = compiled ? nlohmann::json::parse(compiled->spec, nullptr, false) : nlohmann::json();
  const auto rules = spec.is_object() ? declarations::rules_of(spec) : declarations::rule_set();
  std::size_t count = 0;
  std::map<kube::object_key, ordered_json> found;
  for (const auto& pod : picture.pods.all()) {
    if (!viewer.sees(pod.key.ns)) continue;
    const auto held = judge(rules, pod);
    if (held.concerned) ++count;
    if (held.refused.empty()) continue;
    auto reasons = ordered_json::array();
    for (const auto& reason : held.refused)
      reasons.push_back(both(text_of(reason, language::en), text_of(reason, language::zh)));
    found[pod.key] = {{"namespace", pod.key.ns}, {"pod", pod.key.name}, {"reasons", std::move(reasons)}};
  }
  view["lookedAt"] = count;
  auto out = ordered_json::array();
  for (auto& [key, entry] : found)
    if (out.size() < most_violations) out.push_back(std::move(entry));
  view["moreViolations"] = found.size() - out.size();
  return out;
}

std::size_t nodes_with(const picture& picture, const std::string& key) {
  return static_cast<std::size_t>(std::ranges::count_if(
      picture.nodes.all(), [&](const kube::node& node) { return kube::amount(node.allocatable, key) > 0; }));
}

}  // namespace

ordered_json me_view(const picture& picture, const viewer& viewer, bool prometheus) {
  auto namespaces = ordered_json::array();
  for (const auto& name : namespaces_of(picture))
    if (viewer.sees(name)) namespaces.push_back(name);
  const bool some_pods = viewer.all_pods || !viewer.namespaces.empty();
  return {{"user", viewer.user},
          {"signedInBy", viewer.by_link ? "link" : "token"},
          {"views",
           {{"overview", viewer.nodes || some_pods},
            {"fleet", viewer.nodes},
            {"node", viewer.nodes},
            {"pods", some_pods},
            {"waiting", some_pods},
            {"namespaces", some_pods},
            {"cost", some_pods},
            {"declarations", viewer.declarations},
            {"capacity", viewer.nodes},
            {"history", viewer.nodes || some_pods}}},
          {"allNamespaces", viewer.all_pods},
          {"namespaces", std::move(namespaces)},
          {"lacksNamespaces", viewer.lacks_namespaces},
          {"prometheus", prometheus},
          {"version", QUARTERMASTER_VERSION}};
}

ordered_json namespaces_view(const picture& picture, const viewer& viewer, const costs& costs) {
  std::map<std::string, namespace_row> rows;
  for (const auto& name : namespaces_of(picture))
    if (viewer.sees(name)) rows[name];
  const auto known = resources_of(picture);
  for (const auto& pod : picture.pods.all()) {
    const auto row = rows.find(pod.key.ns);
    if (row == rows.end()) continue;
    if (waits(picture, known, pod)) ++row->second.waiting;
    const auto* entry = pod.node_name.empty() ? nullptr : picture.book->book().find(pod.id.to_string());
    if (entry && !entry->held.grants.empty()) ++row->second.pods;
  }
  for (const auto& node : shares_of(picture))
    for (const auto& card : node.cards)
      for (const auto& share : card.shares) {
        const auto row = share.pod ? rows.find(share.pod->key.ns) : rows.end();
        if (row == rows.end()) continue;
        ++row->second.cards;
        row->second.cores += share.cores;
        row->second.memory_mib += share.memory_mib;
      }
  auto namespaces = ordered_json::array();
  for (const auto& [name, row] : rows) {
    const bool shows_quota = viewer.sees_quotas(name);
    namespaces.push_back({{"name", name},
                          {"pods", row.pods},
                          {"waiting", row.waiting},
                          {"used", {{"cards", row.cards}, {"cores", row.cores}, {"memoryMiB", row.memory_mib}}},
                          {"cohort", shows_quota ? ordered_json(cohort_of(picture, name)) : ordered_json()},
                          {"quota", shows_quota ? quota_json(picture, name) : ordered_json()},
                          {"cost", costs.are_known ? ordered_json(costs.text_of(name)) : ordered_json()}});
  }
  std::set<std::string> without_price;
  for (const auto& [name, cost] : costs.namespaces)
    if (rows.contains(name)) without_price.insert(cost.without_price.begin(), cost.without_price.end());
  const auto message = without_price.empty()
                           ? costs.message
                           : text::phrase{"console.cost.without_price", {{"models", text::joined(without_price)}}};
  return {{"namespaces", std::move(namespaces)},
          {"costMessage", text::message_text(message)},
          {"costMessages", in_languages(message)}};
}

ordered_json declarations_view(const picture& picture, const viewer& viewer, const declared_resources& declared) {
  const auto ns = declarations::parse_settings().ns;
  ordered_json out{{"namespace", ns}, {"resources", ordered_json::array()}};
  for (const auto& [declaration, judged, is_compiled] : rows_of(registry_of(declared, ns))) {
    auto findings = ordered_json::array();
    for (const auto& finding : judged.findings)
      findings.push_back({{"code", to_string(finding.kind)},
                          {"en", message_of(finding, language::en)},
                          {"zh", message_of(finding, language::zh)}});
    out["resources"].push_back(
        {{"name", declaration.config_map.name},
         {"key", declaration.key},
         {"label", both(declaration.label_en, declaration.label_zh)},
         {"verdict", declarations::to_string(declarations::verdict_of(judged))},
         {"findings", std::move(findings)},
         {"nodes", viewer.nodes ? ordered_json(nodes_with(picture, declaration.key)) : ordered_json()}});
  }
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  out["enforcement"] = policy ? policy->resources.enforcement : "Off";
  out["violations"] = violations_json(picture, viewer, out);
  return out;
}

}  // namespace cli::console
