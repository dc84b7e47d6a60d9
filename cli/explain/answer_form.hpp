#pragma once
// What `explain pod` and `simulate` share in how they answer.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/lint/unoffered.hpp"
#include "cli/output/answer.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

known_resources resources_of(const picture& cluster);
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known, text::language locale);

/// Of a pod whose annotations choose its cards, and that fits nowhere: without them it would. Empty: that does not
/// help.
std::string change_of_annotations(const kube::pod& pod, const reconcilers::extender::pod_request& request,
                                  std::span<const quota::node_view> nodes, text::language locale);

/// What a container holds, as a row of a table.
struct held_row {
  std::string container, card, amount;
};
std::vector<held_row> rows_of(const quota::holding& held, const reconcilers::extender::pod_request& request,
                              text::language locale);
nlohmann::ordered_json json_of(const quota::holding& held, const reconcilers::extender::pod_request& request);

}  // namespace cli
