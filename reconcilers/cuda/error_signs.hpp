#pragma once
// What each section of docs/troubleshooting.md is known by: codes, names, and patterns of lines as programs print them.
//
// A pattern is in lower case and begins and ends at the edge of a word. In it
//   a blank  is any white space; one of them may be a line break, because terminals break lines where they like;
//   '        is any quotation mark;
//   *        is up to 200 characters of the same line;
//   #        is a number, also with a fraction; right behind the first word it is the rest of that word;
//   ^        at its beginning is the beginning of the line;
//   $        at its end is the end of the line.

#include <span>
#include <string_view>

namespace reconcilers::cuda {

struct error_signs {
  std::string_view id;        ///< "out-of-memory"
  std::string_view name;      ///< "CUDA_ERROR_OUT_OF_MEMORY", or empty
  std::string_view codes;     ///< of CUDA, separated by blanks; the first is the section's own
  std::string_view aliases;   ///< what a person types and nothing else, one per line
  std::string_view patterns;  ///< one per line
  /// Exit codes and signals, "137 -9", which count typed alone and behind "exit code" and the like.
  std::string_view exits = {};
};

/// In the order in which answers are printed: what explains most comes first.
std::span<const error_signs> all_error_signs();

// Its parts, in that order, each in a file of its own.
std::span<const error_signs> cards_error_signs();
std::span<const error_signs> driver_error_signs();
std::span<const error_signs> containers_error_signs();
std::span<const error_signs> vendors_error_signs();
std::span<const error_signs> memory_error_signs();
std::span<const error_signs> image_error_signs();
std::span<const error_signs> program_error_signs();

}  // namespace reconcilers::cuda
