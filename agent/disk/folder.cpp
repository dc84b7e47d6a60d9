#include "agent/disk/folder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "text/escape.hpp"

namespace agent::disk {
namespace {

std::string remedy_of(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there";
    case EROFS:
      return "; mount the file system for writing";
    case EIO:
      return "; look at the disk (dmesg)";
    case EACCES:
    case EPERM:
      return "; the agent has to run as root, and own the file";
    case EXDEV:
      return "; the folder has to be on the file system of the files next to it";
    default:
      return "";
  }
}
std::unexpected<error> linked(const std::string& path) {
  return std::unexpected(path + " is a symbolic link, which is not followed; put the file or folder itself there");
}

bool is_link(int folder, const char* name) {
  struct stat about{};
  return ::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode);
}

std::expected<void, error> write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const auto put = ::write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace

std::unexpected<error> failed(std::string_view doing, const std::string& path, int number) {
  return std::unexpected("cannot " + std::string(doing) + " " + path + ": " + std::strerror(number) +
                         remedy_of(number));
}

std::expected<void, error> folder::sync() const {
  if (::fsync(handle.get()) != 0) return failed("sync the folder", path, errno);
  return {};
}

std::expected<folder, error> open_below(const folder& parent, const std::string& name, std::string_view missing) {
  const auto path = parent.path == "/" ? "/" + name : parent.path + "/" + name;
  descriptor descriptor(::openat(parent.handle.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (descriptor) return folder{std::move(descriptor), path};
  const int number = errno;
  if (is_link(parent.handle.get(), name.c_str())) return linked(path);
  if (number == ENOENT) return std::unexpected("no folder " + path + std::string(missing));
  return failed("open the folder", path, number);
}

std::expected<folder, error> open_folder(const std::string& path, std::string_view missing) {
  folder folder{descriptor(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), "/"};
  if (!folder.handle) return failed("open the folder", "/", errno);
  for (std::size_t index = 0; index < path.size();) {
    const auto end = std::min(path.find('/', index), path.size());
    if (const auto part = path.substr(index, end - index); part == "." || part == "..") {
      return std::unexpected(path + " is no absolute path without dots");
    } else if (!part.empty()) {
      auto below = open_below(folder, part, missing);
      if (!below) return below;
      folder = std::move(*below);
    }
    index = end + 1;
  }
  return folder;
}

std::expected<std::optional<content>, error> read(const folder& folder, const std::string& name, std::size_t most) {
  const auto path = folder.file(name);
  descriptor file(::openat(folder.handle.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    const int number = errno;
    if (number == ENOENT) return std::nullopt;
    if (number == ELOOP) return linked(path);
    return failed("read", path, number);
  }
  content out{};
  if (::fstat(file.get(), &out.about) != 0) return failed("read", path, errno);
  if (!S_ISREG(out.about.st_mode)) return std::unexpected(path + " is no regular file");
  char buffer[16384];
  for (;;) {
    const auto got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path, errno);
    if (got == 0) break;
    out.text.append(buffer, static_cast<std::size_t>(got));
    if (out.text.size() > most) return std::unexpected(path + " is larger than " + std::to_string(most >> 20) + " MiB");
  }
  if (text::utf8_clean(out.text) != out.text) return std::unexpected(path + " is not UTF-8");
  return out;
}

like like_of(const struct stat& status) {
  return {static_cast<mode_t>(status.st_mode & 07777), status.st_uid, status.st_gid};
}

std::expected<void, error> draft(const draft_place& place, std::string_view text, const like& like) {
  const auto path = place.own.file(place.name);
  const int own = place.own.handle.get();
  if (::unlinkat(own, place.name.c_str(), 0) != 0 && errno != ENOENT) return failed("remove", path, errno);
  descriptor file(::openat(own, place.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed("write", path, errno);
  struct stat made{};
  if (::fstat(file.get(), &made) != 0) return failed("write", path, errno);
  if ((made.st_uid != like.owner || made.st_gid != like.group) && ::fchown(file.get(), like.owner, like.group) != 0)
    return failed("give to user " + std::to_string(like.owner) + " group " + std::to_string(like.group), path, errno);
  if (::fchmod(file.get(), like.mode) != 0) return failed("set the mode of", path, errno);
  if (auto done = write_all(file.get(), text, path); !done) return done;
  if (::fsync(file.get()) != 0) return failed("sync", path, errno);
  if (!file.close()) return failed("write", path, errno);
  return {};
}

std::expected<void, error> unchanged(const folder& folder, const std::string& name,
                                     const std::optional<std::string>& expected) {
  const auto is = read(folder, name);
  if (!is) return std::unexpected(is.error());
  if ((*is ? std::optional((*is)->text) : std::nullopt) != expected)
    return std::unexpected(folder.file(name) + " was changed in this moment by someone else, and is left as it is");
  return {};
}

std::expected<void, error> put(const draft_place& place, const folder& target, const std::string& name,
                               std::string_view text, const like& like, const std::optional<std::string>* expected) {
  auto done = draft(place, text, like);
  if (done && expected) done = unchanged(target, name, *expected);
  if (done && ::renameat(place.own.handle.get(), place.name.c_str(), target.handle.get(), name.c_str()) != 0)
    done = failed("rename to", target.file(name), errno);
  if (!done) {
    ::unlinkat(place.own.handle.get(), place.name.c_str(), 0);
    return done;
  }
  return target.sync();
}

std::expected<void, error> remove(const folder& folder, const std::string& name) {
  if (::unlinkat(folder.handle.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return failed("remove", folder.file(name), errno);
  return folder.sync();
}

}  // namespace agent::disk
