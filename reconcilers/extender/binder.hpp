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
  /// gpu-manager takes the pod with the oldest predicate time for the one the kubelet has just admitted; gpushare's
  /// plugin, the oldest of those that ask for as much memory. So Bindings must arrive in the order of their times: one
  /// after the other.
  bool counts_by_time(const std::string& node) const;
  using line = std::set<std::uint64_t>;  ///< of those with a Binding to one node, the one on its way first
  /// False: not within a call's patience.
  static boost::asio::awaitable<bool> its_turn(const line& line, std::uint64_t ticket);
  /// On a node of HAMi: has its plugin serve this pod next. Waits as long as a call may for the pod before it.
  /// @return empty, or why not
  boost::asio::awaitable<std::string> take_lock(kube::object_key pod, kube::uid uid, std::string node);
  kube::task<void> patch_node(std::string node, nlohmann::json patch);
  boost::asio::awaitable<void> take_off(std::string node, std::string lock);
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
  struct hami_locked_node {
    std::string node, value;
  };
  std::map<kube::uid, hami_locked_node>
      locked_;  ///< by pod whose Binding is not known to have arrived: the lock we wrote
  controller::family<controller::counter>& results_;
};

}  // namespace reconcilers::extender
