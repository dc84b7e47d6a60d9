#pragma once
// Pods that wait for the scheduler `quartermaster` while it is switched off: a pod keeps the scheduler it was made
// with. Finds their owners, and the pods that may be deleted because their owner recreates them for another scheduler.
// A pod without an owner is never deleted. Nor is one whose owner's template names our scheduler, because the next pod
// would name it again.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client.hpp"

namespace cli {

struct stranded_pod {
  kube::object_key key;
  std::string uid, version;
  std::string owner;  ///< "Deployment lab/trainer": what a person would edit; empty: none
  std::string job;    ///< UID of the Job that counts the deletion as a failure; empty: none does
  std::string stays;  ///< why it is not deleted; empty: it may be
};

/// The pod waits for our scheduler: it has no node, and is neither finished nor being deleted.
bool waits(const nlohmann::json& pod);

/// `owners`: its controller, that one's controller and so on, as far as they could be read; empty where the pod's
/// controller could not. `unread`: why. Pure.
stranded_pod judge_stranded(const nlohmann::json& pod, const std::vector<nlohmann::json>& owners,
                            const std::string& unread);

/// How many more of its pods a Job may lose before it counts as failed.
std::int64_t failures_left(const nlohmann::json& job);

/// "2 pods were deleted: their owners recreate them".
std::string recreated(std::size_t number);

class stranded {
 public:
  explicit stranded(kube::transport& transport) : api_(transport) {}

  /// Who waits now.
  kube::task<void> look();
  const std::vector<stranded_pod>& pods() const { return pods_; }
  bool any_to_recreate() const;
  bool any_to_stay() const;
  /// Deletes those seen by `look` that may be, each once, on condition that it is still the same and has no node; those
  /// that it left get their reason. How many were deleted.
  kube::task<std::size_t> recreate();
  /// By owner, with what is to be done about those that stay; a line each, none where nothing does.
  /// @param of_others said of those that may be deleted; empty: they are not listed
  void tell(std::ostream& out, std::string_view of_others) const;

 private:
  kube::task<std::vector<nlohmann::json>> owners_of(nlohmann::json pod, std::string& unread);
  kube::task<std::optional<nlohmann::json>> read(std::string ns, nlohmann::json reference, std::string& unread);
  kube::task<bool> remove(stranded_pod& stranded_pod);

  kube::client api_;
  std::vector<stranded_pod> pods_;
  std::map<std::string, nlohmann::json> read_;  ///< owners, by UID
  std::set<std::string> tried_;                 ///< UIDs of pods
};

}  // namespace cli
