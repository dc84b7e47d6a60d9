#pragma once
// What proves that a new kube-scheduler is up. The kubelet copies a static pod, annotations and status included, to the
// API server (its mirror): one with the checksum of the manifest in place is of that manifest, and it is ready when its
// container is. Someone has to renew the schedulers' lease, too: an instance that waits in line does not show whether
// it could. Pure: documents go in, one line of what is missing comes out, empty when nothing is.

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/static_pod/machine.hpp"

namespace agent::static_pod {

/// `mirror` null: there is none. `checksum` empty: of a manifest without the annotation.
text::phrase trouble_of_pod(const nlohmann::json& mirror, std::string_view annotation, std::string_view checksum);

/// Which run of which manifest's container the mirror shows: another text is another process.
std::string run_of(const nlohmann::json& mirror, std::string_view checksum);

/// Of the kube-schedulers of all control-plane nodes (Pods): the first that is not this one and not ready.
text::phrase trouble_of_others(const std::vector<nlohmann::json>& pods, std::string_view own_pod);

/// The row of a control-plane node, as people and the operator read it.
struct status_row {
  std::string is = {};  ///< to_string(state)
  std::int64_t generation = 0;
  std::string checksum = {}, version = {}, since = {};
  text::phrase reason = {};
  std::string certificates = {};  ///< a name for those in place; only while nothing is changed
  std::string tried = {};         ///< checksum of the configuration that was rolled back
  friend bool operator==(const status_row&, const status_row&) = default;
};
std::string write(const status_row& row);
/// A reason in JSON: `reason` in English, and where it has a code `cause` and `parameters`.
nlohmann::ordered_json reason_fields(const text::phrase& reason);
text::phrase reason_in(const nlohmann::json& object);
/// What is no row is an empty one.
status_row read_row(std::string_view text);
/// A change of it is under way: files are, or may be, in between.
bool between(const status_row& row);
/// Why no change to the configuration with this checksum may begin: it failed on another control-plane node. `rows` are
/// those of the control-plane nodes that are there, by name.
text::phrase trouble_of_tried(const std::map<std::string, status_row>& rows, std::string_view own,
                              std::string_view checksum);

/// Whether someone renews a lease, seen by its change: clocks differ.
class pulse {
 public:
  /// `renewed` as the record has it; nothing: there is no lease.
  void see(const std::optional<std::string>& renewed, milliseconds now);
  bool beats(milliseconds now) const { return changed_ && now - *changed_ <= milliseconds(20'000); }

 private:
  std::optional<std::string> last_;
  std::optional<milliseconds> changed_;
};

/// For how long one process has been seen to work, without a break: one that followed it between two looks begins
/// again.
class uptime {
 public:
  milliseconds see(bool works, std::string run, milliseconds now);

 private:
  std::string run_;
  std::optional<milliseconds> since_;
};

}  // namespace agent::static_pod
