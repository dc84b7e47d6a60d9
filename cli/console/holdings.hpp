#pragma once
// What pods hold of cards, as `top pods` prints it, and the aggregated API (view_api.hpp).

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/output/listing.hpp"

namespace cli {

/// Those of this namespace and this name; empty: all.
void top_pods(const picture& picture, const std::string& ns, const listing_style& style, std::ostream& out,
              std::string_view name = {});
/// What --sort-by takes.
std::vector<std::string> holding_headers();

/// What sums of a listing lack, for people and as data.
void print_uncounted(const std::vector<uncounted_pod>& pods, const bilingual& say, std::ostream& out);
nlohmann::ordered_json uncounted_texts(const std::vector<uncounted_pod>& pods);

}  // namespace cli
