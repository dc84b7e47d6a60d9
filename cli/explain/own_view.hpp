#pragma once
// `explain pod` for a person who may read one namespace: what the pod, its events and the limits of the namespace say,
// and what the answer cannot know.

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/cluster/pod_target.hpp"
#include "cli/explain/answer_form.hpp"
#include "cli/explain/pod_events.hpp"
#include "kube/projections/described_pod.hpp"

namespace cli {

struct own_view {
  std::optional<kube::described_pod> pod;  ///< nothing: it may not be read, or is not there
  text::phrase absent;                     ///< it may be read and is not there, or was never made
  std::string note;                        ///< which pod of how many
  std::vector<pod_events::event> events;   ///< those of the pod that say most
  std::vector<std::string> quotas;         ///< names of AcceleratorQuotas of its namespace
  std::optional<std::string> asking;       ///< the scheduler that asks the operator; empty: none; nothing: not known
};

/// Errors are those of the connection. What may not be read is left out.
kube::task<void> read_own_view(kube::transport& transport, const pod_target& target, text::language locale,
                               own_view& out);

/// @param refused why no more could be seen, with what would allow it
/// @return exit code: 0 it has a node, 3 it waits or has failed
int explain_own_view(const own_view& view, const text::phrase& refused, const report_style& style, std::ostream& out);

}  // namespace cli
