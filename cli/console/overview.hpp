#pragma once
// The first screen: is all well, how many GPUs, how many pods wait, what the month costs. Pure. What is wrong is what
// `verify` finds, GPUs are those of `inspect nodes`, and what is allocated of them is what `top` and `report capacity`
// say: nothing is judged here.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/console/costs.hpp"
#include "cli/console/views.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli::console {

/// GPUs of the cluster. All but `cores` are numbers of them.
struct gpu_sums {
  std::int64_t total = 0;
  std::int64_t cores = 0;  ///< allocated, in hundredths of a GPU
  std::int64_t free = 0;   ///< usable, in a mode, and no one has a part of it
  std::int64_t without_mode = 0;
  std::int64_t cordoned = 0;  ///< by their node or by themselves
  std::int64_t unhealthy = 0;
};
gpu_sums gpus_of(const picture& picture);

/// Of the report of `verify`, by part: leader, scheduler, modules, declarations, quotas, nodes. The same finding on
/// several nodes is one entry.
/// @param ns the operator's namespace, for commands
ordered_json health_json(const reconcilers::verify::report& report, const std::string& ns);

/// A command that acts on a step or shows more of it; never empty.
std::string command_of(const reconcilers::verify::step& step, std::string_view node, const std::string& ns);

/// Parts that the viewer may not see are null.
ordered_json overview_view(const picture& picture, const viewer& viewer, const costs& costs);

}  // namespace cli::console
