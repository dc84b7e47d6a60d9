#pragma once
// Rows of `verify`, and what both of its walks read in the status of a policy.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reconcilers/verify/verify.hpp"

namespace reconcilers::verify {

/// More of a kind are not named in one row.
inline constexpr std::size_t most_named = 5;

/// With what the operator or we say, in both languages.
step with_other(step out, const text::phrase& message);
step with_value(step out, const text::phrase& message);

step unseen(stage stage, const text::phrase& reason);
step good(stage stage, std::string value = {}, std::string other = {});
step wrong(stage stage, stage_code code, std::string value = {}, std::string other = {});
step warning(stage stage, stage_code code, std::string value = {});
step skipped(stage stage);
outcome outcome_of(api::check_state state);
bool is_wrong(const step& step);
/// Wrong, changing, a warning, or not known.
bool is_finding(const step& step);

/// "3/5"
std::string of_total(std::int64_t some, std::int64_t all);
/// Behind a comma, where the list has something.
void append(std::string& list, std::string_view item);

nlohmann::json status_of(const cluster_view& view);
/// The members of a list in a status, which a file of `--snapshot` may have as anything.
nlohmann::json list_of(const nlohmann::json& status, const char* name);
/// The condition of that type; an empty object where there is none.
nlohmann::json condition_of(const nlohmann::json& status, std::string_view type);
/// What is wrong with a module, in a word, as the policy says of it; empty: nothing.
std::string problem_of(const cluster_view& view, std::string_view module);
/// The node on which the roll-out of a module halted; empty: none did.
std::string halted_on(const cluster_view& view, std::string_view module);

}  // namespace reconcilers::verify
