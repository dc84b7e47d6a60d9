#pragma once
// The status of an AcceleratorPolicy, from what its modules are at this moment. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/conditions.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

/// One module as its DaemonSet and our attempts at it show it.
struct module_row {
  std::string_view name;
  std::string_view isolation;  ///< of pods that share a card
  bool enabled = false;
  bool applied = false;     ///< all its objects are there as we want them
  bool rolled_out = false;  ///< and every pod is up
  std::int32_t desired = 0, ready = 0, nodes = 0;
  std::int32_t updated = 0;  ///< plugin pods of the newest version
  std::string image;         ///< of the plugin, as it is applied
  text::phrase rolling;      ///< what a new version waits for; empty when it is everywhere
  std::string problem;       ///< reason, CamelCase; empty when nothing is wrong
  text::phrase message;
};

/// A kube-scheduler that asks our extender.
struct scheduler_row {
  std::string name;
  std::string mode;      ///< Dedicated, StaticPod
  std::string version;   ///< of kube-scheduler; empty: not known
  std::string checksum;  ///< SHA-256 of its configuration
  std::string reason;    ///< CamelCase
  text::phrase message;
  std::int32_t desired = 0, ready = 0;
  bool good = false;
  friend bool operator==(const scheduler_row&, const scheduler_row&) = default;
};

/// The status subresource's content. `before` is the policy's present status (times of conditions are kept from it).
/// `further` are conditions others have worked out. `schedulers`: empty where no one has looked yet; their
/// earlier status stays then.
nlohmann::json policy_status(const std::vector<module_row>& rows, const accelerator_policy& policy,
                             const nlohmann::json& before, std::string_view now,
                             const std::vector<controller::condition>& further = {},
                             const std::optional<std::vector<scheduler_row>>& schedulers = std::nullopt);
/// Of the condition that says how those are.
inline constexpr std::string_view scheduler_ready = "SchedulerReady";

/// Of the condition that names what the operator may not watch; it is there only while that is so.
inline constexpr std::string_view watches_refused = "WatchesRefused";
/// @param resources such as "pods", at least one
controller::condition refused_condition(const std::vector<std::string>& resources, std::int64_t generation);

/// For a policy that is not the one that counts.
nlohmann::json ignored_status(std::int64_t generation, const nlohmann::json& before, std::string_view now);

}  // namespace reconcilers
