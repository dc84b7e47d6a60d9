#pragma once
// What `explain pod` and `simulate` share in how they answer.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/lint/unoffered.hpp"
#include "cli/output/answer.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

/// How an answer looks. The engine's reasons and remedies are English in both languages.
known_resources resources_of(const picture& cluster);
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known);

/// What a container holds, as a row of a table.
struct held_row {
  std::string container, card, amount;
};
std::vector<held_row> rows_of(const quota::holding& held, const reconcilers::extender::pod_request& request);
nlohmann::ordered_json json_of(const quota::holding& held, const reconcilers::extender::pod_request& request);

/// "1 node", "2 nodes".
std::string plural(std::size_t count, std::string_view singular, std::string_view many);

}  // namespace cli
