#include "reconcilers/quotas/quota_status.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "controller/conditions.hpp"
#include "controller/sleep.hpp"
#include "reconcilers/quotas/limit_scope.hpp"
#include "text/list.hpp"

namespace reconcilers {

using nlohmann::json;

namespace {

/// All quotas of a namespace form one set of limits. Each quota shows only its own limits.
bool has(const api::accelerator_quota& object, const quota::standing& standing) {
  return std::ranges::any_of(object.hard, [&](const quota::tenant::limit& limit) {
    return limit.model == standing.model && limit.only == standing.only &&
           limit.nominal[static_cast<std::size_t>(standing.unit)];
  });
}

/// Used beyond the limit, and lent by no one: the pods were there before it.
std::int64_t beyond_limit(const quota::standing& standing) {
  return std::max<std::int64_t>(standing.used - standing.nominal, 0) - standing.borrowed;
}

/// "cards of Tesla-T4 6/4 (1 borrowed, 1 beyond the limit)"
std::string summary_of(const quota::standing& standing) {
  std::string out(api::unit_of(standing.unit));
  if (!standing.model.empty()) out += " of " + standing.model;
  out += scope_of(standing.only) + " " + std::to_string(standing.used) + "/" + std::to_string(standing.nominal);
  std::string excess;
  if (standing.borrowed > 0) excess = std::to_string(standing.borrowed) + " borrowed";
  if (const auto beyond = beyond_limit(standing); beyond > 0)
    excess += (excess.empty() ? "" : ", ") + std::to_string(beyond) + " beyond the limit";
  return excess.empty() ? out : out + " (" + excess + ")";
}

json row_of(const quota::standing& standing) {
  json row{{"units", std::string(api::unit_of(standing.unit))},
           {"max", standing.nominal},
           {"used", standing.used},
           {"borrowed", standing.borrowed},
           {"lent", standing.lent}};
  if (!standing.model.empty()) row["model"] = standing.model;
  if (!standing.only.pool.empty()) row["pool"] = standing.only.pool;
  if (standing.only.priority_from) row["priorityFrom"] = *standing.only.priority_from;
  if (standing.only.priority_to) row["priorityTo"] = *standing.only.priority_to;
  if (standing.only.isolated) row["isolation"] = quota::text_of(*standing.only.isolated);
  return row;
}

/// Our conditions as stored, so that an unchanged condition keeps its lastTransitionTime.
json conditions_of(const json& status) {
  json out = json::array();
  if (!status.is_object() || !status.contains("conditions")) return out;
  for (const auto type : {enforced_condition, models_condition, cohort_condition})
    if (const auto* there = controller::find_condition(status["conditions"], type)) out.push_back(*there);
  return out;
}

/// Did an earlier leader see a scheduler ask, and has this one had no chance to?
bool stays_enforced(const json& conditions, const quota_enforcement& enforced) {
  const auto* there = controller::find_condition(conditions, enforced_condition);
  return enforced.undecided && there && there->value("status", "") == "True" &&
         there->value("reason", "") == scheduler_asks;
}

bool names_models(const api::accelerator_quota& object) {
  return std::ranges::any_of(object.hard, [](const quota::tenant::limit& limit) { return !limit.model.empty(); });
}

void judge_models(json& conditions, const api::accelerator_quota& quota, const std::set<std::string>& models,
                  std::string_view now) {
  std::set<std::string> unknown;
  for (const auto& entry : quota.hard)
    if (!entry.model.empty() && !models.contains(entry.model)) unknown.insert(entry.model);
  if (!names_models(quota) || models.empty()) {
    controller::remove_condition(conditions, models_condition);
    return;
  }
  const bool sound = unknown.empty();
  controller::set_condition(
      conditions,
      {std::string(models_condition), sound ? "True" : "False", sound ? "CardsFound" : "NoSuchCard",
       sound ? text::phrase{"status.quota.models_known"}
             : text::phrase{"status.quota.no_such_card",
                            {{"unknown", text::joined(unknown)}, {"models", text::joined(models)}}},
       quota.generation},
      now);
}

/// A namespace is in one cohort, that of the first object that names one, by name.
void judge_cohort(json& conditions, const api::accelerator_quota& quota, std::string_view counted,
                  std::string_view now) {
  if (quota.cohort.empty() || counted.empty() || quota.cohort == counted) {
    controller::remove_condition(conditions, cohort_condition);
    return;
  }
  controller::set_condition(
      conditions,
      {std::string(cohort_condition), "False", "AnotherCohort",
       text::phrase{"status.quota.other_cohort",
                    {{"cohort", quota.cohort}, {"namespace", quota.key.ns}, {"counted", std::string(counted)}}},
       quota.generation},
      now);
}

}  // namespace

json status_of(const api::accelerator_quota& quota, const quota_view& view, std::string_view now) {
  json hard = json::array(), refusals = json::array();
  std::string summary;
  for (const auto& standing : view.standings) {
    if (!has(quota, standing)) continue;
    hard.push_back(row_of(standing));
    summary += (summary.empty() ? "" : ", ") + summary_of(standing);
  }
  std::int64_t all = 0;
  for (const auto& [reason, pods] : view.waiting) {
    refusals.push_back({{"reason", reason}, {"pods", pods}});
    all += pods;
  }
  auto conditions = conditions_of(json::parse(quota.status, nullptr, false));
  if (!stays_enforced(conditions, view.enforced))
    controller::set_condition(conditions,
                              {std::string(enforced_condition), view.enforced.holds ? "True" : "False",
                               view.enforced.reason, view.enforced.message, quota.generation},
                              now);
  judge_models(conditions, quota, view.models, now);
  judge_cohort(conditions, quota, view.cohort, now);
  return {
      {"observedGeneration", quota.generation}, {"summary", summary},      {"waiting", all}, {"hard", std::move(hard)},
      {"refusals", std::move(refusals)},        {"conditions", conditions}};
}

kube::task<void> quota_status::write(kube::object_key key, kube::uid id, json status) {
  const json object{{"apiVersion", api::accelerator_quota::of().api_version()},
                    {"kind", api::accelerator_quota::of().kind},
                    {"metadata", {{"name", key.name}, {"namespace", key.ns}, {"uid", id.to_string()}}},
                    {"status", std::move(status)}};
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  const auto done = co_await status_.apply(dependencies_.api, api::accelerator_quota::of(), key, object, options);
  const bool gone = !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
  if (!done && !gone) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

kube::task<void> quota_status::turn() {
  struct look {
    kube::object_key key;
    kube::uid id;
    inputs inputs;
  };
  const auto enforced = dependencies_.enforced();
  const auto waiting = dependencies_.waiting();
  const auto models = dependencies_.models();
  std::vector<look> due;
  std::map<kube::uid, inputs> settled;
  for (const auto& entry : dependencies_.quotas.all()) {
    const auto held = waiting.find(entry.key.ns);
    inputs now{entry.resource_version, dependencies_.limits ? dependencies_.limits->version_of(entry.key.ns) : 0,
               held == waiting.end() ? held_back() : held->second, enforced,
               names_models(entry) ? models : std::set<std::string>()};
    const auto before = last_.find(entry.id);
    if (before != last_.end() && before->second == now)
      settled.insert(last_.extract(before));
    else
      due.push_back({entry.key, entry.id, std::move(now)});
  }
  last_ = std::move(settled);
  std::map<std::string, std::vector<quota::standing>, std::less<>> standings;  // by namespace, of changed cohorts
  for (auto& entry : due) {
    co_await controller::yield_to_others();
    const auto* quota = dependencies_.quotas.find(entry.key);
    if (!quota || quota->id != entry.id) continue;
    if (dependencies_.limits && !standings.contains(entry.key.ns)) {
      standings.merge(dependencies_.limits->standings_together(entry.key.ns));
      standings.try_emplace(entry.key.ns);
    }
    auto status = status_of(*quota,
                            {standings[entry.key.ns], entry.inputs.waiting, enforced, models,
                             dependencies_.limits ? dependencies_.limits->cohort_of(entry.key.ns) : ""},
                            controller::rfc3339_seconds(std::chrono::system_clock::now()));
    const auto there = json::parse(quota->status, nullptr, false);
    const bool is_same = there == status || (status_.lacks_codes() && there == controller::without_codes(status));
    const bool news = there.is_discarded() || !is_same;
    const bool first = !there.is_object() || !there.contains("conditions") ||
                       !controller::find_condition(there["conditions"], enforced_condition) ||
                       controller::condition_true(there["conditions"], enforced_condition);
    if (first && !enforced.holds && !stays_enforced(conditions_of(there), enforced))
      dependencies_.events.record({api::accelerator_quota::of(), *quota}, controller::event_type::warning,
                                  "QuotaNotEnforced", "Check", words_of(enforced.message, text::language::en));
    if (news) {
      auto done = co_await write(entry.key, entry.id, std::move(status));
      if (!done) co_return done;
      continue;  // the next turn looks again, until the watch shows this status
    }
    last_[entry.id] = std::move(entry.inputs);
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers
