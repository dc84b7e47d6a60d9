#pragma once
// What every AcceleratorQuota says of itself: used, borrowed and lent of each limit, and how many pods wait because of
// it. Written when it differs from what is there.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "controller/store.hpp"
#include "kube/client.hpp"
#include "quota/limits.hpp"
#include "reconcilers/accelerator_quota.hpp"

namespace reconcilers {

/// Why pods of a namespace wait, and how many for each reason.
using held_back = std::map<std::string, std::int64_t>;

nlohmann::json status_of(const accelerator_quota& of, const quota::allowances& limits, const held_back& waiting);

class quota_status {
 public:
  struct given {
    kube::client& api;  ///< the fenced one
    const controller::store<accelerator_quota>& quotas;
    const quota::allowances& limits;
    std::function<held_back(std::string_view ns)> waiting;
  };
  explicit quota_status(given by) : by_(std::move(by)) {}

  /// One look at all of them; to be called every few seconds. The first error ends it, the rest is next time's.
  kube::task<void> turn();

 private:
  given by_;
};

}  // namespace reconcilers
