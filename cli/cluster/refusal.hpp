#pragma once
// Why a request has no answer, as people read it. In English that is the line of the error. In Chinese its code says
// it, with the line as a quotation, because libraries and API servers speak English alone.

#include "cli/cluster/cluster.hpp"
#include "kube/error.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Of a refusal (403) that is who may not do what, and where. For a verb that does not only read: no role for readers
/// helps there.
text::phrase phrase_without_grants(const kube::error& error);
text::phrase phrase_without_grants(const cluster_error& error);
/// It with the roles that would allow the read, the smallest first. They are arguments that are no words of the phrase:
/// `failed` (cli/output/answer.hpp) prints the commands below the line.
text::phrase phrase_of(const kube::error& error);
/// A fault of the kubeconfig in its own words.
text::phrase phrase_of(const cluster_error& error);

/// Where less than the read suffices for an answer: the role `view` in a namespace, or what all signed-in people may
/// have. It then comes first.
text::phrase where_view_suffices(text::phrase refused, const std::string& ns);
text::phrase where_everyone_suffices(text::phrase refused);

/// The error of `result` as a phrase.
std::expected<void, text::phrase> in_words(const cluster_answer& result);

}  // namespace cli
