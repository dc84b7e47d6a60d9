#pragma once
// Files of the node below a root: "/", or where the node's folders are mounted. A file that is not there is an answer;
// a folder that is not mounted, or may not be read, is none, and the reason is kept. Only regular files are read, and
// no link is followed that leads out of what is mounted: an absolute one begins at the root. Linux before 5.6 cannot do
// that, and follows it into the file system of this process.

#include <sys/stat.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/check_cause.hpp"

namespace agent::facts {

using api::check_cause, api::explained_cause;

/// What was found, or why it cannot be known.
template <class T>
using fact = std::expected<T, explained_cause>;

class files {
 public:
  explicit files(std::string root);
  /// Nothing: there is no such file. Of a longer one, the first bytes.
  fact<std::optional<std::string>> text(const std::string& path, std::size_t most_bytes = 4 << 20) const;
  /// A link counts as well, wherever it leads.
  fact<bool> exists(const std::string& path) const;
  /// In order; none where there is no such folder.
  fact<std::vector<std::string>> names(const std::string& folder) const;
  /// Permission bits; nothing: there is no such file.
  fact<std::optional<unsigned>> mode(const std::string& path) const;
  /// The last name that a link leads to, whether that is there or not; empty where there is no link.
  std::string link_name(const std::string& path) const;
  /// Where a path leads, below the root; empty where it leads nowhere.
  std::string target(const std::string& path) const;

 private:
  std::string full(const std::string& path) const { return root_ + path; }
  int open(const std::string& path, int flags) const;
  /// As `stat`, or `lstat` where a link at the end is not followed.
  bool look(const std::string& path, struct stat& about, bool follows = true) const;
  /// Why a path cannot be seen; nothing: it is not there.
  std::optional<explained_cause> blindness(const std::string& path, int error) const;

  std::string root_;  ///< without the last slash
};

}  // namespace agent::facts
