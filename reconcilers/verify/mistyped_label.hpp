#pragma once
// A label that someone meant to ask for a mode with, and whose key no one reads. Its value is a mode and its key is
// near one that asks, so a label of other people's is none. Pure.

#include <optional>
#include <span>
#include <string>

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::verify {

struct mistyped_label {
  std::string label;  ///< "nvidia-device-enabled=pgpu"
  std::string meant;  ///< "nvidia-device-enable=pgpu"
};

/// The first of a node; nothing: it has none. Only for a node that asks for no mode. `policy` is null where there is
/// none; `declared` are the labels that device configurations name.
std::optional<mistyped_label> mistyped_label_of(const kube::node& node, const accelerator_policy* policy,
                                                std::span<const label_alias> declared = {});

}  // namespace reconcilers::verify
