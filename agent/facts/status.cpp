#include "agent/facts/status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/list.hpp"

namespace agent::facts {
namespace {

using nlohmann::json;

struct summary {
  std::string status, reason, message;
};

std::vector<std::string> in_state(const std::vector<row>& rows, check_state state, bool with_found) {
  std::vector<std::string> out;
  for (const auto& row : rows)
    if (row.state == state) out.push_back(with_found ? row.check + " (" + row.found + ")" : row.check);
  return out;
}

summary summed_up(const std::vector<row>& rows) {
  const auto failed = in_state(rows, check_state::failed, true), warnings = in_state(rows, check_state::warning, true);
  const auto unknown = in_state(rows, check_state::unknown, false);
  std::string more;
  if (!warnings.empty()) more += "; warnings: " + text::joined(warnings);
  if (!unknown.empty()) more += "; not known: " + text::joined(unknown);
  if (!failed.empty())
    return {"False", "CheckFailed", "failed: " + text::joined(failed) + more + "; status.preflight says what to do"};
  const auto passed = static_cast<std::size_t>(std::ranges::count(rows, check_state::ok, &row::state));
  return {"True", warnings.empty() ? "ChecksPassed" : "Warnings", text::counted(passed, "check") + " passed" + more};
}

std::string text_in(const json& object, const char* key) {
  const auto match = object.find(key);
  return match != object.end() && match->is_string() ? match->get<std::string>() : std::string();
}

check_state state_of(const std::string& word) {
  for (const auto state : {check_state::ok, check_state::warning, check_state::failed})
    if (to_string(state) == word) return state;
  return check_state::unknown;
}

}  // namespace

kube::result<reported_node> reported_node::decode(std::string_view bytes) {
  auto known = api::accelerator_node::decode(bytes);
  if (!known) return std::unexpected(std::move(known.error()));
  reported_node out;
  static_cast<api::accelerator_node&>(out) = std::move(*known);
  const auto object = json::parse(bytes, nullptr, false);
  const auto status = object.is_object() ? object.value("status", json::object()) : json::object();
  if (!status.is_object()) return out;
  out.other_cards = api::other_cards_in(status);
  if (const auto rows = status.find("preflight"); rows != status.end() && rows->is_array())
    for (const auto& row : *rows)
      if (row.is_object())
        out.rows.push_back(
            {text_in(row, "check"), state_of(text_in(row, "state")), text_in(row, "found"), text_in(row, "remedy")});
  if (const auto conditions = status.find("conditions"); conditions != status.end() && conditions->is_array())
    for (const auto& condition : *conditions) {
      if (!condition.is_object() || text_in(condition, "type") != "PreflightPassed") continue;
      out.passed = text_in(condition, "status");
      out.passed_since = text_in(condition, "lastTransitionTime");
    }
  return out;
}

json status_of(const std::vector<row>& rows, const std::vector<api::other_card>& other_cards,
               const reported_node& before, const std::string& now) {
  const auto condition = summed_up(rows);
  json out;
  out["preflight"] = json::array();
  for (const auto& row : rows) {
    json entry = {{"check", row.check}, {"state", to_string(row.state)}, {"found", row.found}};
    if (!row.remedy.empty()) entry["remedy"] = row.remedy;
    out["preflight"].push_back(std::move(entry));
  }
  for (const auto& card : other_cards) out["otherCards"].push_back(api::json_of(card));
  const bool is_same = before.passed == condition.status && !before.passed_since.empty();
  out["conditions"] = {{{"type", "PreflightPassed"},
                        {"status", condition.status},
                        {"reason", condition.reason},
                        {"message", condition.message},
                        {"lastTransitionTime", is_same ? before.passed_since : now}}};
  return out;
}

bool says(const reported_node& node, const std::vector<row>& rows, const std::vector<api::other_card>& other_cards) {
  return node.passed == summed_up(rows).status && node.rows == rows && node.other_cards == other_cards;
}

}  // namespace agent::facts
