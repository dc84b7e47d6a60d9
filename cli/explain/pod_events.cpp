#include "cli/explain/pod_events.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "kube/json_text.hpp"

namespace cli::pod_events {
namespace {

using kube::text_in;

std::string text_below(const nlohmann::json& object, const char* part, const char* key) {
  const auto match = object.find(part);
  return match != object.end() && match->is_object() ? text_in(*match, key) : std::string();
}

bool is_own(const event& event) { return event.reporter.starts_with("quartermaster.io/"); }

}  // namespace

std::string time_of(const nlohmann::json& event) {
  auto out = text_below(event, "series", "lastObservedTime");
  if (out.empty()) out = text_in(event, "lastTimestamp");
  return out.empty() ? text_in(event, "eventTime") : out;
}

event read(const nlohmann::json& object) {
  auto reporter = text_in(object, "reportingComponent");
  if (reporter.empty()) reporter = text_below(object, "source", "component");
  return {time_of(object), text_in(object, "type"), text_in(object, "reason"), text_in(object, "message"),
          std::move(reporter)};
}

std::vector<event> telling(std::vector<event> events, std::size_t most) {
  std::ranges::sort(events, std::greater(), [](const event& event) {
    return std::tuple(is_own(event), event.time, event.reason, event.message);
  });
  std::set<std::pair<std::string, std::string>> seen;
  std::erase_if(events, [&](const event& event) { return !seen.emplace(event.reason, event.reporter).second; });
  if (events.size() > most) events.resize(most);
  return events;
}

}  // namespace cli::pod_events
