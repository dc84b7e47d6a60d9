#include "reconcilers/verify/verify.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/certificates/caller_certificates.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/extender/brake.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/plugins/policy_status.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "reconcilers/verify/node_walk.hpp"
#include "reconcilers/verify/steps.hpp"

namespace reconcilers::verify {
namespace {

step types_step(const cluster_view& view) {
  std::string missing;
  for (const auto& missing_type : view.missing_types) append(missing, missing_type);
  return missing.empty() ? good(stage::types) : wrong(stage::types, stage_code::types_missing, missing);
}

step leader_step(const cluster_view& view) {
  const auto position = stage::leader;
  if (!view.missing_types.empty()) return skipped(position);  // it does not start without them
  if (!view.leader_unseen.empty()) return unseen(position, view.leader_unseen);
  if (!view.leader || view.leader->holder.empty()) return wrong(position, stage_code::leader_missing);
  const auto& is = *view.leader;
  const auto age = std::to_string(is.age.count());
  if (!is.renewed && is.age > is.duration) return wrong(position, stage_code::leader_silent, is.holder, age);
  return good(position, is.holder, is.renewed ? "" : age);
}

step policy_step(const cluster_view& view, bool leaderless) {
  const auto position = stage::policy;
  if (std::ranges::find(view.missing_types, kube::resources::accelerator_policies.plural) != view.missing_types.end())
    return skipped(position);
  if (!view.policy) {
    std::string others;
    for (const auto& other_policy : view.other_policies) append(others, other_policy);
    return wrong(position, stage_code::policy_missing, others);
  }
  const auto status = status_of(view);
  const auto seen = kube::number_in(status, "observedGeneration", 0);
  if (seen < view.policy->generation)
    return leaderless ? skipped(position) : wrong(position, stage_code::policy_not_looked_at);
  const auto condition = condition_of(status, "Ready");
  const auto reason = kube::text_in(condition, "reason");
  // How far each DaemonSet is, the next step tells.
  if (kube::text_in(condition, "status") == "False" && reason != "RollingOut")
    return with_other(wrong(position, stage_code::policy_not_ready, reason), controller::quoted_message_of(condition));
  if (kube::text_in(condition, "status") != "True" && kube::text_in(condition, "status") != "False")
    return {position, outcome::unknown, stage_code::policy_unknown, {}, {}, {}};
  return good(position, status.is_object() ? kube::text_in(status, "summary") : "");
}

/// Whether pods are held to the declarations. Nothing where the operator has not said so yet.
std::vector<step> rules_step(const cluster_view& view, bool reported) {
  const auto rule = stage::rules;
  const auto condition = condition_of(status_of(view), "RulesEnforced");
  if (condition.empty()) return {};
  if (reported) return {skipped(rule)};
  const auto reason = kube::text_in(condition, "reason");
  const bool works = kube::text_in(condition, "status") == "True" || reason == "Off";
  return {with_other(works ? good(rule, reason) : wrong(rule, stage_code::rules_not_enforced, reason),
                     controller::quoted_message_of(condition))};
}

/// Declarations that no one holds pods to, though someone wrote them.
std::vector<step> declaration_steps(const cluster_view& view) {
  std::vector<step> out;
  for (const auto& [config_map, key, reason, reason_zh] : view.refused_declarations) {
    auto value = config_map.to_string() + (key.empty() ? "" : " (" + key + ")");
    auto step = wrong(stage::rules, stage_code::declaration_refused, std::move(value), reason);
    step.other_zh = reason_zh;
    out.push_back(std::move(step));
  }
  if (!view.unread_declarations.empty())
    out.push_back(with_value(warning(stage::rules, stage_code::declarations_elsewhere),
                             {"list.quotation", {text::some_of("text", view.unread_declarations)}}));
  if (!view.declarations_unseen.empty())
    out.push_back(unseen(stage::rules, {"verify.step.declarations", {{"reason", view.declarations_unseen}}}));
  return out;
}

step wrong_control_plane_node(const nlohmann::json& row) {
  const auto reason = kube::text_in(row, "reason");
  auto message = controller::quoted_message_of(row);
  auto cause = stage_code::control_plane_node_not_ready;
  if (reason == "Stopped") cause = stage_code::control_plane_node_stopped;
  if (reason == "RolledBack") cause = stage_code::control_plane_node_rolled_back;
  if (reason == "NoAgent") cause = stage_code::control_plane_node_without_agent;
  if (cause == stage_code::control_plane_node_not_ready && !reason.empty())
    message = message.empty() ? text::phrase(reason)
                              : text::phrase{"verify.step.because", {{"text", reason}, {"cause", std::move(message)}}};
  return with_other(wrong(stage::scheduler, cause, kube::text_in(row, "name")), message);
}

/// What sends pods that ask for accelerators to the extender, as far as the operator does that. Without a leader the
/// condition is old, and the pods that are sent there wait.
std::vector<step> scheduler_steps(const cluster_view& view, bool leads, bool reported) {
  const auto position = stage::scheduler;
  if (!view.policy) return {};
  const auto status = status_of(view);
  const auto is = condition_of(status, "SchedulerReady");
  const auto& mode = view.policy->scheduler.mode;
  const bool wanted = mode != "None" && !view.policy->removing;
  if (!leads && wanted) return {wrong(position, stage_code::scheduler_asks_no_one, mode)};
  if (reported) return {skipped(position)};
  if (is.empty()) return {wanted ? skipped(position) : good(position, "None")};  // or no one has looked yet
  const auto reason = kube::text_in(is, "reason");
  const auto message = controller::quoted_message_of(is);
  if (kube::text_in(is, "status") == "True") return {with_other(good(position, reason), message)};
  if (!wanted) return {with_other(wrong(position, stage_code::scheduler_leaving, reason), message)};
  std::vector<step> out;
  for (const auto& row : list_of(status, "schedulers")) {
    if (kube::text_in(row, "mode") != "StaticPod" ||
        kube::number_in(row, "ready", 0) >= kube::number_in(row, "desired", 1))
      continue;
    out.push_back(wrong_control_plane_node(row));
  }
  if (out.empty()) out.push_back(with_other(wrong(position, stage_code::scheduler_not_ready, reason), message));
  return out;
}

/// A caller of the extender whose certificate ends soon is refused then; until then all is well.
std::vector<step> caller_steps(const cluster_view& view, bool reported) {
  const auto is = condition_of(status_of(view), caller_certificates_valid);
  const auto status = kube::text_in(is, "status");
  if (reported || !view.whole || (status != "True" && status != "False")) return {};
  const auto message = controller::quoted_message_of(is);
  if (status == "True") return {with_value(good(stage::callers), message)};
  return {with_value(warning(stage::callers, stage_code::caller_certificate_ends), message)};
}

step runtimes_step(std::string_view status, const std::string& reason, const text::phrase& message) {
  const auto position = stage::runtimes;
  if (status != "False") return with_value(good(position), message);
  return with_other(reason == "Halted" ? wrong(position, stage_code::runtimes_not_fixed, reason)
                                       : warning(position, stage_code::runtimes_not_fixed, reason),
                    message);
}

step unknown_condition(const std::string& type, const std::string& state, const text::phrase& message) {
  step out{stage::policy, outcome::unknown, stage_code::condition_unknown, type, state, {}};
  if (message.empty()) return out;
  return with_other(std::move(out), {"verify.step.because", {{"text", state}, {"cause", message}}});
}

/// Conditions of the policy that no other step has looked at. One that this version does not know may mean anything.
std::vector<step> condition_steps(const cluster_view& view, bool reported) {
  constexpr std::string_view others[] = {"Ready",         "Progressing",    "Degraded",
                                         "RulesEnforced", "SchedulerReady", caller_certificates_valid};
  std::vector<step> out;
  const auto status = status_of(view);
  if (reported || !view.whole || !status.is_object()) return out;
  for (const auto& entry : list_of(status, "conditions")) {
    const auto type = kube::text_in(entry, "type"), is = kube::text_in(entry, "status");
    const auto reason = kube::text_in(entry, "reason");
    const auto message = controller::quoted_message_of(entry);
    if (std::ranges::find(others, type) != std::end(others)) continue;
    if (type == container_runtime::runtimes_fixed)
      out.push_back(runtimes_step(is, reason, message));
    else if (type == extender::withdrawals_held_back)
      out.push_back(with_value(
          is == "True" ? wrong(stage::health, stage_code::withdrawals_held_back) : good(stage::health), message));
    else if (type == watches_refused)
      out.push_back(
          with_value(is == "True" ? wrong(stage::policy, stage_code::watches_refused) : good(stage::policy), message));
    else
      out.push_back(unknown_condition(type, is + ", " + reason, message));
  }
  return out;
}

/// Limits that people believe in and no one asks about. What the operator has said nothing of yet is unknown.
std::vector<step> quota_steps(const cluster_view& view, bool reported) {
  std::vector<step> out;
  if (view.quotas.empty()) return out;
  if (reported) return {skipped(stage::quotas)};
  std::string names, unknown;
  text::phrase message;
  std::size_t enforced = 0;
  for (const auto& entry : view.quotas) {
    const auto status = nlohmann::json::parse(entry.status, nullptr, false);
    for (const auto type : {models_condition, pools_condition, cohort_condition})
      if (const auto part = condition_of(status, type); kube::text_in(part, "status") == "False")
        out.push_back(with_other(warning(stage::quotas, stage_code::quota_counts_in_part, entry.key.to_string()),
                                 controller::quoted_message_of(part)));
    const auto is = condition_of(status, enforced_condition);
    if (kube::text_in(is, "status") == "True") ++enforced;
    if (kube::text_in(is, "status") != "True" && kube::text_in(is, "status") != "False")
      append(unknown, entry.key.to_string());
    if (kube::text_in(is, "status") != "False") continue;
    append(names, entry.key.to_string());
    message = controller::quoted_message_of(is);
  }
  if (!unknown.empty())
    out.push_back({stage::quotas, outcome::unknown, stage_code::quota_not_looked_at, unknown, {}, {}});
  if (!names.empty())
    out.push_back(with_other(wrong(stage::quotas, stage_code::quota_not_enforced, names), message));
  else if (enforced > 0)
    out.push_back(good(stage::quotas, std::to_string(enforced)));
  return out;
}

/// Limits in kube-system/gpuquota that no one could read.
std::vector<step> old_quotas_steps(const cluster_view& view) {
  if (!view.whole) return {};
  if (!view.old_quotas_unseen.empty())
    return {unseen(stage::quotas, {"verify.step.old_quotas", {{"reason", view.old_quotas_unseen}}})};
  if (view.old_quotas_trouble.empty()) return {};
  return {with_other(wrong(stage::quotas, stage_code::old_quotas_unreadable), view.old_quotas_trouble)};
}

/// Trouble with the plugin's pods on one of the nodes, which is why its DaemonSet is not rolled out.
bool told_of_a_node(const report& so_far, std::string_view module) {
  return std::ranges::any_of(so_far.nodes, [&](const node_walk& node_walk) {
    return node_walk.mode == module && std::ranges::any_of(node_walk.steps, [](const step& step) {
             return (is_wrong(step) || step.is == outcome::changing) &&
                    (step.position == stage::plugin || step.position == stage::preflight ||
                     step.cause == stage_code::node_not_ready || step.cause == stage_code::change_under_way ||
                     step.cause == stage_code::waits_for_pods);
           });
  });
}

std::vector<step> daemon_set_steps(const cluster_view& view, const report& so_far, bool reported) {
  const auto position = stage::daemon_sets;
  std::vector<step> out;
  if (!view.policy) return out;
  if (!view.sets_unseen.empty()) return {unseen(position, view.sets_unseen)};
  for (const auto& mode : modules::offered_by(&*view.policy).rows()) {
    if (!view.policy->enabled(mode.name)) continue;
    const auto serves = [&](const node_walk& node_walk) { return node_walk.mode == mode.name; };
    if (!view.whole && std::ranges::none_of(so_far.nodes, serves)) continue;
    const auto found = std::ranges::find_if(view.daemon_sets, [&](const kube::daemon_set& set) {
      return set.labels.value_or(api::names::module_label, "") == mode.name;
    });
    const std::string name(mode.daemon_set);
    if (found == view.daemon_sets.end()) {
      out.push_back(reported ? skipped(position)
                             : wrong(position, stage_code::daemon_set_missing, name, std::string(mode.name)));
      continue;
    }
    const auto progress = of_total(found->available, found->desired);
    // A pod counts as available some seconds after it is ready; until then nothing is wrong.
    auto soon = *found;
    soon.available = std::max(soon.available, soon.ready);
    if (soon.rolled_out())
      out.push_back(good(position, name, progress));
    else if (!view.whole || told_of_a_node(so_far, mode.name) || !halted_on(view, mode.name).empty())
      out.push_back(skipped(position));
    else if (soon.available >= soon.desired && soon.observed_generation >= soon.generation && soon.misscheduled == 0)
      out.push_back({position,
                     outcome::changing,
                     stage_code::daemon_set_updating,
                     name,
                     of_total(soon.updated, soon.desired),
                     {}});
    else
      out.push_back(wrong(position, stage_code::daemon_set_not_rolled_out, name, progress));
  }
  return out;
}

}  // namespace

report walk(const cluster_view& view) {
  report out;
  const auto leader = leader_step(view);
  const bool leaderless = is_wrong(leader) || !view.missing_types.empty();
  for (const auto& node : view.nodes) out.nodes.push_back(walk_node(view, node, leaderless));
  const auto types = types_step(view);
  const auto policy = policy_step(view, leaderless);
  out.cluster = {types, policy};
  for (auto& entry : rules_step(view, leaderless || is_wrong(types))) out.cluster.push_back(std::move(entry));
  for (auto& daemon_set_step : daemon_set_steps(view, out, leaderless || is_wrong(policy) || is_wrong(types)))
    out.cluster.push_back(std::move(daemon_set_step));
  for (auto& scheduler_step : scheduler_steps(
           view, !is_wrong(leader), leaderless || is_wrong(types) || policy.cause == stage_code::policy_not_looked_at))
    out.cluster.push_back(std::move(scheduler_step));
  for (auto& caller_step : caller_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(caller_step));
  for (auto& condition_step : condition_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(condition_step));
  for (auto& quota_step : quota_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(quota_step));
  for (auto& declaration_step : declaration_steps(view)) out.cluster.push_back(std::move(declaration_step));
  for (auto& old_quotas_step : old_quotas_steps(view)) out.cluster.push_back(std::move(old_quotas_step));
  if (!view.view_api_problem.empty())
    out.cluster.push_back(wrong(stage::view_api, stage_code::view_api_silent, view.view_api_problem));
  if (!view.slices_unseen.empty()) out.cluster.push_back(unseen(stage::other_plugins, view.slices_unseen));
  if (!view.labels_unseen.empty()) out.cluster.push_back(unseen(stage::label, view.labels_unseen));
  out.cluster.push_back(leader);
  return out;
}

report about_node(report of_node, const report& all) {
  const auto is_apart = [](const step& step) {
    return step.position == stage::rules || step.position == stage::quotas || step.position == stage::view_api;
  };
  std::erase_if(of_node.cluster, is_apart);
  const auto is_kept = [&](const step& finding) {
    return std::ranges::any_of(of_node.cluster, [&](const step& step) {
      return step.position == finding.position && step.cause == finding.cause && step.value == finding.value;
    });
  };
  of_node.other_findings = static_cast<std::size_t>(
      std::ranges::count_if(all.cluster, [&](const step& step) { return is_finding(step) && !is_kept(step); }));
  return of_node;
}

std::size_t problems(const report& report) {
  auto out = static_cast<std::size_t>(std::ranges::count_if(report.cluster, is_wrong));
  for (const auto& node : report.nodes) out += static_cast<std::size_t>(std::ranges::count_if(node.steps, is_wrong));
  return out;
}

bool all_good(const report& report) {
  const auto is_good = [](const step& step) { return step.is == outcome::good || step.is == outcome::skipped; };
  return std::ranges::all_of(report.cluster, is_good) && std::ranges::all_of(report.nodes, [&](const node_walk& node) {
           return std::ranges::all_of(node.steps, is_good);
         });
}

bool unsettled(const report& report) {
  const auto passing = [](const step& step) {
    return step.cause == stage_code::policy_not_looked_at || step.cause == stage_code::not_enrolled ||
           step.cause == stage_code::enrolment_behind;
  };
  return std::ranges::any_of(report.cluster, passing) ||
         std::ranges::any_of(report.nodes,
                             [&](const node_walk& node_walk) { return std::ranges::any_of(node_walk.steps, passing); });
}

kube::quantities asked_by(const kube::pod& pod) {
  // An init container runs next to the sidecars that were started before it (KEP-753).
  std::map<std::string, std::int64_t> running, most;
  for (const auto& entry : pod.containers) {
    for (const auto& [name, amount] : entry.limits) {
      if (entry.kind != kube::container::role::init) {
        running[name] += amount;
        most[name] = std::max(most[name], running[name]);
      } else {
        most[name] = std::max(most[name], running[name] + amount);
      }
    }
  }
  return {most.begin(), most.end()};
}

}  // namespace reconcilers::verify
