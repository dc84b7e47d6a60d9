#pragma once
// What the stores and the ledger say, as the timeline of quota/usage.hpp: which cards there are, and which pod holds
// what from when to when. Every replica keeps one, so that a new leader has seen what the old one could not write any
// more.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/clock.hpp"
#include "controller/store.hpp"
#include "kube/projections/name_space.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "quota/usage.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::usage {

/// "pGPU", "vGPU" or "MPS" of a part of a card.
std::string_view mode_of(const quota::grant& grant, const quota::service& serves);
/// "MIG" or "device" of a key that is only counted.
std::string_view mode_of_key(std::string_view key);
/// Which card a counted key of a node is in the book.
std::string name_of_key(std::string_view node, std::string_view key);

/// @param node null: not reported; amounts are as they were booked then
std::vector<quota::usage_part> parts_of(const quota::holding& held, const quota::node_inventory* node);

struct named_card {
  std::string name;
  quota::usage_card card;
};
/// Cards cut by MIG are left out: their profiles are counted keys.
std::vector<named_card> cards_of(const quota::node_inventory& node, bool is_ready);

class recorder {
 public:
  struct dependencies {
    controller::store<kube::pod>& pods;
    controller::store<kube::node>& nodes;
    controller::store<api::accelerator_node>& reports;
    controller::store<kube::name_space>& name_spaces;
    const controller::store<accelerator_policy>& policies;
    const extender::account& account;  ///< observes the same stores, and was made before this
    /// Seconds of the API server's clock; empty: no answer of it was seen yet.
    std::function<std::optional<quota::seconds>()> now;
    /// The watch of pods works. While it does not, nothing is settled: what has happened is not known yet.
    std::function<bool()> watching = [] { return true; };
    std::function<controller::milliseconds()> steady = controller::boot_now;
  };
  /// The stores must outlive this; it observes them.
  explicit recorder(dependencies dependencies);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// The stores are synced: what is there now is taken in. False where the time is not known yet; try again.
  bool begin();
  bool begun() const { return book_.has_value(); }
  /// Only after `begin`.
  quota::usage_book& book() { return *book_; }
  quota::seconds start() const { return start_; }
  std::optional<quota::seconds> now() const { return known_.now(); }
  bool watching() const { return known_.watching(); }

  /// What comes until `end_gap` happened after `since`, and no one knows when (reflector_options::on_gap).
  void begin_gap(controller::milliseconds since);
  void end_gap() { gap_.reset(); }
  /// Takes in what changed without an event: pods whose node came later, cards that were held back. Others on the loop
  /// run in between; a second call meanwhile does no harm.
  boost::asio::awaitable<void> look();
  /// Who pays for a namespace: its label that the policy names. Empty: no one is named.
  std::string organization(std::string_view name_space) const;
  /// A pod that held something has ended since this was asked last.
  bool take_ended() { return std::exchange(ended_, false); }
  /// Cards have other names since this was asked last: `look` again.
  bool take_renamed() { return std::exchange(renamed_, false); }

 private:
  void take(const kube::pod* before, const kube::pod* after);
  void take_running(const kube::pod& pod, quota::seconds now);
  void take_finished(const kube::pod& pod, quota::seconds now);
  void leave(const std::string& uid, quota::seconds now);
  void take_node(const std::string& node);
  void take(const kube::name_space* before, const kube::name_space* after);
  dependencies known_;
  std::optional<quota::usage_book> book_;
  quota::seconds start_ = 0;
  std::unordered_map<std::string, std::set<std::string>> cards_;  ///< by node: names in the book
  std::optional<quota::seconds> gap_;                             ///< since when
  bool ended_ = false;
  bool renamed_ = false;
};

}  // namespace reconcilers::usage
