#pragma once
// What the core needs to know of one product whose device plugin hands out cards: by which keys a node shows that it is
// served by it, how its amounts are to be read, which cards there are, what the plugin reads of a decision, what it
// writes of what it took, and in which order it wants Bindings. One file per product, one object without state each.
// Binder, account and placement ask these objects, and name no product.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "quota/inventory.hpp"
#include "quota/ledger.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::dialects {

/// Several products give this key a meaning of their own: card, slot, replica.
inline constexpr std::string_view shared_key = "nvidia.com/gpu";

/// A key that the kubelet offers on nodes of the product.
struct way {
  std::string_view module;  ///< which such a node has as its label; empty: the product is installed by no module
  std::string_view key;
};

/// A key of the product that the policy calls otherwise.
struct renamed_key {
  std::string here;
  std::string_view engine;  ///< what the vocabularies call it
  friend bool operator==(const renamed_key&, const renamed_key&) = default;
};

/// What the kubelet offers of all cards of a node together.
struct offer {
  std::int64_t cards = 0;
  std::int64_t memory_mib = 0;   ///< of one card; 0: not said
  std::int32_t max_sharers = 0;  ///< of one card; 0: not said
};

/// A pod, and a node that it is or may be on.
struct pod_on_node {
  const kube::pod& pod;
  const quota::node_inventory& node;
  std::span<const kube::container* const> containers;  ///< by the number that needs and grants have
  std::span<const quota::limits> limits;               ///< of each of them
};

/// Who is being served on a node, where the plugin learns that from an annotation of the node.
struct node_lock {
  std::int64_t since = 0;  ///< seconds since 1970, by the clock of who wrote it
  kube::object_key pod;    ///< no name: written by an old version, the time alone
};
/// A plugin that serves one pod at a time: who binds a pod first writes the lock.
struct lock_words {
  std::string_view product;     ///< as people know it
  std::string_view annotation;  ///< of the node
  /// For a scheduler that binds by itself, and so cannot have the lock written: why no pod comes to such a node.
  std::string_view needs_our_binding;
  std::string (*text)(const node_lock& lock);
  /// Empty where the plugin could not read it either: it then refuses every pod of the node.
  std::optional<node_lock> (*read)(std::string_view text);
  /// Does the lock still stand between its node and the next pod?
  /// @param holder the pod it names; null: there is no such pod
  /// @param binding a Binding of that pod is on its way from here
  /// @param now seconds since 1970
  bool (*holds)(const node_lock& lock, const std::string& node, const kube::pod* holder, bool binding,
                std::int64_t now);
};

class dialect {
 public:
  virtual ~dialect() = default;

  // The node.
  virtual quota::mode engine_mode() const = 0;
  virtual std::span<const way> ways() const = 0;
  /// On a node without a module's label that offers `shared_key` and nothing else: is that the product's?
  virtual bool means_shared_key(const kube::node&) const { return false; }
  virtual std::vector<renamed_key> renamed(const accelerator_policy*) const { return {}; }
  /// How the amounts are to be read there. Called for nodes that the product serves.
  /// @param policy null: none; the defaults of the modules count
  virtual void read_service(quota::service&, const kube::node&, const accelerator_policy*) const {}
  virtual offer offered(const kube::node& node, const quota::service& serves) const = 0;
  /// Its plugin has a list of the node's cards: what is not in it is no card for the plugin.
  virtual bool has_register(const quota::service&) const { return false; }
  virtual std::vector<quota::card> registered(const kube::node&) const { return {}; }

  // The pod.
  /// Adds to `annotations` what the plugin reads of a decision. `now_ns` is wall time, nanoseconds since 1970.
  virtual void write(nlohmann::json&, const quota::holding&, const pod_on_node&, std::int64_t) const {}
  /// One of those that `write` adds?
  virtual bool writes(std::string_view) const { return false; }
  /// The plugin has served the pod, and chose by itself: what it wrote counts more than what was decided.
  virtual bool has_chosen(const kube::pod&) const { return false; }
  /// What the plugin or its own scheduler wrote that the pod has; empty: nothing that can be read.
  virtual std::optional<quota::holding> read(const pod_on_node&, const quota::demand&) const { return {}; }
  /// The cards that the pod's annotations name, by UUID or number, for people.
  virtual std::vector<std::string> named_cards(const kube::pod&) const { return {}; }

  // The Binding.
  /// The plugin takes the pod with the oldest time for the one that the kubelet asks for: Bindings to a node must
  /// arrive in the order of their times, one after the other.
  virtual bool finds_pods_by_time() const { return false; }
  /// Null: it serves several pods at once.
  virtual const lock_words* lock() const { return nullptr; }
};

/// All of them, in the order in which they are asked. @throws nothing
std::span<const dialect* const> all();
/// Those that serve the node.
std::vector<const dialect*> serving(const quota::service& serves);
/// The words of the node's lock; null: no product there has one.
const lock_words* lock_of(const quota::service& serves);
bool finds_pods_by_time(const quota::service& serves);

}  // namespace reconcilers::dialects
