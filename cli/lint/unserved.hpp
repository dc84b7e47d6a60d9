#pragma once
// What an administrator can do for a pod whose resource no node has, although a module offers it: the module is off or
// cannot be offered, no node is in its mode, or its nodes have none yet. No change of the pod would help then.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/lint/unoffered.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace cli {

/// What is known of modules.
struct known_modules {
  const reconcilers::accelerator_policy* policy = nullptr;  ///< null: there is none
  std::map<std::string, std::size_t, std::less<>> nodes;    ///< by the module that serves them
};
known_modules modules_of(const reconcilers::accelerator_policy* policy, std::span<const kube::node* const> nodes);

/// One sentence a module: "No node has tencent.com/vcuda-core. Module vgpu offers it and is off: ...". Empty where some
/// node has each of the pod's resources, or no module offers what is lacking.
std::vector<std::string> unserved_resources(const known_modules& modules, const known_resources& known,
                                            const kube::quantities& request, text::language locale);
std::vector<std::string> unserved_resources(const picture& picture, const known_resources& known, const kube::pod& pod,
                                            text::language locale);

}  // namespace cli
