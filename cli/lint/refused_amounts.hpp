#pragma once
// Amounts of a manifest's pod that no node takes, whatever mode it is in, also where someone declares the keys
// (quota/faults.hpp).

#include <vector>

#include "quota/vocabulary.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

struct refused_amount {
  const kube::container* container;
  quota::refusal refusal;  ///< views into the pod, or into the engine's table
};
/// Of each container the first. A container without keys of one mode in common has none here: no node has its modes.
/// @param declared the names that keys have in this cluster
std::vector<refused_amount> refused_amounts(const kube::pod& pod,
                                            const reconcilers::extender::declared_keys& declared = {});

}  // namespace cli
