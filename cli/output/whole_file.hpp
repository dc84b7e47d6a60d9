#pragma once
// Files that a verb writes: whole, or as they were before, also where the disk is full or the program is ended
// meanwhile.

#include <string>
#include <string_view>

namespace cli {

/// Beyond the largest size of a file (ulimit -f) a write fails then, in place of SIGXFSZ, which ends the program. By a
/// handler: what is ignored would be inherited by programs that are started.
void outlive_size_limit();

/// What is no plain file, as a pipe or /dev/stdout, is written to as it is.
/// @return 0, or errno
int write_whole_file(std::string_view text, const std::string& path);

}  // namespace cli
