#pragma once
// What an administrator can do for a pod whose resource no node has, although a module offers it: the module is off or
// cannot be offered, no node is in its mode, or its nodes have none yet. No change of the pod would help then.

#include <string>
#include <vector>

#include "cli/explain/answer_form.hpp"

namespace cli {

/// One sentence a module: "No node has tencent.com/vcuda-core. Module vgpu offers it and is off: ...". Empty where some
/// node has each of the pod's resources, or no module offers what is lacking.
std::vector<std::string> unserved_resources(const picture& picture, const known_resources& known, const kube::pod& pod,
                                            text::language locale);

}  // namespace cli
