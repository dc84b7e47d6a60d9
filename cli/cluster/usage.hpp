#pragma once
// AcceleratorUsage as verbs and the console read it: one month, of all namespaces.

#include <string>
#include <vector>

#include "api/accelerator_usage.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"

namespace cli {

/// The objects of a month ("2026-11"), by the names that the operator gives them. They come by one list, which is the
/// state at one moment: a checkpoint that is being written does no harm. errc::not_found: the cluster does not know the
/// type.
kube::task<std::vector<api::accelerator_usage>> read_usage(kube::transport& transport, std::string month);

}  // namespace cli
