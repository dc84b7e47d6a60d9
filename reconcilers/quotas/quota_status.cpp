#include "reconcilers/quotas/quota_status.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "controller/conditions.hpp"
#include "controller/sleep.hpp"

namespace reconcilers {

using nlohmann::json;

namespace {

/// Several objects of a namespace are one set of limits; each shows those that it has.
bool has(const accelerator_quota& of, const quota::standing& what) {
  return std::ranges::any_of(of.hard, [&](const quota::tenant::limit& one) {
    return one.model == what.model && one.only == what.only && one.nominal[static_cast<std::size_t>(what.of)];
  });
}

json row_of(const quota::standing& of) {
  json row{{"units", std::string(unit_of(of.of))},
           {"max", of.nominal},
           {"used", of.used},
           {"borrowed", of.borrowed},
           {"lent", of.lent}};
  if (!of.model.empty()) row["model"] = of.model;
  if (!of.only.pool.empty()) row["pool"] = of.only.pool;
  if (of.only.priority_from) row["priorityFrom"] = *of.only.priority_from;
  if (of.only.priority_to) row["priorityTo"] = *of.only.priority_to;
  if (of.only.isolated) row["isolation"] = quota::text_of(*of.only.isolated);
  return row;
}

/// " in pool a, isolation cores, priority 5 to 9": of which pods and cards a limit counts, where not of all.
std::string scope_of(const quota::scope& only) {
  std::string out;
  if (!only.pool.empty()) out += " in pool " + only.pool;
  if (only.isolated) out += " with isolation " + std::string(quota::text_of(*only.isolated));
  if (only.priority_from) out += " from priority " + std::to_string(*only.priority_from);
  if (only.priority_to) out += " up to priority " + std::to_string(*only.priority_to);
  return out;
}

/// Ours as they stand there, so that the time of one stays when it does.
json conditions_of(const json& status) {
  json out = json::array();
  if (!status.is_object() || !status.contains("conditions")) return out;
  for (const auto type : {enforced_condition, models_condition})
    if (const auto* there = controller::find_condition(status["conditions"], type)) out.push_back(*there);
  return out;
}

bool names_models(const accelerator_quota& of) {
  return std::ranges::any_of(of.hard, [](const quota::tenant::limit& one) { return !one.model.empty(); });
}

std::string listed(const auto& all) {
  std::string out;
  for (const auto& one : all) (out += out.empty() ? "" : ", ") += one;
  return out;
}

void judge_models(json& conditions, const accelerator_quota& of, const std::set<std::string>& models,
                  std::string_view now) {
  std::set<std::string> unknown;
  for (const auto& one : of.hard)
    if (!one.model.empty() && !models.contains(one.model)) unknown.insert(one.model);
  if (!names_models(of) || models.empty()) {
    controller::remove_condition(conditions, models_condition);
    return;
  }
  const bool sound = unknown.empty();
  controller::set_condition(
      conditions,
      {std::string(models_condition), sound ? "True" : "False", sound ? "CardsFound" : "NoSuchCard",
       sound ? "there are cards of each model that is named"
             : "no node has a card of model " + listed(unknown) + ", so that limit counts nothing; " +
                   "models there are: " + listed(models),
       of.generation},
      now);
}

}  // namespace

json status_of(const accelerator_quota& of, const quota_view& view, std::string_view now) {
  json hard = json::array(), refusals = json::array();
  std::string summary;
  for (const auto& one : view.standings) {
    if (!has(of, one)) continue;
    hard.push_back(row_of(one));
    summary += (summary.empty() ? "" : ", ") + std::string(unit_of(one.of)) +
               (one.model.empty() ? "" : " of " + one.model) + scope_of(one.only) + " " + std::to_string(one.used) +
               "/" + std::to_string(one.nominal) +
               (one.borrowed > 0 ? " (" + std::to_string(one.borrowed) + " borrowed)" : "");
  }
  std::int64_t all = 0;
  for (const auto& [reason, pods] : view.waiting) {
    refusals.push_back({{"reason", reason}, {"pods", pods}});
    all += pods;
  }
  auto conditions = conditions_of(json::parse(of.status, nullptr, false));
  controller::set_condition(conditions,
                            {std::string(enforced_condition), view.enforced.holds ? "True" : "False",
                             view.enforced.reason, view.enforced.message, of.generation},
                            now);
  judge_models(conditions, of, view.models, now);
  return {{"observedGeneration", of.generation}, {"summary", summary},      {"waiting", all}, {"hard", std::move(hard)},
          {"refusals", std::move(refusals)},     {"conditions", conditions}};
}

kube::task<void> quota_status::write(kube::object_key key, kube::uid id, json status) {
  const json object{{"apiVersion", accelerator_quota::of().api_version()},
                    {"kind", accelerator_quota::of().kind},
                    {"metadata", {{"name", key.name}, {"namespace", key.ns}, {"uid", id.to_string()}}},
                    {"status", std::move(status)}};
  kube::write_options how;
  how.field_manager = names::field_owner;
  how.force = true;
  const auto done = co_await by_.api.apply_status(accelerator_quota::of(), key, object, how);
  const bool gone = !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
  if (!done && !gone) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

kube::task<void> quota_status::turn() {
  struct look {
    kube::object_key key;
    kube::uid id;
    seen from;
  };
  const auto enforced = by_.enforced();
  const auto waiting = by_.waiting();
  const auto models = by_.models();
  std::vector<look> due;
  std::map<kube::uid, seen> settled;
  for (const auto& one : by_.quotas.all()) {
    const auto held = waiting.find(one.key.ns);
    seen now{one.resource_version, by_.limits ? by_.limits->version_of(one.key.ns) : 0,
             held == waiting.end() ? held_back() : held->second, enforced,
             names_models(one) ? models : std::set<std::string>()};
    const auto before = last_.find(one.id);
    if (before != last_.end() && before->second == now)
      settled.insert(last_.extract(before));
    else
      due.push_back({one.key, one.id, std::move(now)});
  }
  last_ = std::move(settled);
  std::map<std::string, std::vector<quota::standing>, std::less<>> standings;  // of cohorts that something changed in
  for (auto& one : due) {
    co_await controller::yield_to_others();
    const auto* quota = by_.quotas.find(one.key);
    if (!quota || quota->id != one.id) continue;
    if (by_.limits && !standings.contains(one.key.ns)) {
      standings.merge(by_.limits->standings_together(one.key.ns));
      standings.try_emplace(one.key.ns);
    }
    auto status = status_of(*quota, {standings[one.key.ns], one.from.waiting, enforced, models},
                            controller::rfc3339_seconds(std::chrono::system_clock::now()));
    const auto there = json::parse(quota->status, nullptr, false);
    const bool news = there.is_discarded() || there != status;
    const bool first = !there.is_object() || !there.contains("conditions") ||
                       !controller::find_condition(there["conditions"], enforced_condition) ||
                       controller::condition_true(there["conditions"], enforced_condition);
    if (first && !enforced.holds)
      by_.events.record({accelerator_quota::of(), *quota}, controller::event_type::warning, "QuotaNotEnforced", "Check",
                        enforced.message);
    if (news) {
      auto done = co_await write(one.key, one.id, std::move(status));
      if (!done) co_return done;
      continue;  // looked at again when the watch shows it
    }
    last_[one.id] = std::move(one.from);
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers
