#pragma once
// Why a pod fits nowhere, as people read it: the engine's explanation with the names of the pod's containers.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "quota/explain.hpp"
#include "reconcilers/extender/account.hpp"
#include "text/message.hpp"
#include "text/phrase.hpp"

namespace reconcilers::extender {

/// The nodes that serve cards, count a declared key or are on their way to a mode, and take pods, by name.
std::vector<quota::node_view> candidates(const quota::ledger& book, const controller::store<kube::node>& nodes);

/// The limit that refuses it on every node where its cards fit or, where they fit nowhere now, on every node where they
/// would if it were empty; empty: something else does, or nothing.
std::optional<quota::exceeded_limit> limit_of(const account& book, const kube::pod& pod, const pod_request& request,
                                              std::span<const quota::node_view> nodes);
/// Which limit it is, without amounts: "cores of model A100".
std::string name_of(const quota::exceeded_limit& limit);
/// Constant and short, as an extender's answer wants it.
std::string_view short_text_of(const quota::exceeded_limit& limit);

/// Does what a kube-scheduler says of a pod have one of our reasons in it: was our extender asked?
bool carries_ours(std::string_view message);

/// As api/engine_words.hpp takes them.
std::vector<std::string_view> names_of_containers(const pod_request& request);

/// One line, with the names of the pod's containers. `nodes` as in api/engine_words.hpp.
std::string words_of(const quota::change& change, std::span<const quota::node_view> nodes, const pod_request& request,
                     text::language locale);
std::string words_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     const pod_request& request, text::language locale);
std::string words_of_causes(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                            const pod_request& request, text::language locale);

/// Why a pod has these cards, one line for each container's set: how they are linked, where they lie, and whether its
/// node fills cards or spreads pods. Compared with what is free now, apart from what the pod has itself.
std::vector<text::phrase> why_these(const quota::holding& held, const quota::node_view& node,
                                    const pod_request& request);

}  // namespace reconcilers::extender
