#include "cli/console/overview.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/chargeback/cost.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/waiting.hpp"
#include "cli/console/walked_view.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

namespace verify = reconcilers::verify;
using text::language;
using verify::outcome;
using verify::stage;
using verify::stage_code;

constexpr std::size_t most_names = 5;

/// In the order of the page.
constexpr std::array<std::string_view, 6> part_names{"leader",       "scheduler", "modules",
                                                     "declarations", "quotas",    "nodes"};

std::string_view part_of(stage position) {
  switch (position) {
    case stage::leader:
      return "leader";
    case stage::scheduler:
    case stage::extender:
    case stage::callers:
      return "scheduler";
    case stage::types:
    case stage::policy:
    case stage::daemon_sets:
      return "modules";
    case stage::rules:
      return "declarations";
    case stage::quotas:
      return "quotas";
    default:
      return "nodes";
  }
}

/// The worst first.
int rank_of(outcome result) {
  switch (result) {
    case outcome::wrong:
      return 0;
    case outcome::warning:
      return 1;
    case outcome::changing:
      return 2;
    case outcome::unknown:
      return 3;
    case outcome::good:
      return 4;
    case outcome::skipped:
      return 5;
  }
  return 5;
}

/// What people should look at. What could not be seen of one node is on that node's page.
bool is_finding(const verify::step& step, bool is_of_node) {
  return step.is == outcome::wrong || step.is == outcome::warning || step.is == outcome::changing ||
         (step.is == outcome::unknown && !is_of_node);
}

ordered_json bilingual_json(auto words) { return {{"en", words(language::en)}, {"zh", words(language::zh)}}; }

struct found_problem {
  const verify::step* step = nullptr;  ///< the first of its kind
  std::vector<std::string> nodes;
};

ordered_json finding_json(const found_problem& problem, const std::string& ns) {
  const auto& step = *problem.step;
  const auto node = problem.nodes.empty() ? std::string() : problem.nodes.front();
  const auto count = std::min(problem.nodes.size(), most_names);
  const bool has_remedy = !remedy_of(step, node, language::en).empty();
  return {{"step", to_string(step.position)},
          {"name", bilingual_json([&](language locale) { return name_of(step.position, locale); })},
          {"outcome", to_string(step.is)},
          {"code", to_string(step.cause)},
          {"text", bilingual_json([&](language locale) { return text_of(step, locale); })},
          {"remedy", has_remedy ? bilingual_json([&](language locale) { return remedy_of(step, node, locale); })
                                : ordered_json()},
          {"command", command_of(step, node, ns)},
          {"count", problem.nodes.size()},
          {"nodes", std::vector<std::string>(problem.nodes.begin(),
                                             problem.nodes.begin() + static_cast<std::ptrdiff_t>(count))}};
}

class health_parts {
 public:
  void add(const verify::step& step, const std::string& node) {
    const auto name = part_of(step.position);
    auto& worst = outcomes_.try_emplace(name, outcome::skipped).first->second;
    const bool is_of_node = !node.empty();
    const bool counts = is_finding(step, is_of_node) || step.is == outcome::good;
    if (counts && rank_of(step.is) < rank_of(worst)) worst = step.is;
    if (step.is == outcome::good && !is_of_node && step.position != stage::types) good_.emplace(name, &step);
    if (!is_finding(step, is_of_node)) return;
    auto& found = findings_[name];
    const auto same = [&](const found_problem& each) {
      return is_of_node && !each.nodes.empty() && each.step->position == step.position &&
             each.step->cause == step.cause && each.step->is == step.is &&
             (!step.row || (each.step->row && each.step->row->name == step.row->name));
    };
    const auto match = std::ranges::find_if(found, same);
    auto& kept = match == found.end() ? found.emplace_back() : *match;
    if (!kept.step) kept.step = &step;
    if (is_of_node) kept.nodes.push_back(node);
  }

  ordered_json json(const std::string& ns) {
    auto out = ordered_json::array();
    for (const auto name : part_names) {
      auto steps = ordered_json::array();
      const auto& found = findings_[name];
      for (const bool is_wrong : {true, false})
        for (const auto& each : found)
          if ((each.step->is == outcome::wrong) == is_wrong) steps.push_back(finding_json(each, ns));
      const auto worst = outcomes_.find(name);
      const auto good = good_.find(name);
      const bool is_well = worst != outcomes_.end() && worst->second == outcome::good;
      const bool has_text = is_well && good != good_.end();
      out.push_back({{"part", name},
                     {"outcome", to_string(worst == outcomes_.end() ? outcome::skipped : worst->second)},
                     {"text", has_text ? bilingual_json([&](language locale) { return text_of(*good->second, locale); })
                                       : ordered_json()},
                     {"findings", std::move(steps)}});
    }
    return out;
  }

 private:
  std::map<std::string_view, outcome> outcomes_;
  std::map<std::string_view, const verify::step*> good_;  ///< the first of each
  std::map<std::string_view, std::vector<found_problem>> findings_;
};

std::string quota_command(const verify::step& step) {
  const auto slash = step.value.find('/');
  const auto end = std::min(step.value.find(','), step.value.size());
  if (slash == std::string::npos || slash >= end) return "kubectl get acceleratorquotas -A";
  return "kubectl describe acceleratorquota " + step.value.substr(slash + 1, end - slash - 1) + " -n " +
         step.value.substr(0, slash);
}

/// The waiting pods that the viewer may see.
ordered_json waiting_json(const picture& picture, const viewer& viewer) {
  const auto known = resources_of(picture);
  const kube::pod* oldest = nullptr;
  std::int64_t count = 0;
  for (const auto& pod : picture.pods.all()) {
    if (!viewer.sees(pod.key.ns) || !waits(picture, known, pod)) continue;
    ++count;
    if (pod.created > 0 && (!oldest || std::pair(pod.created, pod.key) < std::pair(oldest->created, oldest->key)))
      oldest = &pod;
  }
  ordered_json out{{"pods", count}, {"since", nullptr}, {"namespace", nullptr}, {"name", nullptr}};
  if (oldest) {
    out["since"] = oldest->created;
    out["namespace"] = oldest->key.ns;
    out["name"] = oldest->key.name;
  }
  return out;
}

/// Of the namespaces that the viewer may see.
ordered_json cost_json(const viewer& viewer, const costs& costs) {
  std::int64_t hundredths = 0;
  for (const auto& [name, cost] : costs.namespaces)
    if (viewer.sees(name)) hundredths += cost.hundredths;
  const auto amount = decimal(hundredths, 2) + (costs.currency.empty() ? "" : " " + costs.currency);
  return {{"amount", costs.are_known ? ordered_json(amount) : ordered_json()},
          {"message", text::message_text(costs.message)},
          {"messages", in_languages(costs.message)}};
}

}  // namespace

gpu_sums gpus_of(const picture& picture) {
  gpu_sums out;
  for (const auto& row : node_rows(fleet(picture))) {
    out.total += row.cards;
    if (row.mode == "none") out.without_mode += row.cards;
    out.cordoned += row.cordoned_cards;
    out.unhealthy += row.unhealthy.value_or(0);
  }
  for (const auto& node : shares_of(picture)) {
    for (const auto& entry : node.cards) {
      out.cores += entry.cores();
      if (!node.mode().empty() && entry.is_free) ++out.free;
    }
  }
  return out;
}

std::string command_of(const verify::step& step, std::string_view node, const std::string& ns) {
  const std::string name(node), in_namespace = ns.empty() ? " -A" : " -n " + ns;
  switch (step.cause) {
    case stage_code::leader_missing:
    case stage_code::leader_silent:
    case stage_code::scheduler_asks_no_one:
      return "kubectl get deployment,pod -l app.kubernetes.io/name=quartermaster" + in_namespace;
    case stage_code::policy_missing:
    case stage_code::policy_not_ready:
    case stage_code::policy_not_looked_at:
    case stage_code::policy_unknown:
    case stage_code::scheduler_not_ready:
    case stage_code::condition_unknown:
    case stage_code::watches_refused:
      return "kubectl describe acceleratorpolicy default";
    case stage_code::rules_not_enforced:
      return "kubectl get resourcerules default -o yaml";
    case stage_code::daemon_set_missing:
    case stage_code::daemon_set_not_rolled_out:
    case stage_code::daemon_set_updating:
      return "kubectl describe daemonset -l app.kubernetes.io/managed-by=quartermaster" + in_namespace;
    case stage_code::module_off:
      return "kubectl patch acceleratorpolicy default --type=merge -p '{\"spec\":{\"modules\":{\"" + step.value +
             "\":{\"enabled\":true}}}}'";
    case stage_code::quota_not_enforced:
    case stage_code::quota_counts_in_part:
    case stage_code::quota_not_looked_at:
      return quota_command(step);
    case stage_code::node_cordoned:
      return "kubectl uncordon " + name;
    case stage_code::cards_cordoned:
    case stage_code::cordon_unknown:
      return "kubectl annotate node " + name + " quartermaster.io/cordon-";
    case stage_code::taint_left:
      return "kubectl taint node " + name + " quartermaster.io/switching-";
    case stage_code::node_not_ready:
    case stage_code::stuck:
    case stage_code::refused:
      return "kubectl describe node " + name;
    default:
      return name.empty() ? "quartermaster verify" : "quartermaster verify " + name;
  }
}

ordered_json health_json(const verify::report& report, const std::string& ns) {
  health_parts parts;
  for (const auto& step : report.cluster) parts.add(step, {});
  for (const auto& node : report.nodes)
    for (const auto& step : node.steps) parts.add(step, node.node);
  return {{"problems", problems(report)}, {"parts", parts.json(ns)}};
}

ordered_json overview_view(const picture& picture, const viewer& viewer, const costs& costs) {
  ordered_json out{{"health", nullptr}, {"gpus", nullptr}, {"waiting", nullptr}, {"cost", nullptr}};
  // What `verify` finds names pods, namespaces and cards of all people.
  if (viewer.nodes && viewer.all_pods && viewer.all_quotas) {
    auto view = walked_view(picture);
    if (!viewer.declarations) {
      view.refused_declarations.clear();
      view.declarations_unseen = {"console.right.declarations"};
    }
    auto report = verify::walk(view);
    // Which plugins are ours is known by the operator's namespace.
    if (picture.leader.ns.empty()) report.nodes.clear();
    out["health"] = health_json(report, picture.leader.ns);
  }
  if (viewer.nodes) {
    const auto sums = gpus_of(picture);
    out["gpus"] = {{"total", sums.total},       {"allocatedCores", sums.cores},
                   {"free", sums.free},         {"withoutMode", sums.without_mode},
                   {"cordoned", sums.cordoned}, {"unhealthy", sums.unhealthy}};
  }
  if (viewer.all_pods || !viewer.namespaces.empty()) {
    out["waiting"] = waiting_json(picture, viewer);
    out["cost"] = cost_json(viewer, costs);
  }
  return out;
}

}  // namespace cli::console
