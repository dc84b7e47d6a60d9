#pragma once
// Events about a pod, and which of them say most: kube-scheduler's FailedScheduling comes again with other words at
// every try and would fill any short list.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/resource.hpp"

namespace cli::pod_events {

/// As core/v1 has them, which everyone with the role `view` may list.
inline constexpr kube::resource type{"", "v1", "events", "Event", true};

struct event {
  std::string time, type, reason, message;  ///< as the object has them; RFC 3339
  std::string reporter;                     ///< who wrote it: "default-scheduler", "quartermaster.io/controller"
};

/// When it was last seen.
std::string time_of(const nlohmann::json& event);
event read(const nlohmann::json& object);

/// Of each reason and reporter the newest; the operator's own first, then the newest.
std::vector<event> telling(std::vector<event> events, std::size_t most);

}  // namespace cli::pod_events
