#pragma once
// What a node asks for, from its labels and the policy: a mode, nothing, or something that has to be refused in words.
// Pure. Labels are people's: we read them and never write them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/foreign.hpp"

namespace reconcilers {

struct node_intent {
  enum class kind {
    none,        ///< asks for nothing: no mode
    mode,        ///< asks for `mode`, and nothing speaks against it
    refused,     ///< cannot be granted; the node keeps what it has
    left_alone,  ///< belongs to someone else's plugin: none of our modes, and that is reported
  };
  kind type = kind::none;
  const modules::module_type* mode = nullptr;  ///< what it asks for, also when refused for another reason than that
  std::string requested;                       ///< for people: the mode, or what the labels say
  std::string reason;                          ///< CamelCase; empty unless refused or left alone
  text::phrase message;                        ///< what is wrong and what to do
  /// Plugins of others that have to go first. The policy says take over, where it is a mode all the same.
  std::vector<foreign_plugin> foreign = {};
};

inline constexpr std::string_view module_disabled = "ModuleDisabled";

/// `policy` is null where there is none; `declared` are the labels that device configurations name; `foreign` is what
/// is known of other products' plugins around the node. Reasons of a
/// refusal: UnknownMode, ConflictingLabels, ForeignPlugin, UnsuitableNode, UnsuitableCards, UnsuitableRuntime,
/// NotOffered (a label of another product, with what no module offers), NoPolicy, ModuleDisabled. Labels of other
/// products ask for a mode where its module is on; where it is off the node is theirs.
node_intent intent_of(const kube::node& node, const accelerator_policy* policy,
                      std::span<const label_alias> declared = {}, const foreign_pods& foreign = {});

/// Has cards of a vendor we have modules for, as discovery labels say.
bool has_cards(const kube::node& node);

}  // namespace reconcilers
