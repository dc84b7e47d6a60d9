#pragma once
// A Node as the quota engine sees it: which cards it has, what hands them out, and how many of each plain key. Taken
// from what is there before any agent of ours is: HAMi's register annotation, GPU Feature Discovery's labels, what the
// kubelet offers. A key the kubelet does not offer is not served, whatever the labels say.

#include <functional>
#include <string>
#include <string_view>

#include "kube/projections/node.hpp"
#include "quota/inventory.hpp"
#include "reconcilers/accelerator_policy.hpp"

namespace reconcilers::extender {

/// Node annotation, by people: cards that get nothing new, by name, comma separated.
inline constexpr std::string_view cordon_annotation = "quartermaster.io/cordon";

/// True for a key that a declaration names: judged by count where the vocabularies do not know it.
using declared_keys = std::function<bool(std::string_view key)>;

/// @param policy null: none; the defaults of the modules count
/// Cards without an identity of their own are named "<node>/<index>", index from 0.
quota::node node_of(const kube::node& of, const accelerator_policy* policy, const declared_keys& declared);

}  // namespace reconcilers::extender
