#include "reconcilers/quotas/quota_status.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
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
std::string words_of(const quota::standing& standing) {
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
  for (const auto type : {enforced_condition, models_condition, pools_condition, cohort_condition})
    if (const auto* there = controller::find_condition(status["conditions"], type)) out.push_back(*there);
  return out;
}

/// Did an earlier leader see a scheduler ask, and has this one had no chance to?
bool stays_enforced(const json& conditions, const quota_enforcement& enforced) {
  const auto* there = controller::find_condition(conditions, enforced_condition);
  return enforced.undecided && there && there->value("status", "") == "True" &&
         there->value("reason", "") == scheduler_asks;
}

std::set<std::string> named_models(const api::accelerator_quota& quota) {
  std::set<std::string> out;
  for (const auto& entry : quota.hard)
    if (!entry.model.empty()) out.insert(entry.model);
  return out;
}

std::set<std::string> named_pools(const api::accelerator_quota& quota) {
  std::set<std::string> out;
  for (const auto& entry : quota.hard)
    if (!entry.only.pool.empty()) out.insert(entry.only.pool);
  return out;
}

/// Of the named ones those that are not among the known ones.
std::set<std::string> unknown_names(const std::set<std::string>& named, const std::set<std::string>& known) {
  std::set<std::string> out;
  std::ranges::set_difference(named, known, std::inserter(out, out.end()));
  return out;
}

void judge_models(json& conditions, const api::accelerator_quota& quota, const std::optional<card_groups>& groups,
                  std::string_view now) {
  const auto named = named_models(quota);
  if (named.empty() || !groups || groups->models.empty()) {
    controller::remove_condition(conditions, models_condition);
    return;
  }
  const auto unknown = unknown_names(named, groups->models);
  const bool sound = unknown.empty();
  controller::set_condition(
      conditions,
      {std::string(models_condition), sound ? "True" : "False", sound ? "CardsFound" : "NoSuchCard",
       sound ? text::phrase{"status.quota.models_known"}
             : text::phrase{"status.quota.no_such_card",
                            {{"unknown", text::joined(unknown)}, {"models", text::joined(groups->models)}}},
       quota.generation},
      now);
}

void judge_pools(json& conditions, const api::accelerator_quota& quota, const std::optional<card_groups>& groups,
                 std::string_view now) {
  const auto named = named_pools(quota);
  if (named.empty() || !groups) {
    controller::remove_condition(conditions, pools_condition);
    return;
  }
  const auto unknown = unknown_names(named, groups->pools);
  text::phrase message{"status.quota.pools_known"};
  if (!unknown.empty())
    message = {groups->pools.empty() ? "status.quota.no_pool" : "status.quota.no_such_pool",
               {{"unknown", text::joined(unknown)}, {"pools", text::joined(groups->pools)}}};
  const bool sound = unknown.empty();
  controller::set_condition(conditions,
                            {std::string(pools_condition), sound ? "True" : "False",
                             sound ? "PoolsFound" : "NoSuchPool", std::move(message), quota.generation},
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

std::optional<card_groups> groups_of(const quota::ledger& book) {
  std::optional<card_groups> out;
  book.for_each_node([&](const quota::node_view& view) {
    if (view.inventory->cards.empty()) return;
    if (!out) out.emplace();
    if (!view.inventory->pool.empty()) out->pools.insert(view.inventory->pool);
    for (const auto& card : view.inventory->cards)
      if (!card.model.empty()) out->models.insert(card.model);
  });
  return out;
}

json status_of(const api::accelerator_quota& quota, const quota_view& view, std::string_view now) {
  json hard = json::array(), refusals = json::array();
  std::string summary;
  for (const auto& standing : view.standings) {
    if (!has(quota, standing)) continue;
    hard.push_back(row_of(standing));
    summary += (summary.empty() ? "" : ", ") + words_of(standing);
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
  judge_models(conditions, quota, view.groups, now);
  judge_pools(conditions, quota, view.groups, now);
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
  const auto names_groups = [](const api::accelerator_quota& quota) {
    return !named_models(quota).empty() || !named_pools(quota).empty();
  };
  std::optional<card_groups> groups;
  if (dependencies_.book && std::ranges::any_of(dependencies_.quotas.all(), names_groups))
    groups = groups_of(*dependencies_.book);
  std::vector<look> due;
  std::map<kube::uid, inputs> settled;
  for (const auto& entry : dependencies_.quotas.all()) {
    const auto held = waiting.find(entry.key.ns);
    inputs now{entry.resource_version, dependencies_.limits ? dependencies_.limits->version_of(entry.key.ns) : 0,
               held == waiting.end() ? held_back() : held->second, enforced,
               names_groups(entry) ? groups : std::nullopt};
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
                            {standings[entry.key.ns], entry.inputs.waiting, enforced, entry.inputs.groups,
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
