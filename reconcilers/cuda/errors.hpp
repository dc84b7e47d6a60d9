#pragma once
// Errors that people meet on accelerators and what to do about them: symptom, check, cure, in both languages, found by
// code, by XID, by name, or by lines of a log. The words are those of docs/troubleshooting*.md, which are compiled
// in; a section belongs to the error whose `quartermaster explain error ID` it ends with.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cuda/error_finder.hpp"
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
  std::string_view source;
  error_words en, zh;
  const error_words& in(text::language locale) const { return locale == text::language::zh ? zh : en; }
};

std::span<const known_error> known_errors();

struct error_match {
  const known_error* error;
  std::vector<std::uint64_t> xids;  ///< the numbers of the text that this section is about
};

/// All that the text names, in the order of the table. `finder` has finished.
std::vector<error_match> matches_of(const error_finder& finder);
/// The same of a text at hand: a code ("999", "error 802"), an XID ("xid 48"), a name in any case and with or without
/// CUDA_ERROR_, an id, or lines of a log. A number within a log counts only right behind an error of CUDA.
std::vector<error_match> errors_in(std::string_view text);

/// "Xid 48: double-bit ECC error. At fault: the card. The agent takes the card out of use."
std::string text_of_xid(std::uint64_t xid, text::language locale);
/// Whose fault it is, for programs: "program", "driver", "card", "link", "unknown".
std::string_view fault_of_xid(std::uint64_t xid);

}  // namespace reconcilers::cuda
