#include "agent/disk/folder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "text/escape.hpp"

namespace agent::disk {
namespace {

text::phrase remedy_of(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return {"disk.remedy.space"};
    case EROFS:
      return {"disk.remedy.read_only"};
    case EIO:
      return {"disk.remedy.disk"};
    case EACCES:
    case EPERM:
      return {"disk.remedy.root"};
    case EXDEV:
      return {"disk.remedy.other_system"};
    default:
      return {};
  }
}

std::unexpected<error> refused(std::string_view key, const std::string& path,
                               std::vector<text::phrase_argument> arguments = {}) {
  arguments.push_back({"path", path});
  return std::unexpected(error{"disk." + std::string(key), std::move(arguments)});
}
std::unexpected<error> linked(const std::string& path) { return refused("link", path); }

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

std::unexpected<error> failed(std::string_view action, const std::string& path, int number) {
  return refused("cannot." + std::string(action), path,
                 {{"error", std::string(std::strerror(number))}, {"remedy", remedy_of(number)}});
}

std::string line_of(const error& error) { return words_of(error, text::language::en); }

bool is_missing(const error& error, const std::string& path) {
  return error.key == "disk.no_folder" && std::ranges::any_of(error.arguments, [&](const auto& argument) {
           return argument.name == "path" && argument.values.front() == path;
         });
}

std::expected<void, error> folder::sync() const {
  if (::fsync(handle.get()) != 0) return failed("sync_folder", path, errno);
  return {};
}

std::expected<folder, error> open_below(const folder& parent, const std::string& name, const text::phrase& missing) {
  const auto path = parent.path == "/" ? "/" + name : parent.path + "/" + name;
  descriptor descriptor(::openat(parent.handle.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (descriptor) return folder{std::move(descriptor), path};
  const int number = errno;
  if (is_link(parent.handle.get(), name.c_str())) return linked(path);
  if (number == ENOENT) return refused("no_folder", path, {{"remedy", missing}});
  return failed("open_folder", path, number);
}

std::expected<folder, error> open_folder(const std::string& path, const text::phrase& missing) {
  folder folder{descriptor(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), "/"};
  if (!folder.handle) return failed("open_folder", "/", errno);
  for (std::size_t index = 0; index < path.size();) {
    const auto end = std::min(path.find('/', index), path.size());
    if (const auto part = path.substr(index, end - index); part == "." || part == "..") {
      return refused("dots", path);
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
  if (!S_ISREG(out.about.st_mode)) return refused("no_regular_file", path);
  char buffer[16384];
  for (;;) {
    const auto got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path, errno);
    if (got == 0) break;
    out.text.append(buffer, static_cast<std::size_t>(got));
    if (out.text.size() > most) return refused("too_large", path, {{"size", std::to_string(most >> 20)}});
  }
  if (text::utf8_clean(out.text) != out.text) return refused("no_utf8", path);
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
    return refused("cannot.give", path,
                   {{"user", std::to_string(like.owner)},
                    {"group", std::to_string(like.group)},
                    {"error", std::string(std::strerror(errno))},
                    {"remedy", remedy_of(errno)}});
  if (::fchmod(file.get(), like.mode) != 0) return failed("set_mode", path, errno);
  if (auto done = write_all(file.get(), text, path); !done) return done;
  if (::fsync(file.get()) != 0) return failed("sync", path, errno);
  if (!file.close()) return failed("write", path, errno);
  return {};
}

std::expected<void, error> unchanged(const folder& folder, const std::string& name,
                                     const std::optional<std::string>& expected) {
  const auto is = read(folder, name);
  if (!is) return std::unexpected(is.error());
  if ((*is ? std::optional((*is)->text) : std::nullopt) != expected) return refused("changed", folder.file(name));
  return {};
}

std::expected<void, error> put(const draft_place& place, const folder& target, const std::string& name,
                               std::string_view text, const like& like, const std::optional<std::string>* expected) {
  auto done = draft(place, text, like);
  if (done && expected) done = unchanged(target, name, *expected);
  if (done && ::renameat(place.own.handle.get(), place.name.c_str(), target.handle.get(), name.c_str()) != 0)
    done = failed("rename", target.file(name), errno);
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
