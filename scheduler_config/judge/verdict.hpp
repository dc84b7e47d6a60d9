#pragma once
// Does kube-scheduler start with this file, and do pods with cards get scheduled then? Answered without running it: the
// strict decoder, the validation and the set-up of the plugins of kube-scheduler 1.30 to 1.37, then the mistakes that
// the products' manuals lead to. One mistake is one finding.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/judge/document.hpp"
#include "scheduler_config/judge/schema.hpp"

namespace scheduler_config {

/// What the flags of a manifest say of leader election: they go before the file.
struct election_flags {
  bool is_off = false;
  std::optional<std::int64_t> lease_duration, renew_deadline, retry_period;  ///< nanoseconds
};

struct server {
  int minor = newest_minor;  ///< Kubernetes 1.x of the kube-scheduler; below oldest_minor its rules are those of that
  bool in_cluster = false;   ///< a pod of its own with a ServiceAccount: no kubeconfig is needed, Services have names
  std::vector<std::string> plugins;  ///< what its image has in addition to Kubernetes' own
  election_flags election = {};
};

/// Whether it ends a kube-scheduler that is older than all whose rules are known: apiVersion and form are known of
/// each.
bool holds_before_oldest(code issue) noexcept;

/// Whose configuration it is, where that is known and it is not kube-scheduler's: "kubeadm", "Volcano"; else empty.
std::string_view other_product_of(const document& document);

/// In the order of the file.
findings judge(const document& document, const server& server = {});
/// The same for bytes: what cannot be parsed is a finding.
findings judge(std::string_view text, const server& server = {});

/// A file that kube-scheduler opens at start, and ends without. A verdict knows its name alone.
struct opened_file {
  std::string path;
  std::string field;  ///< which names it
};
std::vector<opened_file> opened_files(const document& config);

/// Whether any extender manages a key of managed.hpp, or everything.
bool asks_about_cards(const document& document);

/// The later file takes the place of the earlier one on the control-plane node, and kube-scheduler reads one file:
/// extenders of `first` that `second` does not have (code::extender_lost, in `first`). `name` of the second.
findings lost_between(const document& first, const document& second, std::string_view name);

}  // namespace scheduler_config
