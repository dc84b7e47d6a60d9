#include "agent/facts/status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/coded_message.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

using nlohmann::json;

struct summary {
  std::string status, reason;
  text::phrase message;
};

text::phrase checks_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.checks." + std::string(key), std::move(arguments)};
}

/// KEY with the checks that ended so, each with what was found; nothing to say where there are none.
text::phrase found_in_state(std::string_view key, const std::vector<row>& rows, check_state state) {
  const auto list = [&](text::language locale) {
    std::vector<std::string> out;
    for (const auto& row : rows)
      if (row.state == state)
        out.push_back(row.name + " (" + (locale == text::language::en ? row.found : found_text(row, locale)) + ")");
    return text::joined(out);
  };
  const auto english = list(text::language::en);
  if (english.empty()) return {};
  return checks_phrase(key, {{"list", english, list(text::language::zh)}});
}

summary summed_up(const std::vector<row>& rows) {
  const auto failed = found_in_state("failed", rows, check_state::failed),
             warnings = found_in_state("warnings", rows, check_state::warning);
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (row.state == check_state::unknown) names.push_back(row.name);
  const auto unknown = names.empty() ? text::phrase() : checks_phrase("unknown", {{"list", text::joined(names)}});
  if (!failed.empty())
    return {"False", "CheckFailed", text::joined_by_semicolons({failed, warnings, unknown, checks_phrase("remedy")})};
  const auto passed = static_cast<std::size_t>(std::ranges::count(rows, check_state::ok, &row::state));
  return {"True", warnings.empty() ? "ChecksPassed" : "Warnings",
          text::joined_by_semicolons({text::counted_phrase(passed, "status.checks.passed"), warnings, unknown})};
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
  json entry = {{"type", "PreflightPassed"},
                {"status", condition.status},
                {"reason", condition.reason},
                {"lastTransitionTime", is_same ? before.report.passed_since : now}};
  controller::set_message(entry, condition.message);
  out["conditions"] = json::array({std::move(entry)});
  return out;
}

bool says(const api::reported_node& node, const std::vector<row>& rows,
          const std::vector<api::other_card>& other_cards) {
  return node.preflight_passed == summed_up(rows).status && node.report.checks == rows &&
         node.report.other_cards == other_cards;
}

}  // namespace agent::facts
