#pragma once
// Errors that people meet on accelerators and what to do about them: symptom, check, cure, in both languages, found by
// code, by name, or by a line pasted from a log. The words are those of docs/troubleshooting*.md, which are compiled
// in; a section belongs to the error whose `quartermaster explain error ID` it ends with.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::cuda {

struct error_words {
  std::string title;
  std::string symptom;  ///< what it means
  std::string check;    ///< one step per line; what is in backquotes is typed
  std::string cure;     ///< the same
};

struct known_error {
  std::string_view id;    ///< stable: "unsupported-ptx-version"
  std::string_view name;  ///< "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", or empty
  int code;               ///< 222; 0: none
  /// What its texts hold, in lower case, one a line.
  std::string_view phrases;
  std::string_view source;
  error_words en, zh;
  const error_words& in(text::language locale) const { return locale == text::language::zh ? zh : en; }
};

std::span<const known_error> known_errors();

/// All that `text` names, in the order of the table: a code ("999", "error 802"), a name in any case and with or
/// without CUDA_ERROR_, an id, or lines of a log. A number within a log counts only on a line that speaks of CUDA.
std::vector<const known_error*> errors_in(std::string_view text);

}  // namespace reconcilers::cuda
