#pragma once
// Why a request has no answer, as people read it. In English that is the line of the error. In Chinese its code says
// it, with the line as a quotation, because libraries and API servers speak English alone.

#include "kube/error.hpp"
#include "text/phrase.hpp"

namespace cli {

/// For a person who may not read: the role of the chart that lets people read it. Empty for every other error.
text::phrase role_hint(const kube::error& refused);

/// For a verb that does not only read: no role for readers helps there.
text::phrase phrase_without_hint(const kube::error& error);
/// It with its hint.
text::phrase phrase_of(const kube::error& error);

/// The error of `result` as a phrase.
std::expected<void, text::phrase> in_words(const kube::result<void>& result);

}  // namespace cli
