#pragma once
// Files of a node, read and replaced so that nothing is ever half-written. No symbolic link is followed, in any part of
// a path. A new text is a draft first, synced, with the mode and the owner of the file before; then it is renamed into
// place, and the folder is synced. Errors are one line that says what to do.

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/phrase.hpp"

namespace agent::disk {

using error = text::phrase;

constexpr std::size_t largest_file = 1 << 20;

class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// False, with errno, where what was written did not arrive.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// "cannot read FILE: ...", with what to do about this error number. `action` is a key below disk.cannot.
std::unexpected<error> failed(std::string_view action, const std::string& path, int number);

/// A folder that is open, and its path for messages.
struct folder {
  descriptor handle;
  std::string path;

  std::string file(const std::string& name) const { return path + "/" + name; }
  std::expected<void, error> sync() const;
};

/// `missing` is added to the error where there is no such folder.
std::expected<folder, error> open_below(const folder& parent, const std::string& name,
                                        const text::phrase& missing = {});
/// An absolute path without dots.
std::expected<folder, error> open_folder(const std::string& path, const text::phrase& missing = {});
/// In English, for logs and for the kubelet.
std::string line_of(const error& error);
/// It says that this folder, not one above it, is not there.
bool is_missing(const error& error, const std::string& path);

struct content {
  std::string text;
  struct stat about;
};
/// Nothing: there is no such file. Errors: a link, no regular file, larger than `most` bytes, no UTF-8.
std::expected<std::optional<content>, error> read(const folder& folder, const std::string& name,
                                                  std::size_t most = largest_file);

/// Mode and owner of a file that is written again.
struct like {
  mode_t mode = 0600;
  uid_t owner = ::geteuid();
  gid_t group = ::getegid();
};
like like_of(const struct stat& status);

/// Where a text is written before it is renamed: the same file system, and a folder that no program watches.
struct draft_place {
  const folder& own;
  std::string name = "draft";
};

/// The text in the draft, all of it on the disk.
std::expected<void, error> draft(const draft_place& place, std::string_view text, const like& like);

/// The text in the file, if the file is still as `expected` has it (null: whatever it is).
std::expected<void, error> put(const draft_place& place, const folder& target, const std::string& name,
                               std::string_view text, const like& like, const std::optional<std::string>* expected);

/// Still as it was when the step was chosen?
std::expected<void, error> unchanged(const folder& folder, const std::string& name,
                                     const std::optional<std::string>& expected);

/// No error where there is none.
std::expected<void, error> remove(const folder& folder, const std::string& name);

}  // namespace agent::disk
