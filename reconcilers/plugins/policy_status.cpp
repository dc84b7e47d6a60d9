#include "reconcilers/plugins/policy_status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "controller/conditions.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/extender/brake.hpp"
#include "text/list.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;

struct status_summary {
  std::string status, reason;
  text::phrase message;
};

text::phrase policy_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.policy." + std::string(key), std::move(arguments)};
}

std::string progress(const module_row& row) {
  return std::string(row.name) + " " + std::to_string(row.ready) + "/" + std::to_string(row.desired);
}

std::vector<text::phrase> each_of(const std::vector<module_row>& rows, auto&& describe, auto&& matches) {
  std::vector<text::phrase> out;
  for (const auto& row : rows) {
    if (matches(row)) out.push_back(describe(row));
  }
  return out;
}

text::phrase progress_of_rollout(const module_row& row) {
  if (row.rolling.empty()) return progress(row);
  return policy_phrase("progress", {{"progress", progress(row)}, {"cause", row.rolling}});
}

/// The row of that module in the present status; an empty object where there is none.
json row_before(const json& before, const module_row& row) {
  if (!before.is_object()) return json::object();
  for (const auto& entry : before.value("modules", json::array())) {
    if (entry.is_object() && entry.value("name", "") == row.name) return entry;
  }
  return json::object();
}

/// The image a module had before its present one, from `previous`, the row of its last status. An image that never came
/// to all nodes is skipped, because no one wants to go back to it.
std::string image_before(const json& previous, const module_row& row) {
  const auto image = previous.value("image", ""), earlier = previous.value("previousImage", "");
  if (image.empty() || row.image.empty() || image == row.image) return earlier;
  const bool halfway = previous.value("updated", 0) < previous.value("desired", 0);
  return halfway && !earlier.empty() && earlier != row.image ? earlier : image;
}

bool is_on(const module_row& row) { return row.enabled; }
bool has_problem(const module_row& row) { return !row.problem.empty(); }
bool is_unfinished(const module_row& row) {
  return row.enabled && row.problem.empty() && !(row.applied && row.rolled_out);
}

json conditions_of(const json& before, std::initializer_list<std::pair<const char*, status_summary>> all,
                   std::int64_t generation, std::string_view now) {
  auto list = before.is_object() ? before.value("conditions", json::array()) : json::array();
  for (const auto& [type, summary] : all)
    controller::set_condition(list, {type, summary.status, summary.reason, summary.message, generation}, now);
  return list;
}

/// The rows with the time since when each is as it is: another reason, version or configuration starts it again.
json schedulers_of(const std::optional<std::vector<scheduler_row>>& rows, const json& before, std::string_view now) {
  const auto previous = before.is_object() ? before.value("schedulers", json::array()) : json::array();
  if (!rows) return previous;
  auto out = json::array();
  for (const auto& row : *rows) {
    json object = {{"name", row.name},     {"mode", row.mode}, {"version", row.version}, {"checksum", row.checksum},
                   {"reason", row.reason}, {"since", now},     {"desired", row.desired}, {"ready", row.ready}};
    if (!row.message.empty()) controller::set_message(object, row.message);
    for (const auto& entry : previous) {
      const auto same = [&](const char* key) { return object.at(key) == entry.value(key, ""); };
      if (entry.is_object() && same("name") && same("reason") && same("version") && same("checksum"))
        object["since"] = entry.value("since", std::string(now));
    }
    out.push_back(std::move(object));
  }
  return out;
}

}  // namespace

json policy_status(const std::vector<module_row>& rows, const accelerator_policy& policy, const json& before,
                   std::string_view now, const std::vector<controller::condition>& further,
                   const std::optional<std::vector<scheduler_row>>& schedulers) {
  std::vector<std::string> progress_of_all;
  for (const auto& row : rows)
    if (row.enabled) progress_of_all.push_back(progress(row));
  const auto summary = text::joined(progress_of_all);
  const auto bad = std::ranges::find_if(rows, has_problem);
  const auto slow = std::ranges::find_if(rows, is_unfinished);
  const auto describe = [](const module_row& row) {
    return policy_phrase("module", {{"module", std::string(row.name)}, {"message", row.message}});
  };
  status_summary degraded{"False", "AsExpected", {}}, progressing{"False", "AsExpected", {}};
  if (bad != rows.end())
    degraded = {"True", bad->problem, text::joined_by_semicolons(each_of(rows, describe, has_problem))};
  if (slow != rows.end())
    progressing = {
        "True", "RollingOut",
        policy_phrase("ready_of_desired",
                      {{"list", text::joined_by_commas(each_of(rows, progress_of_rollout, is_unfinished))}})};
  status_summary ready{"True", "RolledOut", summary};
  if (bad != rows.end())
    ready = {"False", bad->problem, degraded.message};
  else if (slow != rows.end())
    ready = {"False", "RollingOut", progressing.message};
  else if (std::ranges::none_of(rows, is_on))
    ready = {"True", "NothingEnabled", policy_phrase("nothing_on")};
  if (policy.removing) {
    std::int32_t left = 0;
    for (const auto& row : rows) left += row.nodes;
    const auto message = left == 0
                             ? policy_phrase("all_left")
                             : text::counted_phrase(static_cast<std::size_t>(left), "status.policy.still_to_leave");
    progressing = {left > 0 ? "True" : "False", "Removing", message};
    ready = {"False", "Removing", policy_phrase("removing", {{"progress", message}})};
  }

  auto modules = json::array();
  for (const auto& row : rows) {
    json object = {{"name", row.name},   {"enabled", row.enabled}, {"desired", row.desired},
                   {"ready", row.ready}, {"nodes", row.nodes},     {"isolation", row.isolation}};
    if (!row.image.empty()) {
      object["image"] = row.image;
      object["updated"] = row.updated;
    }
    if (auto image = image_before(row_before(before, row), row); !image.empty())
      object["previousImage"] = std::move(image);
    if (!row.problem.empty()) object["problem"] = row.problem;
    if (const auto& word = row.message.empty() ? row.rolling : row.message; !word.empty())
      controller::set_message(object, word);
    modules.push_back(std::move(object));
  }
  auto conditions = conditions_of(before, {{"Ready", ready}, {"Progressing", progressing}, {"Degraded", degraded}},
                                  policy.generation, now);
  for (const auto& entry : further) controller::set_condition(conditions, entry, now);
  // These are only there while their part runs, the extender and the fixing of runtimes that the policy asks for, or
  // while a right is missing.
  for (const auto type : {extender::withdrawals_held_back, container_runtime::runtimes_fixed, watches_refused})
    if (std::ranges::find(further, type, &controller::condition::type) == further.end())
      controller::remove_condition(conditions, type);
  const bool has_scheduler_condition =
      std::ranges::find(further, scheduler_ready, &controller::condition::type) != further.end();
  if (schedulers && !has_scheduler_condition) controller::remove_condition(conditions, scheduler_ready);
  return {{"observedGeneration", policy.generation},
          {"summary", summary.empty() ? "none" : summary},
          {"modules", std::move(modules)},
          {"schedulers", schedulers_of(schedulers, before, now)},
          {"conditions", std::move(conditions)}};
}

controller::condition refused_condition(const std::vector<std::string>& resources, std::int64_t generation) {
  return {std::string(watches_refused), "True", "Forbidden",
          policy_phrase("watches_refused", {{"list", text::joined(resources)}}), generation};
}

json ignored_status(std::int64_t generation, const json& before, std::string_view now) {
  const status_summary ignored{"False", "Ignored",
                               policy_phrase("ignored", {{"name", std::string(api::names::policy)}})};
  return {{"observedGeneration", generation},
          {"conditions", conditions_of(before, {{"Ready", ignored}}, generation, now)}};
}

}  // namespace reconcilers
