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
    if (row.state == state) out.push_back(with_found ? row.name + " (" + row.found + ")" : row.name);
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

}  // namespace

json status_of(const std::vector<row>& rows, const std::vector<api::other_card>& other_cards,
               const api::reported_node& before, const std::string& now) {
  const auto condition = summed_up(rows);
  json out;
  out["preflight"] = json::array();
  for (const auto& row : rows) {
    json entry = {{"check", row.name}, {"state", to_string(row.state)}, {"found", row.found}};
    if (!row.remedy.empty()) entry["remedy"] = row.remedy;
    if (!row.cause.empty()) entry["cause"] = row.cause;
    if (!row.parameters.empty()) entry["parameters"] = row.parameters;
    out["preflight"].push_back(std::move(entry));
  }
  for (const auto& card : other_cards) out["otherCards"].push_back(api::json_of(card));
  const bool is_same = before.preflight_passed == condition.status && !before.report.passed_since.empty();
  out["conditions"] = {{{"type", "PreflightPassed"},
                        {"status", condition.status},
                        {"reason", condition.reason},
                        {"message", condition.message},
                        {"lastTransitionTime", is_same ? before.report.passed_since : now}}};
  return out;
}

bool says(const api::reported_node& node, const std::vector<row>& rows,
          const std::vector<api::other_card>& other_cards) {
  return node.preflight_passed == summed_up(rows).status && node.report.checks == rows &&
         node.report.other_cards == other_cards;
}

}  // namespace agent::facts
