#pragma once
// One Binding: decided on what is free when the call arrives, assumed in the ledger before it is sent, and sent once
// with the placement, the pod's UID and its version. A result that is not known is found out: the pod is sealed, so
// that what is still on its way cannot arrive any more, and read.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "kube/client.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/extender/fence.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace reconcilers::extender {

class binder {
 public:
  struct dependencies {
    controller::loop& loop;
    kube::client& api;  ///< the fenced one
    const controller::store<kube::pod>& pods;
    const controller::store<kube::node>& nodes;
    account& book;
    fence& earlier;
    std::function<controller::milliseconds()> lease_left;
  };
  binder(dependencies dependencies, controller::registry& metrics);

  /// Empty: bound. Otherwise one line for the scheduler's event on the pod. @throws nothing
  boost::asio::awaitable<std::string> bind(bind_args args);
  /// Can we answer for what we bind? When not, the caller has to come again.
  bool ready() const;
  /// Nothing of an earlier leader can arrive any more.
  bool sealed() const { return dependencies_.earlier.closed(); }
  /// Looks after what was assumed and never confirmed: every few seconds.
  void look_after(controller::milliseconds now);

 private:
  boost::asio::awaitable<std::string> bind_once(const bind_args& args);
  /// The node's plugin finds the pod that the kubelet has just admitted by its time. So Bindings must arrive in the
  /// order of their times: one after the other.
  bool counts_by_time(const std::string& node) const;
  using line = std::set<std::uint64_t>;  ///< of those with a Binding to one node, the one on its way first
  /// False: not within a call's patience.
  static boost::asio::awaitable<bool> its_turn(const line& line, std::uint64_t ticket);
  /// Where the node's plugin serves one pod at a time: has it serve this pod next. Waits as long as a call may for the
  /// pod before it.
  /// @return empty, or why not
  boost::asio::awaitable<std::string> take_lock(const dialects::lock_words& words, kube::object_key pod, kube::uid uid,
                                                std::string node);
  kube::task<void> patch_node(std::string node, nlohmann::json patch);
  struct locked_node {
    std::string node, value;
    const dialects::lock_words* words;
  };
  boost::asio::awaitable<void> take_off(locked_node lock);
  /// It is known where the pod is bound (empty: nowhere): the lock we wrote for it stays on that node alone.
  void forget_lock(const kube::uid& uid, std::string_view bound_to);
  /// The pod was not bound: what it was promised is free again, and so is its node's lock.
  void release(const kube::uid& uid);
  kube::task<kube::pod> read(kube::object_key key);
  kube::task<void> send(kube::object_key pod, std::string uid, std::uint64_t version, const std::string& node,
                        const nlohmann::json& annotations);
  boost::asio::awaitable<std::string> settle(const bind_args& args, kube::error error, kube::pod pod,
                                             nlohmann::json annotations);
  boost::asio::awaitable<void> find_out(kube::object_key key, kube::uid uid);
  void find_out_later(const kube::object_key& key, const kube::uid& uid);

  dependencies dependencies_;
  std::set<kube::uid> in_flight_, in_doubt_;
  std::map<std::string, line> lines_;  ///< by node whose plugin counts by time
  std::uint64_t tickets_ = 0;
  std::map<kube::uid, locked_node> locked_;  ///< by pod whose Binding is not known to have arrived: the lock we wrote
  controller::family<controller::counter>& results_;
};

}  // namespace reconcilers::extender
