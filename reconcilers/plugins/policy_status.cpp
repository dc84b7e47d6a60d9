#include "reconcilers/plugins/policy_status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/conditions.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/extender/brake.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;

struct status_summary {
  std::string status, reason, message;
};

std::string progress(const module_row& row) {
  return std::string(row.name) + " " + std::to_string(row.ready) + "/" + std::to_string(row.desired);
}

std::string joined(const std::vector<module_row>& rows, auto&& describe, auto&& matches, std::string_view separator) {
  std::string out;
  for (const auto& row : rows) {
    if (matches(row)) (out += out.empty() ? std::string_view() : separator) += describe(row);
  }
  return out;
}

std::string progress_of_rollout(const module_row& row) {
  return progress(row) + (row.rolling.empty() ? "" : " (" + row.rolling + ")");
}

/// The row of that module in the present status; an empty object where there is none.
json row_before(const json& before, const module_row& row) {
  if (!before.is_object()) return json::object();
  for (const auto& entry : before.value("modules", json::array())) {
    if (entry.is_object() && entry.value("name", "") == row.name) return entry;
  }
  return json::object();
}

/// The image a module had before the one it has now, from what its status said last. One that never came to all nodes
/// is nothing to go back to.
std::string image_before(const json& was, const module_row& row) {
  const auto image = was.value("image", ""), earlier = was.value("previousImage", "");
  if (image.empty() || row.image.empty() || image == row.image) return earlier;
  const bool halfway = was.value("updated", 0) < was.value("desired", 0);
  return halfway && !earlier.empty() && earlier != row.image ? earlier : image;
}

bool on(const module_row& row) { return row.enabled; }
bool wrong(const module_row& row) { return !row.problem.empty(); }
bool unfinished(const module_row& row) {
  return row.enabled && row.problem.empty() && !(row.applied && row.rolled_out);
}

json conditions_of(const json& before, std::initializer_list<std::pair<const char*, status_summary>> all,
                   std::int64_t generation, std::string_view now) {
  auto list = before.is_object() ? before.value("conditions", json::array()) : json::array();
  for (const auto& [type, is] : all)
    controller::set_condition(list, {type, is.status, is.reason, is.message, generation}, now);
  return list;
}

/// Since when it is so: another reason, version or configuration is a new beginning.
json schedulers_of(const std::optional<std::vector<scheduler_row>>& rows, const json& before, std::string_view now) {
  const auto previous = before.is_object() ? before.value("schedulers", json::array()) : json::array();
  if (!rows) return previous;
  auto out = json::array();
  for (const auto& row : *rows) {
    json object = {{"name", row.name},     {"mode", row.mode}, {"version", row.version}, {"checksum", row.checksum},
                   {"reason", row.reason}, {"since", now},     {"desired", row.desired}, {"ready", row.ready}};
    if (!row.message.empty()) object["message"] = row.message;
    for (const auto& was : previous) {
      const auto same = [&](const char* key) { return object.at(key) == was.value(key, ""); };
      if (was.is_object() && same("name") && same("reason") && same("version") && same("checksum"))
        object["since"] = was.value("since", std::string(now));
    }
    out.push_back(std::move(object));
  }
  return out;
}

}  // namespace

json policy_status(const std::vector<module_row>& rows, const accelerator_policy& policy, const json& before,
                   std::string_view now, const std::vector<controller::condition>& further,
                   const std::optional<std::vector<scheduler_row>>& schedulers) {
  const auto summary = joined(rows, progress, on, ", ");
  const auto bad = std::ranges::find_if(rows, wrong);
  const auto slow = std::ranges::find_if(rows, unfinished);
  const auto describe = [](const module_row& row) { return std::string(row.name) + ": " + row.message; };
  const status_summary degraded = bad != rows.end()
                                      ? status_summary{"True", bad->problem, joined(rows, describe, wrong, "; ")}
                                      : status_summary{"False", "AsExpected", ""};
  status_summary progressing =
      slow != rows.end() ? status_summary{"True", "RollingOut",
                                          "ready of desired: " + joined(rows, progress_of_rollout, unfinished, ", ")}
                         : status_summary{"False", "AsExpected", ""};
  status_summary ready{"True", "RolledOut", summary};
  if (bad != rows.end())
    ready = {"False", bad->problem, degraded.message};
  else if (slow != rows.end())
    ready = {"False", "RollingOut", progressing.message};
  else if (std::ranges::none_of(rows, on))
    ready = {"True", "NothingEnabled", "no module is on"};
  if (policy.removing) {
    std::int32_t left = 0;
    for (const auto& row : rows) left += row.nodes;
    const auto message = left == 0
                             ? std::string("every node has left its mode")
                             : std::to_string(left) + (left == 1 ? " node has" : " nodes have") + " still to leave";
    progressing = {left > 0 ? "True" : "False", "Removing", message};
    ready = {"False", "Removing",
             message + "; quartermaster uninstall goes on, quartermaster uninstall --cancel takes it back"};
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
    if (const auto& word = row.message.empty() ? row.rolling : row.message; !word.empty()) object["message"] = word;
    modules.push_back(std::move(object));
  }
  auto conditions = conditions_of(before, {{"Ready", ready}, {"Progressing", progressing}, {"Degraded", degraded}},
                                  policy.generation, now);
  for (const auto& entry : further) controller::set_condition(conditions, entry, now);
  // Without the extender no one withdraws a card or holds one back, and runtimes are fixed where the policy says so.
  for (const auto type : {extender::withdrawals_held_back, container_runtime::runtimes_fixed})
    if (std::ranges::find(further, type, &controller::condition::type) == further.end())
      controller::remove_condition(conditions, type);
  const bool said_of_schedulers =
      std::ranges::find(further, scheduler_ready, &controller::condition::type) != further.end();
  if (schedulers && !said_of_schedulers) controller::remove_condition(conditions, scheduler_ready);
  return {{"observedGeneration", policy.generation},
          {"summary", summary.empty() ? "none" : summary},
          {"modules", std::move(modules)},
          {"schedulers", schedulers_of(schedulers, before, now)},
          {"conditions", std::move(conditions)}};
}

json ignored_status(std::int64_t generation, const json& before, std::string_view now) {
  const status_summary is{
      "False", "Ignored",
      "only the AcceleratorPolicy named " + std::string(api::names::policy) + " counts; this one has no effect"};
  return {{"observedGeneration", generation}, {"conditions", conditions_of(before, {{"Ready", is}}, generation, now)}};
}

}  // namespace reconcilers
