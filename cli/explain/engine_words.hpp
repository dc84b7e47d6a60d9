#pragma once
// What the engine (quota/) says of a pod, in the language of the answer. The engine itself says the same to
// kube-scheduler, in English; a test holds the two against each other.

#include <span>
#include <string>
#include <vector>

#include "quota/explain.hpp"
#include "quota/limits.hpp"
#include "reconcilers/extender/request.hpp"
#include "text/message.hpp"

namespace cli {

std::string words_of(quota::reason reason, text::language locale);
/// With the numbers.
std::string words_of(const quota::shortfall& shortfall, text::language locale);
std::string words_of(const quota::refusal& refusal, text::language locale);
std::string words_of(const quota::exceeded_limit& limit, text::language locale);
/// `nodes` as given to `quota::explain`; containers are named as in the request.
std::string words_of(const quota::change& change, std::span<const quota::node_view> nodes,
                     const reconcilers::extender::pod_request& request, text::language locale);
std::string words_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     const reconcilers::extender::pod_request& request, text::language locale);

/// "a, b, c and 4 more", as long as the list in text::some_of.
std::string some_of(const std::vector<std::string>& items, std::size_t most, text::language locale);

}  // namespace cli
