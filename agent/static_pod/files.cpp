#include "agent/static_pod/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/static_pod/record.hpp"
#include "text/escape.hpp"

namespace agent::static_pod {
namespace {

constexpr std::size_t largest = 1 << 20;
/// Four files are in a record, and JSON writes some bytes as six.
constexpr std::size_t largest_record = 4 * 6 * largest + largest;
constexpr auto config_name = "scheduler-config.yaml", manifest_name = "kube-scheduler.yaml",
               kubeconfig_name = "scheduler.conf", record_name = "record.json", draft_name = "draft";
constexpr auto manifests_folder = "manifests", own_folder = "quartermaster";

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
std::unexpected<error> failed(std::string_view doing, const std::string& path, int number) {
  return std::unexpected("cannot " + std::string(doing) + " " + path + ": " + std::strerror(number) +
                         remedy_of(number));
}
std::unexpected<error> linked(const std::string& path) {
  return std::unexpected(path + " is a symbolic link, which is not followed; put the file or folder itself there");
}

bool is_link(int folder, const char* name) {
  struct stat about{};
  return ::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode);
}

/// A folder that is open, and its path for messages.
struct folder {
  descriptor handle;
  std::string path;

  std::string file(const char* name) const { return path + "/" + name; }
  std::expected<void, error> sync() const {
    if (::fsync(handle.get()) != 0) return failed("sync the folder", path, errno);
    return {};
  }
};

std::expected<folder, error> open_below(const folder& parent, const std::string& name) {
  const auto path = parent.path == "/" ? "/" + name : parent.path + "/" + name;
  descriptor descriptor(::openat(parent.handle.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (descriptor) return folder{std::move(descriptor), path};
  const int number = errno;
  if (is_link(parent.handle.get(), name.c_str())) return linked(path);
  if (number == ENOENT)
    return std::unexpected("no folder " + path + ": this is no control-plane node as kubeadm sets it up");
  return failed("open the folder", path, number);
}

std::expected<folder, error> open_root(const std::string& root) {
  folder folder{descriptor(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), "/"};
  if (!folder.handle) return failed("open the folder", "/", errno);
  for (std::size_t index = 0; index < root.size();) {
    const auto end = std::min(root.find('/', index), root.size());
    if (const auto part = root.substr(index, end - index); part == "." || part == "..") {
      return std::unexpected(root + " is no absolute path without dots");
    } else if (!part.empty()) {
      auto below = open_below(folder, part);
      if (!below) return below;
      folder = std::move(*below);
    }
    index = end + 1;
  }
  return folder;
}

/// The three folders. `own` may not be there before the first write.
struct folders {
  folder root, manifests;
  std::optional<folder> own;
};

std::expected<folders, error> open_all(const std::string& path, bool make) {
  auto root = open_root(path);
  if (!root) return std::unexpected(std::move(root.error()));
  auto manifests = open_below(*root, manifests_folder);
  if (!manifests) return std::unexpected(std::move(manifests.error()));
  if (make) {
    if (::mkdirat(root->handle.get(), own_folder, 0700) == 0) {
      if (auto done = root->sync(); !done) return std::unexpected(std::move(done.error()));
    } else if (errno != EEXIST) {
      return failed("make the folder", root->file(own_folder), errno);
    }
  }
  struct stat about{};
  std::optional<folder> own;
  if (::fstatat(root->handle.get(), own_folder, &about, AT_SYMLINK_NOFOLLOW) == 0) {
    auto there = open_below(*root, own_folder);
    if (!there) return std::unexpected(std::move(there.error()));
    own = std::move(*there);
  }
  return folders{std::move(*root), std::move(*manifests), std::move(own)};
}

struct content {
  std::string text;
  struct stat about;
};
/// Nothing: there is no such file.
std::expected<std::optional<content>, error> read(const folder& folder, const char* name, std::size_t most = largest) {
  const auto path = folder.file(name);
  descriptor file(::openat(folder.handle.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
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

std::expected<void, error> write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const auto put = ::write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

/// Mode and owner of a file that is written again.
struct like {
  mode_t mode = 0600;
  uid_t owner = ::geteuid();
  gid_t group = ::getegid();
};
like like_of(const struct stat& status) {
  return {static_cast<mode_t>(status.st_mode & 07777), status.st_uid, status.st_gid};
}

/// The text in a file next to the record, all of it on the disk.
std::expected<void, error> draft(const folder& own, std::string_view text, const like& like) {
  const auto path = own.file(draft_name);
  if (::unlinkat(own.handle.get(), draft_name, 0) != 0 && errno != ENOENT) return failed("remove", path, errno);
  descriptor file(::openat(own.handle.get(), draft_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
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

/// Still as it was when the step was chosen?
std::expected<void, error> unchanged(const folder& folder, const char* name,
                                     const std::optional<std::string>& expected) {
  const auto is = read(folder, name);
  if (!is) return std::unexpected(is.error());
  if ((*is ? std::optional((*is)->text) : std::nullopt) != expected)
    return std::unexpected(folder.file(name) + " was changed in this moment by someone else, and is left as it is");
  return {};
}

std::expected<void, error> put(const folder& own, const folder& target, const char* name, std::string_view text,
                               const like& like, const std::optional<std::string>* expected) {
  auto done = draft(own, text, like);
  if (done && expected) done = unchanged(target, name, *expected);
  if (done && ::renameat(own.handle.get(), draft_name, target.handle.get(), name) != 0)
    done = failed("rename to", target.file(name), errno);
  if (!done) {
    ::unlinkat(own.handle.get(), draft_name, 0);
    return done;
  }
  return target.sync();
}

std::expected<void, error> remove(const folder& folder, const char* name) {
  if (::unlinkat(folder.handle.get(), name, 0) != 0 && errno != ENOENT)
    return failed("remove", folder.file(name), errno);
  return folder.sync();
}

/// Room for this many bytes in files, their blocks and entries.
std::expected<void, error> room(const folder& folder, std::size_t bytes, std::size_t in_files) {
  struct statvfs about{};
  if (::fstatvfs(folder.handle.get(), &about) != 0) return failed("look for free space in", folder.path, errno);
  const auto needed = bytes + in_files * 2 * about.f_frsize;
  const auto free = static_cast<std::size_t>(about.f_bavail) * about.f_frsize;
  if (free < needed)
    return std::unexpected("too little space in " + folder.path + ": " + std::to_string(free) + " bytes are free, " +
                           std::to_string(needed) + " are needed; free some");
  if (about.f_files > 0 && about.f_favail < in_files + 1)
    return std::unexpected("too few inodes in " + folder.path + ": " + std::to_string(about.f_favail) + " are free");
  return {};
}

/// A rename crosses neither file systems nor mounts of one.
std::expected<void, error> one_mount(const folders& folders) {
  struct statx first{};
  for (const auto* entry : {&folders.root, &folders.manifests, &*folders.own}) {
    struct statx about{};
    if (::statx(entry->handle.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &about) != 0)
      return failed("look at", entry->path, errno);
    if (entry == &folders.root) first = about;
    if (about.stx_dev_major != first.stx_dev_major || about.stx_dev_minor != first.stx_dev_minor ||
        ((about.stx_mask & first.stx_mask & STATX_MNT_ID) != 0 && about.stx_mnt_id != first.stx_mnt_id))
      return std::unexpected(entry->path + " is mounted apart from " + folders.root.path +
                             ", so that no file can be renamed into it; mount one folder with both in it");
  }
  return {};
}

/// Before the first record of a change.
std::expected<void, error> preflight(const folders& folders, const record& record) {
  if (auto mounted = one_mount(folders); !mounted) return mounted;
  // Twice: the way there, and the way back.
  const auto bytes =
      write(record).size() + record.after.config.value_or("").size() + record.after.manifest.value_or("").size();
  return room(*folders.own, 2 * bytes, 3);
}

std::expected<void, error> keep(const folders& folders, const record& record) {
  if (record.stage == phase::applying || record.stage == phase::removing) {
    if (auto can = preflight(folders, record); !can) return can;
  }
  const auto text = write(record);
  return put(*folders.own, *folders.own, record_name, text, like(), nullptr);
}

/// A key is for its owner alone, whatever the file before allowed.
like like_config(const folders& folders, std::string_view text) {
  const mode_t allowed = text.contains("keyData") ? 0700 : 07777;
  for (const auto* name : {config_name, kubeconfig_name}) {
    struct stat about{};
    if (::fstatat(folders.root.handle.get(), name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
      continue;
    auto out = like_of(about);
    out.mode &= allowed;
    return out;
  }
  return like();
}

std::expected<void, error> forget(const folders& folders) {
  for (const auto* name : {draft_name, record_name}) {
    if (auto done = remove(*folders.own, name); !done) return done;
  }
  // Where a person keeps something next to it, the folder stays.
  if (::unlinkat(folders.root.handle.get(), own_folder, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return failed("remove the folder", folders.own->path, errno);
  return folders.root.sync();
}

}  // namespace

std::expected<files::contents, error> files::look() const {
  const auto folders = open_all(root_, false);
  if (!folders) return std::unexpected(folders.error());
  contents out;
  const auto config = read(folders->root, config_name);
  if (!config) return std::unexpected(config.error());
  if (*config) out.now.config = (*config)->text;
  const auto manifest = read(folders->manifests, manifest_name);
  if (!manifest) return std::unexpected(manifest.error());
  if (*manifest) {
    out.now.manifest = (*manifest)->text;
    out.manifest_at = std::chrono::system_clock::from_time_t((*manifest)->about.st_mtime);
  }
  if (!folders->own) return out;
  const auto kept = read(*folders->own, record_name, largest_record);
  if (!kept) return std::unexpected(kept.error());
  if (!*kept) return out;
  auto known = read_record((*kept)->text);
  if (!known)
    return std::unexpected(folders->own->file(record_name) + " " + known.error() +
                           "; delete it to go on from the files as they are");
  out.kept = std::move(*known);
  return out;
}

std::expected<void, error> files::rehearse(const record& record) const {
  const auto folders = open_all(root_, true);
  if (!folders) return std::unexpected(folders.error());
  auto done = preflight(*folders, record);
  if (done) done = draft(*folders->own, write(record), like());
  ::unlinkat(folders->own->handle.get(), draft_name, 0);
  // A folder that was made for this only goes; one with a record in it stays.
  ::unlinkat(folders->root.handle.get(), own_folder, AT_REMOVEDIR);
  return done;
}

std::expected<void, error> files::take(const step& step, const texts& now) const {
  if (step.kind == action::rest || step.kind == action::wait || step.kind == action::stop) return {};
  const auto folders = open_all(root_, true);
  if (!folders) return std::unexpected(folders.error());
  switch (step.kind) {
    case action::keep:
      return keep(*folders, step.kept);
    case action::forget:
      return forget(*folders);
    case action::remove_config:
      if (auto same = unchanged(folders->root, config_name, now.config); !same) return same;
      return remove(folders->root, config_name);
    case action::write_config:
      return put(*folders->own, folders->root, config_name, step.text, like_config(*folders, step.text), &now.config);
    case action::write_manifest: {
      const auto there = read(folders->manifests, manifest_name);
      if (!there) return std::unexpected(there.error());
      const auto attributes = *there ? like_of((*there)->about) : like();
      return put(*folders->own, folders->manifests, manifest_name, step.text, attributes, &now.manifest);
    }
    default:
      return {};
  }
}

}  // namespace agent::static_pod
