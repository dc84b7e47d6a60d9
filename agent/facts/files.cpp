#include "agent/facts/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace agent::facts {
namespace {

struct closed_folder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

/// The folder that is mounted as a whole, or not at all: of /var, single ones are.
std::string mount_of(const std::string& path) {
  const std::size_t parts = path.starts_with("/var/lib/kubelet/") ? 4 : path.starts_with("/var/lib/") ? 3 : 1;
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts && end != std::string::npos; ++i) end = path.find('/', end + 1);
  return path.substr(0, end);
}

}  // namespace

files::files(std::string root) : root_(std::move(root)) {
  while (root_.ends_with('/')) root_.pop_back();
}

std::string files::blindness(const std::string& path, int error) const {
  if (error != ENOENT && error != ENOTDIR) return path + " cannot be read: " + std::strerror(error);
  // Only what is below a folder that is mounted can be said not to be there.
  const auto top = mount_of(path);
  struct stat about{};
  if (::stat(full(top).c_str(), &about) != 0) return top + " of the node is not mounted at " + full(top);
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto part = full(path.substr(0, end));
    if (::lstat(part.c_str(), &about) != 0) return {};
    if (S_ISLNK(about.st_mode) && ::stat(part.c_str(), &about) != 0)
      return path.substr(0, end) + " is a link to what is not mounted";
    if (end == std::string::npos) return {};
  }
}

fact<std::optional<std::string>> files::text(const std::string& path, std::size_t most_bytes) const {
  // A FIFO or a device would wait for someone.
  const descriptor file{::open(full(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.number < 0) {
    auto reason = blindness(path, errno);
    if (!reason.empty()) return std::unexpected(std::move(reason));
    return std::nullopt;
  }
  struct stat about{};
  if (::fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode)) return std::unexpected(path + " is no file");
  std::string out;
  char part[4096];
  while (out.size() < most_bytes) {
    const auto length = ::read(file.number, &part[0], sizeof part);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::unexpected(path + " cannot be read: " + std::strerror(errno));
    if (length == 0) break;
    out.append(&part[0], static_cast<std::size_t>(length));
  }
  return out;
}

fact<bool> files::exists(const std::string& path) const {
  struct stat about{};
  if (::lstat(full(path).c_str(), &about) == 0) return true;
  auto reason = blindness(path, errno);
  if (!reason.empty()) return std::unexpected(std::move(reason));
  return false;
}

fact<std::vector<std::string>> files::names(const std::string& folder) const {
  const std::unique_ptr<DIR, closed_folder> open(::opendir(full(folder).c_str()));
  if (!open) {
    auto reason = blindness(folder, errno);
    if (!reason.empty()) return std::unexpected(std::move(reason));
    return std::vector<std::string>();
  }
  std::vector<std::string> out;
  while (const auto* entry = ::readdir(open.get())) {
    const std::string_view name(&entry->d_name[0]);
    if (name != "." && name != "..") out.emplace_back(name);
  }
  std::ranges::sort(out);
  return out;
}

fact<std::optional<unsigned>> files::mode(const std::string& path) const {
  struct stat about{};
  if (::stat(full(path).c_str(), &about) == 0) return about.st_mode & 07777U;
  auto reason = blindness(path, errno);
  if (!reason.empty()) return std::unexpected(std::move(reason));
  return std::nullopt;
}

std::string files::link_name(const std::string& path) const {
  char out[PATH_MAX];
  const auto length = ::readlink(full(path).c_str(), &out[0], sizeof out);
  if (length <= 0) return {};
  const std::string_view found(&out[0], static_cast<std::size_t>(length));
  return std::string(found.substr(found.rfind('/') + 1));
}

std::string files::target(const std::string& path) const {
  char out[PATH_MAX];
  if (!::realpath(full(path).c_str(), &out[0])) return {};
  std::string found(&out[0]);
  char root[PATH_MAX];
  const std::string own = root_.empty() || !::realpath(root_.c_str(), &root[0]) ? std::string() : std::string(&root[0]);
  if (!found.starts_with(own)) return {};
  return found.substr(own.size());
}

}  // namespace agent::facts
