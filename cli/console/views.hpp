#pragma once
// The views of the console as JSON: what console/api.md says, field by field. Pure functions of what the stores hold
// and of what the viewer may see. Reasons and changes are those of `explain pod`, rows those of `inspect`.

#include <cstdint>
#include <expected>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/fleet.hpp"
#include "cli/console/costs.hpp"
#include "cli/console/viewer.hpp"
#include "cli/explain/answer_form.hpp"
#include "text/phrase.hpp"

namespace cli::console {

using nlohmann::ordered_json;

/// As it is sent: one line. Bytes that are no UTF-8 are replaced.
std::string body_of(const ordered_json& view);
/// {"en": ..., "zh": ...}; what others say is quoted.
ordered_json in_languages(const text::phrase& phrase);

struct page_range {
  std::size_t offset = 0, limit = 0;
};

ordered_json me_view(const picture& picture, const viewer& viewer, bool prometheus);
ordered_json fleet_view(const picture& picture, const viewer& viewer, page_range page);
/// A node of the picture. `report` is read when the node is asked for; null: there is none.
ordered_json node_view(const picture& picture, const viewer& viewer, const kube::node& node,
                       const std::optional<api::agent_report>& report);
/// Measured use of pods, in hundredths of a GPU: by namespace and name.
using pod_use = std::map<std::pair<std::string, std::string>, int>;
/// Pods that hold GPUs, by their names; `ns` empty: of all namespaces that the viewer may see. `message`: why measured
/// use is not known; empty: it is.
ordered_json holders_view(const picture& picture, const viewer& viewer, std::string_view ns, page_range page,
                          const pod_use& use, const text::phrase& message);
/// One pod, also one that holds nothing, and what happened to it: `object` is the Pod as the API server has it,
/// `events` its Events. `message`: why there are no events; empty: they are all.
ordered_json pod_view(const picture& picture, const kube::pod& pod, const nlohmann::json& object,
                      std::span<const nlohmann::json> events, const pod_use& use, const text::phrase& message);
ordered_json namespaces_view(const picture& picture, const viewer& viewer, const costs& costs);
/// The objects of a month; `problem`: why they are not known, empty: they are.
struct month_usage {
  std::string month;
  text::phrase problem{"console.usage.not_yet"};
  std::vector<api::accelerator_usage> objects;
};
/// `months`: those that may be asked for, the newest first.
ordered_json cost_view(const viewer& viewer, const month_usage& usage, const std::vector<std::string>& months,
                       const reconcilers::chargeback_spec& spec);
ordered_json declarations_view(const picture& picture, const viewer& viewer, const declared_resources& declared);

/// Cores that are given out as time goes on, per model and mode: seconds since 1970 and hundredths of a card.
using trend = std::vector<std::pair<std::int64_t, double>>;
using trends = std::map<std::pair<std::string, std::string>, trend>;
/// Days until `cores` are given out, by a straight line through the trend. Empty: too few points, or no growth.
std::optional<double> days_until(double cores, const trend& trend);
/// `message`: why there are no trends; empty: there are.
ordered_json capacity_view(const picture& picture, const viewer& viewer, const trends& trends,
                           const text::phrase& message);

}  // namespace cli::console
