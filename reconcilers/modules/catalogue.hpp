#pragma once
// The catalogue: everything that is particular to one way of offering cards. A module is a name, the label values that
// ask for it, the resources it advertises, what it needs of a node, and one pure function from the policy to the
// objects it needs. Adding one is one file and one line in catalogue.cpp (and a reason for every privilege, in
// privileges.cpp).

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/resource.hpp"
#include "reconcilers/accelerator_policy.hpp"

namespace reconcilers::modules {

/// What the objects of a module depend on besides the policy.
struct facts {
  std::string ns;         ///< where they are made: the operator's own namespace
  std::string own_image;  ///< of the operator, for plugins that are part of it
  /// The AcceleratorPolicy that owns them, so that they go with it even when we are gone.
  std::string policy_name, policy_uid;
};

/// What is known of a node by its labels (GPU Feature Discovery); what no label says is not held against it.
struct node_needs {
  std::span<const std::string_view> architectures;
  int compute_capability = 0;  ///< 10 x major + minor, 0: any
  int cuda = 0;                ///< 100 x major + minor of the newest runtime the driver supports, 0: any
  bool mig = true;             ///< may cards be cut by MIG?
};

struct module_type {
  std::string_view name;
  std::string_view title;
  std::span<const std::string_view> label_values;  ///< of nvidia-device-enable, lower case
  std::span<const std::string_view> resources;     ///< the first one says that the plugin works
  std::string_view daemon_set;                     ///< the name people look for
  node_needs needs;
  /// Without the labels and annotations that all our objects have.
  std::vector<nlohmann::json> (*objects)(const module_spec& spec, const facts& known);
};

/// In the order in which they are shown.
std::span<const module_type> catalogue();
/// Null for a name that is none.
const module_type* find(std::string_view name);
/// Who advertises this resource; null when none of ours does.
const module_type* advertiser(std::string_view resource);
/// "pgpu, vgpu and mps".
std::string names_for_people();

/// One object as it is applied.
struct intent {
  const kube::resource* type = nullptr;
  kube::object_key key;
  std::string module;
  std::string hash;  ///< of the whole intent; also in its annotation quartermaster.io/applied
  std::string body;  ///< JSON
};

/// The complete objects of one module, in the order they are applied. Throws nlohmann::json::exception where a part of
/// the policy is not what the API server's schema promises.
std::vector<intent> intents_of(const module_type& of, const module_spec& spec, const facts& known);

/// Their types, in the order they are applied.
std::span<const kube::resource* const> object_types();

extern const module_type pgpu, vgpu, mps;

}  // namespace reconcilers::modules
