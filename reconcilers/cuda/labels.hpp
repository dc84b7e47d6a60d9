#pragma once
// The labels of the manual, cuda-major-version and cuda-minor-version, written by us where GPU Feature Discovery says
// what the driver knows and no one else wrote them. One of our annotations shows whose they are: it repeats what
// we wrote: managedFields does not survive every client, and is large on every node. Both labels are written or
// neither.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/projections/node.hpp"
#include "reconcilers/cuda/version.hpp"

namespace reconcilers::cuda {

namespace names {
/// On nodes: "12.4", the CUDA labels we wrote last.
inline constexpr std::string_view written_annotation = "state.quartermaster.io/cuda-labels";
}  // namespace names

struct label_step {
  std::optional<version> write;  ///< what the two labels shall say
  bool take_back = false;        ///< ours, and no fact stands behind them any more
  std::string disagreement;      ///< someone else's labels contradict what was found, in words; empty: they do not

  bool idle() const { return !write && !take_back; }
};

/// Idle where there is nothing to do: nothing was found, the labels are someone else's, or they say it already. A
/// label that someone changed after us is theirs from then on, as is one that they removed while the other stayed.
label_step labels_for(const kube::node& node);

/// A JSON patch (with `test` on the UID and on what is there now) that takes the step. Throws nothing; empty array for
/// an idle step.
nlohmann::json patch_of(const kube::node& node, const label_step& step);

}  // namespace reconcilers::cuda
