#pragma once
// What every AcceleratorQuota says of itself: used, borrowed and lent of each limit, how many pods wait because of it,
// and whether anyone enforces it (condition Enforced). Written when it differs from what is there.
//
// A turn looks only at objects that something has changed for, reckons each cohort once, and lets others run between
// two objects: filter, bind and the lease wait for no turn.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "api/accelerator_quota.hpp"
#include "controller/coded_status.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "quota/ledger.hpp"
#include "quota/limits.hpp"
#include "text/phrase.hpp"

namespace reconcilers {

/// Why pods of a namespace wait, and how many for each reason.
using held_back = std::map<std::string, std::int64_t>;
using held_back_by_namespace = std::map<std::string, held_back, std::less<>>;

/// Is there anyone who asks about limits before a pod is bound?
struct quota_enforcement {
  bool holds = false;
  std::string reason;  ///< of the condition
  text::phrase message;
  bool undecided = false;  ///< for want of pods no one has asked yet: what an earlier leader saw of a scheduler stays

  friend bool operator==(const quota_enforcement&, const quota_enforcement&) = default;
};

inline constexpr std::string_view enforced_condition = "Enforced", scheduler_asks = "SchedulerAsks",
                                  /// Only where a limit names a model: is there a card of each?
    models_condition = "ModelsKnown",
                                  /// Only where a limit names a pool: is there a node in each?
    pools_condition = "PoolsKnown",
                                  /// Only where it is False: the cohort of another object of the namespace counts.
    cohort_condition = "CohortCounts";

/// What a limit may name: the models of all cards, and the pools of their nodes.
struct card_groups {
  std::set<std::string> models, pools;

  friend bool operator==(const card_groups&, const card_groups&) = default;
};
/// Nothing: no node has cards yet.
std::optional<card_groups> groups_of(const quota::ledger& book);

struct quota_view {
  std::span<const quota::standing> standings;  ///< of its namespace
  held_back waiting;
  quota_enforcement enforced;
  std::optional<card_groups> groups;  ///< nothing: not known
  std::string_view cohort;            ///< the one its namespace is in; empty: none, or no one counts
};
/// @param now as metav1.Time; for a condition that changes
nlohmann::json status_of(const api::accelerator_quota& quota, const quota_view& view, std::string_view now);

class quota_status {
 public:
  struct dependencies {
    kube::client& api;  ///< the fenced one
    const controller::store<api::accelerator_quota>& quotas;
    const quota::allowances* limits;  ///< null: no one counts
    std::function<held_back_by_namespace()> waiting;
    std::function<quota_enforcement()> enforced;
    const quota::ledger* book;  ///< null: no one counts
    controller::recorder& events;
  };
  explicit quota_status(dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  /// One look at all of them; to be called every few seconds. The first error ends it, the rest is next time's.
  kube::task<void> turn();

 private:
  /// What a status follows from. As it was last time: there is nothing to do.
  struct inputs {
    std::uint64_t object = 0, limits = 0;
    held_back waiting;
    quota_enforcement enforced;
    std::optional<card_groups> groups;  ///< nothing where the object names none

    friend bool operator==(const inputs&, const inputs&) = default;
  };
  kube::task<void> write(kube::object_key key, kube::uid id, nlohmann::json status);

  dependencies dependencies_;
  std::map<kube::uid, inputs> last_;
  controller::coded_status status_;
};

}  // namespace reconcilers
