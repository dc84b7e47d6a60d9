#pragma once
// The operator's lease, by which verbs see where it runs and whether it works.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "kube/projections/lease.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"

namespace cli {

inline constexpr std::string_view operator_lease_selector = "metadata.name=quartermaster";  ///< of its fields

/// The newest of that name in the namespace; `ns` empty: of all.
kube::task<std::optional<kube::lease>> find_lease(kube::transport& transport, std::string ns);

/// By this machine's clock it was renewed within its time.
bool looks_fresh(const kube::lease& lease);

/// For one that does not look so, because clocks differ: whether it is another one four seconds later.
kube::task<bool> is_renewed(kube::transport& transport, kube::lease lease);

/// Whether someone renews it, seen by its change: clocks differ.
struct pulse {
  using clock = std::chrono::steady_clock;
  std::optional<kube::lease> last;
  clock::time_point changed = clock::now();

  void see(std::optional<kube::lease> now);
  bool silent_for(clock::duration how_long) const;
};

}  // namespace cli
