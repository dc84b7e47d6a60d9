#pragma once
// `quartermaster report capacity`: what cards of each model and mode can still take. The numbers are those of the
// console's capacity view, which this prints.

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "cli/explain/answer_form.hpp"

namespace cli {

/// `view` is the console's (console/api.md).
void print_capacity(const nlohmann::ordered_json& view, const report_style& style, std::ostream& out);

}  // namespace cli
