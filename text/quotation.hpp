#pragma once
// What others say, as people read it: kernels, kubelets, API servers and programs of other versions.

#include "text/phrase.hpp"

namespace text {

/// A sentence that is no key of the catalogue is a quotation in Chinese.
phrase quotation_of(const phrase& message);

}  // namespace text
