#include "reconcilers/verify/steps.hpp"

#include <algorithm>

#include "api/memory.hpp"
#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"

namespace reconcilers::verify {

step with_other(step out, const text::phrase& message) {
  out.other = words_of(message, text::language::en);
  out.other_zh = words_of(message, text::language::zh);
  return out;
}
step with_value(step out, const text::phrase& message) {
  out.value = words_of(message, text::language::en);
  out.value_zh = words_of(message, text::language::zh);
  return out;
}
step unseen(stage stage, const text::phrase& reason) {
  return with_other({stage, outcome::unknown, stage_code::none, {}, {}, {}}, reason);
}
step good(stage stage, std::string value, std::string other) {
  return {stage, outcome::good, stage_code::none, std::move(value), std::move(other), {}};
}
step wrong(stage stage, stage_code code, std::string value, std::string other) {
  return {stage, outcome::wrong, code, std::move(value), std::move(other), {}};
}
step warning(stage stage, stage_code code, std::string value) {
  return {stage, outcome::warning, code, std::move(value), {}, {}};
}
step skipped(stage stage) { return {stage, outcome::skipped, stage_code::none, {}, {}, {}}; }
outcome outcome_of(api::check_state state) {
  switch (state) {
    case api::check_state::ok:
      return outcome::good;
    case api::check_state::warning:
      return outcome::warning;
    case api::check_state::failed:
      return outcome::wrong;
    case api::check_state::unknown:
      return outcome::unknown;
    case api::check_state::not_needed:
      return outcome::skipped;
  }
  return outcome::unknown;
}
bool is_wrong(const step& step) { return step.is == outcome::wrong; }
bool is_finding(const step& step) { return step.is != outcome::good && step.is != outcome::skipped; }

std::string of_total(std::int64_t some, std::int64_t all) { return std::to_string(some) + "/" + std::to_string(all); }

void append(std::string& list, std::string_view item) { (list += list.empty() ? "" : ", ") += item; }

nlohmann::json status_of(const cluster_view& view) {
  return view.policy ? nlohmann::json::parse(view.policy->status, nullptr, false) : nlohmann::json();
}

nlohmann::json list_of(const nlohmann::json& status, const char* name) {
  const auto match = status.find(name);
  return match != status.end() && match->is_array() ? *match : nlohmann::json::array();
}

nlohmann::json condition_of(const nlohmann::json& status, std::string_view type) {
  if (!status.is_object()) return nlohmann::json::object();
  for (const auto& entry : list_of(status, "conditions")) {
    if (entry.is_object() && kube::text_in(entry, "type") == type) return entry;
  }
  return nlohmann::json::object();
}

std::string problem_of(const cluster_view& view, std::string_view module) {
  const auto status = status_of(view);
  if (!status.is_object()) return {};
  for (const auto& entry : list_of(status, "modules"))
    if (entry.is_object() && kube::text_in(entry, "name") == module) return kube::text_in(entry, "problem");
  return {};
}

std::string halted_on(const cluster_view& view, std::string_view module) {
  // Asked for each node, and the status is parsed each time: where nothing has halted it is not read at all.
  if (!view.policy || !view.policy->status.contains("RolloutHalted")) return {};
  if (problem_of(view, module) != "RolloutHalted") return {};
  for (const auto& set : view.daemon_sets) {
    const auto note = api::remembered(set.annotations, api::names::rollout_annotation);
    if (!note || set.labels.value_or(api::names::module_label, "") != module) continue;
    const auto record = rollout_record::parse(*note, set.key.name);
    if (record) return record->node;
  }
  return {};
}

}  // namespace reconcilers::verify
