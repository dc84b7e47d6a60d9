#include "agent/cards/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

namespace agent::cards {
namespace {

constexpr std::size_t id_length = 64, uid_length = 36;

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// "cri-containerd-ID.scope", "crio-ID.scope", "docker-ID.scope", or ID alone: the ID, else nothing.
std::string_view container_in(std::string_view folder) {
  if (folder.ends_with(".scope")) folder.remove_suffix(6);
  if (folder.size() < id_length) return {};
  const auto id = folder.substr(folder.size() - id_length);
  const bool stands_alone = folder.size() == id_length || folder[folder.size() - id_length - 1] == '-';
  return stands_alone && is_hexadecimal(id) ? id : std::string_view();
}

/// "podUID", or "kubepods-burstable-podUID.slice" with '_' for '-'. The UID of a static pod is 32 digits.
std::string pod_in(std::string_view folder) {
  if (folder.ends_with(".slice")) {
    folder.remove_suffix(6);
    const auto name = folder.rfind("-pod");
    if (!folder.starts_with("kubepods") || name == folder.npos) return {};
    folder.remove_prefix(name + 1);
  }
  if (!folder.starts_with("pod")) return {};
  std::string uid(folder.substr(3));
  std::ranges::replace(uid, '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  const bool has_length = uid.size() == uid_length || uid.size() == digits.size();
  return has_length && digits.size() == 32 && is_hexadecimal(digits) ? uid : "";
}

/// The outermost container of a pod in the path: a container may make cgroups of its own. Where kubelet and runtime
/// have different cgroup drivers, a folder is "kubepods-podUID.slice:cri-containerd:ID".
std::optional<process_owner> owner_in_path(std::string_view path) {
  process_owner out;
  while (!path.empty()) {
    const auto end = std::min(path.find_first_of("/:"), path.size());
    const auto folder = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (out.pod_uid.empty()) {
      out.pod_uid = pod_in(folder);
    } else if (const auto id = container_in(folder); !id.empty()) {
      out.container = id;
      break;
    }
  }
  if (out.pod_uid.empty()) return std::nullopt;
  out.kind = owner_kind::pod;
  return out;
}

/// The first bytes of a small file; nothing where it cannot be read.
std::optional<std::string> read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string out;
  std::array<char, 4096> part;
  ssize_t size = 0;
  while (out.size() < (std::size_t{64} << 10) && (size = read(file, part.data(), part.size())) > 0)
    out.append(part.data(), static_cast<std::size_t>(size));
  close(file);
  if (size < 0) return std::nullopt;
  return out;
}

}  // namespace

process_owner owner_in(std::string_view cgroup) {
  process_owner out;
  while (!cgroup.empty()) {
    const auto line = cgroup.substr(0, cgroup.find('\n'));
    cgroup.remove_prefix(std::min(line.size() + 1, cgroup.size()));
    const auto first = line.find(':');
    const auto second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    out.kind = owner_kind::host;
    if (const auto pod = owner_in_path(line.substr(second + 1))) return *pod;
  }
  return out;
}

process_owner owner_of(const std::string& proc, unsigned pid) {
  const auto folder = proc + "/" + std::to_string(pid);
  const auto cgroup = read_file(folder + "/cgroup");
  if (!cgroup) return {};
  auto out = owner_in(*cgroup);
  // The kernel keeps 15 letters of "nvidia-cuda-mps-server".
  if (const auto name = read_file(folder + "/comm"); name && name->starts_with("nvidia-cuda-mps"))
    out.kind = owner_kind::mps_server;
  return out;
}

}  // namespace agent::cards
