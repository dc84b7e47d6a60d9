#pragma once
// A resource that no node offers and no one declares: a pod that asks for it waits for ever, and no one says why. Most
// are typing mistakes ("nvidia.com/gpus"). What a DeviceClass of DRA gives is known by its name alone.

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "cli/cluster/device_classes.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "text/message.hpp"

namespace cli {

using key_set = std::set<std::string, std::less<>>;

/// Extended resources of which some node has any.
void add_offered(const kube::node& node, key_set& key_set);

/// A key for a card in a domain of Kubernetes itself ("alpha.kubernetes.io/nvidia-gpu" ended with 1.11,
/// "kubernetes.io/gpu" never was): the API server accepts it, and no node has it.
/// @return the key to write in its place; empty: the key is none of these
std::string_view card_of_native_domain(std::string_view key);

/// A resource of a vendor whose plugin counts whole devices or slices of MIG; none of our modules offers it.
bool is_vendor_key(std::string_view key);
std::span<const std::string_view> vendor_keys();

/// The key that was most likely meant: one of the same domain with a name that is near, or of the same name with a
/// domain that is near or lacks its end ("nvidia/gpu"); may be empty.
std::string nearest_key(std::string_view key, std::span<const std::string_view> known);

/// What is known of a cluster's resources.
struct known_resources {
  key_set offered, declared;
  classes_by_resource classes = {};                                                                 ///< of DRA
  std::map<std::string, reconcilers::declarations::refused_declaration, std::less<>> refused = {};  ///< by key

  void add_refused(std::span<const reconcilers::declarations::refused_declaration> declarations);

  /// The DeviceClass by which a DRA driver gives it; empty: none, or some node offers it itself.
  std::string_view class_of(std::string_view key) const;
  /// False as well for a key of the vocabularies: some are counted by the scheduler alone (nvidia.com/gpumem).
  bool lacks(std::string_view key) const;
  /// The key that was most likely meant; may be empty.
  std::string nearest(std::string_view key) const;
  /// "nvidia.com/gpus: no node offers it and no one declares it. Did you mean nvidia.com/gpu?" Of a key
  /// whose declaration was refused, which one and why.
  std::string text_of(std::string_view key, text::language locale) const;
};

}  // namespace cli
