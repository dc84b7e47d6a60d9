#include "agent/facts/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace agent::facts {
namespace {

struct folder_closer {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

/// The folder of the path that a mount brings: the top one, and below /var/lib/ and /var/lib/kubelet/ single ones.
std::string mount_of(const std::string& path) {
  const std::size_t parts = path.starts_with("/var/lib/kubelet/") ? 4 : path.starts_with("/var/lib/") ? 3 : 1;
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts && end != std::string::npos; ++i) end = path.find('/', end + 1);
  return path.substr(0, end);
}

explained_cause about(check_cause code, const std::string& path) { return {code, {{"path", path}}}; }

explained_cause unreadable(const std::string& path, int error) {
  return {check_cause::unreadable, {{"path", path}, {"error", std::strerror(error)}}};
}

}  // namespace

files::files(std::string root) : root_(std::move(root)) {
  while (root_.ends_with('/')) root_.pop_back();
}

/// As `open`, and a link with an absolute target begins at the root, as it does on the node.
int files::open(const std::string& path, int flags) const {
  if (root_.empty()) return ::open(path.c_str(), flags | O_CLOEXEC);
  const descriptor root{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (root.number < 0) return -1;
  open_how wanted{};
  wanted.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  wanted.resolve = RESOLVE_IN_ROOT;
  constexpr int most_tries = 8;  // a rename anywhere on the node can disturb it
  for (int i = 0; i < most_tries; ++i) {
    const auto out = ::syscall(SYS_openat2, root.number, path.c_str(), &wanted, sizeof wanted);
    if (out >= 0 || errno != EAGAIN) {
      // Linux before 5.6 has no such call, and an old container runtime forbids what it does not know.
      if (out < 0 && (errno == ENOSYS || errno == EPERM)) return ::open(full(path).c_str(), flags | O_CLOEXEC);
      return static_cast<int>(out);
    }
  }
  return -1;
}

bool files::look(const std::string& path, struct stat& file_status, bool follows) const {
  const descriptor file{open(path, O_PATH | (follows ? 0 : O_NOFOLLOW))};
  return file.number >= 0 && ::fstat(file.number, &file_status) == 0;
}

std::optional<explained_cause> files::blindness(const std::string& path, int error) const {
  if (error != ENOENT && error != ENOTDIR) return unreadable(path, error);
  // Only what is below a folder that is mounted can be said not to be there.
  const auto top = mount_of(path);
  struct stat file_status{};
  if (!look(top, file_status)) return explained_cause{check_cause::not_mounted, {{"path", top}, {"place", full(top)}}};
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto part = path.substr(0, end);
    if (!look(part, file_status, false)) return std::nullopt;
    if (S_ISLNK(file_status.st_mode) && !look(part, file_status)) return about(check_cause::link_leads_out, part);
    if (end == std::string::npos) return std::nullopt;
  }
}

fact<std::optional<std::string>> files::text(const std::string& path, std::size_t enough_bytes) const {
  // A FIFO or a device would wait for someone.
  const descriptor file{open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)};
  if (file.number < 0) {
    auto reason = blindness(path, errno);
    if (reason) return std::unexpected(*std::move(reason));
    return std::nullopt;
  }
  struct stat file_status{};
  if (::fstat(file.number, &file_status) != 0 || !S_ISREG(file_status.st_mode))
    return std::unexpected(about(check_cause::no_regular_file, path));
  std::string out;
  char part[4096];
  while (out.size() < enough_bytes) {
    const auto length = ::read(file.number, &part[0], sizeof part);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::unexpected(unreadable(path, errno));
    if (length == 0) break;
    out.append(&part[0], static_cast<std::size_t>(length));
  }
  return out;
}

fact<bool> files::exists(const std::string& path) const {
  struct stat file_status{};
  if (look(path, file_status, false)) return true;
  auto reason = blindness(path, errno);
  if (reason) return std::unexpected(*std::move(reason));
  return false;
}

fact<std::vector<std::string>> files::names(const std::string& folder) const {
  const auto number = open(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  const std::unique_ptr<DIR, folder_closer> opened(number < 0 ? nullptr : ::fdopendir(number));
  if (!opened) {
    auto reason = blindness(folder, errno);
    if (number >= 0) ::close(number);
    if (reason) return std::unexpected(*std::move(reason));
    return std::vector<std::string>();
  }
  std::vector<std::string> out;
  while (const auto* entry = ::readdir(opened.get())) {
    const std::string_view name(&entry->d_name[0]);
    if (name != "." && name != "..") out.emplace_back(name);
  }
  std::ranges::sort(out);
  return out;
}

fact<std::optional<unsigned>> files::mode(const std::string& path) const {
  struct stat file_status{};
  if (look(path, file_status)) return file_status.st_mode & 07777U;
  auto reason = blindness(path, errno);
  if (reason) return std::unexpected(*std::move(reason));
  return std::nullopt;
}

std::string files::link_name(const std::string& path) const {
  const descriptor link{open(path, O_PATH | O_NOFOLLOW)};
  if (link.number < 0) return {};
  char out[PATH_MAX];
  const auto length = ::readlinkat(link.number, "", &out[0], sizeof out);
  if (length <= 0) return {};
  const std::string_view found(&out[0], static_cast<std::size_t>(length));
  return std::string(found.substr(found.rfind('/') + 1));
}

std::string files::target(const std::string& path) const {
  const descriptor file{open(path, O_PATH)};
  if (file.number < 0) return {};
  char out[PATH_MAX];
  if (!::realpath(("/proc/self/fd/" + std::to_string(file.number)).c_str(), &out[0])) return {};
  std::string found(&out[0]);
  char root[PATH_MAX];
  const std::string real_root =
      root_.empty() || !::realpath(root_.c_str(), &root[0]) ? std::string() : std::string(&root[0]);
  if (!found.starts_with(real_root)) return {};
  return found.substr(real_root.size());
}

}  // namespace agent::facts
