#pragma once
// Pods that have something of the cards and that no sum has: someone bound them past the extender, with limits that are
// allowed on no node of the mode. The kubelet gives what they ask for, and the ledger counts nothing.

#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Why the ledger cannot count the limits of a bound pod, also while its node changes its mode. Empty: it can, or the
/// node does not serve what it asks for.
text::phrase miscounted(const quota::node_view& node, const reconcilers::extender::pod_request& request);

struct uncounted_pod {
  kube::object_key pod;
  std::string node;
  text::phrase reason;
  /// "team/a (container main: ...)"
  text::phrase text() const;
};

/// In the order of their names. `node`: those on it; empty: all. `ns`: those of this namespace; empty: of all.
std::vector<uncounted_pod> uncounted_pods(const picture& picture, std::string_view node = {}, std::string_view ns = {});

}  // namespace cli
