#pragma once
// Writes what the book of time settles into AcceleratorUsage objects. docs/decisions/014 has the rules: objects of
// namespaces first, the whole cluster's last, and what was written before stays next to it until the last one is there.

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "api/accelerator_usage.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/task.hpp"
#include "reconcilers/usage/recorder.hpp"

namespace reconcilers::usage {

/// Label of every object: its month.
inline constexpr std::string_view month_label = "quartermaster.io/usage-month";
/// Label of the objects of whole clusters.
inline constexpr std::string_view cluster_label = "quartermaster.io/usage-cluster";

class keeper {
 public:
  struct settings {
    std::chrono::seconds period{300};    ///< between two checkpoints
    std::chrono::seconds after_end{10};  ///< from the end of a pod to its checkpoint, at least
    /// What is younger than this is not settled yet: a kubelet says a second or two later that a pod has ended, and a
    /// connection can be silent for a while before it is found to be dead.
    std::chrono::seconds lag{10};
    std::chrono::milliseconds tick{1000};
  };
  keeper(kube::client& api, recorder& recorder, controller::registry& metrics, settings settings);
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

  /// In every replica, once its stores are synced: takes in what is there, and follows the checkpoints of the leader.
  /// @param usages those of whole clusters
  kube::task<void> watch(const controller::store<api::accelerator_usage>& usages);
  /// By the leader: takes up where the last checkpoint was, then makes the next ones, until it is cancelled.
  kube::task<void> lead();
  /// One more checkpoint, at a clean stop.
  kube::task<void> flush();

  /// Everything up to `time`. The error of the first write that failed; what was not written is written next time.
  kube::task<void> checkpoint(quota::seconds time);
  /// Reads the last checkpoint. Before the first `checkpoint`.
  kube::task<void> resume();
  /// By the leader, once a tick: is a checkpoint up to `time` to be made now? It takes note of pods that have ended.
  bool due(quota::seconds time);

 private:
  struct account {
    quota::seconds since = 0;
    quota::seconds committed_through = 0;  ///< 0: nothing is committed
    quota::usage_rows committed, rows;
    quota::seconds written_through = 0;
    bool stale = false;  ///< a checkpoint that never was stands in its object

    bool changed() const { return stale || rows != committed; }
  };
  void begin_month(quota::seconds time);
  void merge(const quota::usage_book::sums& sums, quota::seconds begin);
  bool changed() const { return committed_ < recorder_.book().settled(); }
  kube::task<void> write();
  kube::task<void> write_idle();
  kube::task<void> apply(const api::accelerator_usage& usage);
  boost::asio::awaitable<void> sum_up();
  kube::task<void> settle_up_to(quota::seconds time);
  kube::task<void> load(std::string month, quota::seconds& committed);

  kube::client& api_;
  recorder& recorder_;
  settings settings_;
  bool leads_ = false;
  bool busy_ = false;
  bool written_ = false;                         ///< once at least, by this replica
  quota::seconds first_end_ = 0, last_end_ = 0;  ///< seen of pods, and not settled yet; 0: none
  std::string month_;                            ///< of `namespaces_` and `models_`
  quota::seconds since_ = 0;                     ///< of the whole cluster's object
  quota::seconds committed_ = 0;                 ///< `through` of the whole cluster's object
  quota::model_rows models_;
  std::map<std::string, account, std::less<>> namespaces_;
  std::string last_idle_;  ///< namespace whose object was written again last, though nothing changed
  controller::gauge& settled_until_;
  controller::counter &done_, &failed_;
};

}  // namespace reconcilers::usage
