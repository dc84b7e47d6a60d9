#pragma once
// Charts from Prometheus. The queries are fixed here; of the caller's words only names of a node, a namespace and a pod
// go into them, and nothing that is not such a name. Requests are built purely, and answers read purely.

#include <cstdint>
#include <expected>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cli/console/viewer.hpp"
#include "cli/console/views.hpp"

namespace cli::console {

/// The words behind "?", decoded. An error says which word is wrong.
using parameters = std::map<std::string, std::string, std::less<>>;
std::expected<parameters, text::phrase> parameters_in(std::string_view query);

/// A name as Kubernetes has them: labels of DNS with dots between.
bool is_name(std::string_view text);

struct chart_request {
  std::string chart, node, ns, pod;
  std::int64_t begin = 0, end = 0, step = 0;  ///< seconds

  std::string target() const;  ///< path and query for Prometheus
};
inline constexpr std::size_t most_series = 20;

/// What is asked for; an error says what is wrong. `now`: seconds since 1970.
std::expected<chart_request, text::phrase> chart_of(const parameters& parameters, std::int64_t now);
/// Why the viewer may not have it; empty: they may.
text::phrase refused_right(const chart_request& chart, const viewer& viewer);

/// The answer of the console. `body` is that of Prometheus.
ordered_json history_view(const chart_request& chart, std::string_view body);
ordered_json no_history(const chart_request& chart, const text::phrase& message);

/// Measured use of each card now, in percent: by node and UUID.
using measured_use = std::map<std::pair<std::string, std::string>, int>;
std::string measured_target();
measured_use measured_in(std::string_view body);
std::string pod_use_target();
pod_use pod_use_in(std::string_view body);
/// Per node that has some, its cards in the order of the fleet; -1: not known.
ordered_json measured_view(const picture& picture, const measured_use& use, const text::phrase& message);

/// The query behind `daysUntilFull`, and its answer.
std::string trend_target(std::int64_t now);
trends trends_in(std::string_view body);

}  // namespace cli::console
