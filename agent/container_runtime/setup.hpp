#pragma once
// Sets up the container runtime of this node for NVIDIA's runtime, and takes that back. Each file is replaced at once
// or not at all, and only after all files were read and judged; a call that was interrupted is completed by the next
// one. Nothing is restarted.
//
// Before a file is edited, it is kept next to itself as FILE.quartermaster-backup. What we write follows from the
// backup alone: a file that is neither the backup nor what follows from it was changed by a person, and is left alone.

#include <expected>
#include <string>
#include <vector>

#include "text/phrase.hpp"

namespace agent::container_runtime {

struct setup_options {
  std::string root = "/";
  std::string runtime;  ///< containerd, crio or docker; empty: the one that has a socket
  bool set_default = false;
  bool dry_run = false;
  /// In a pod that sees the runtime's own folder and no other one: a configuration that imports files of other folders
  /// is refused. Needs `runtime`.
  bool in_pod = false;
};

/// What was done, or would be: lines for a person.
struct report {
  std::vector<text::phrase> repairs;
  std::string difference;  ///< of a dry run, as diff has it
  std::vector<text::phrase> lines;
};
std::string text_of(const report& report, text::language language);

/// Error: one line that says what to do; no file is half-written.
std::expected<report, text::phrase> set_up(const setup_options& options);
std::expected<report, text::phrase> restore(const setup_options& options);

}  // namespace agent::container_runtime
