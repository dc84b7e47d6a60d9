#pragma once
// What the engine (quota/) says of a pod, in words. The engine has facts alone, codes and parameters; its words are
// those of the catalogue (text/messages.hpp), in events and answers to kube-scheduler in English.

#include <span>
#include <string>
#include <string_view>

#include "quota/explain.hpp"
#include "quota/limits.hpp"
#include "text/message.hpp"

namespace api {

/// The names of their words: "whole_cards", "free_memory". For programs that read an answer.
std::string_view code_of(quota::reason reason);
std::string_view code_of(const quota::change& change);
/// That of its reason, "too_small" or "too_small_together".
std::string_view code_of(const quota::cause& cause);

/// Constant and short, as an extender's answer wants it: looked up once per process, so it costs no more than a
/// constant for each node.
std::string_view words_of(quota::reason reason, text::language locale);
/// "MiB of card memory".
std::string_view words_of(quota::resource unit, text::language locale);

/// With the numbers, for a person.
std::string words_of(const quota::shortfall& shortfall, text::language locale);
/// What, where, what is allowed.
std::string words_of(const quota::refusal& refusal, text::language locale);
std::string words_of(const quota::exceeded_limit& limit, text::language locale);

/// Of the pod's containers, in the order of its limits; one without is called by its number.
using container_names = std::span<const std::string_view>;
/// Why, without how many nodes and of what.
std::string_view words_of(const quota::cause& cause, text::language locale);
/// Of what: the container with what it lacks or what is refused of it, a counted key. Empty: of the whole pod.
std::string object_of(const quota::cause& cause, container_names containers, text::language locale);
/// "container main: nvidia.com/gpumem is ..."
std::string words_of(const quota::pod_fault& fault, container_names containers, text::language locale);
/// Without the container.
std::string words_of(const quota::pod_fault& fault, text::language locale);
/// `nodes` as given to `quota::explain`; without them no node is named, as of a change of the pod it need not be.
std::string words_of(const quota::change& change, std::span<const quota::node_view> nodes, container_names containers,
                     text::language locale);
std::string words_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     container_names containers, text::language locale);
/// How many nodes fit, and why the others do not, without changes. As well without nodes, and then without their names.
std::string words_of_causes(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                            container_names containers, text::language locale);

}  // namespace api
