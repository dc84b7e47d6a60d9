#pragma once
// `quartermaster report capacity`: what cards of each model and mode can still take. The numbers are those of the
// console's capacity view, which this prints.

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "cli/output/listing.hpp"

namespace cli {

/// `view` is the console's (console/api.md). `no_days`: why it has no days until full; empty: it has.
void print_capacity(const nlohmann::ordered_json& view, const text::phrase& no_days, const listing_style& style,
                    std::ostream& out);

std::vector<std::string> capacity_headers();

}  // namespace cli
