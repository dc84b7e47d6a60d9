#include "agent/mps/memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "agent/cards/process.hpp"

namespace agent::mps {
namespace {

using cards::nvml_library;
namespace call = cards::call;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::array<std::string_view, 3> service_classes{"", "burstable", "besteffort"};

struct limit_pair {
  std::uint64_t reserved = 0, most = nvml::no_memory_limit;
  friend bool operator==(const limit_pair&, const limit_pair&) = default;
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored));
}

bool is_uid(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char sign) {
    return (sign >= '0' && sign <= '9') || (sign >= 'a' && sign <= 'f') || sign == '-';
  });
}

/// "kubepods-burstable-podUID.slice" in "kubepods-burstable.slice", with '_' for '-' in the UID.
std::string folder_of_systemd(std::string_view service_class, std::string_view uid) {
  std::string name = "kubepods", out = "/", id(uid);
  if (!service_class.empty()) {
    name.append("-").append(service_class);
    out += name + ".slice/";
  }
  std::ranges::replace(id, '-', '_');
  return out + name + "-pod" + id + ".slice";
}

std::string folder_of_cgroupfs(std::string_view service_class, std::string_view uid) {
  std::string out = "/";
  if (!service_class.empty()) out.append(service_class).append("/");
  return out + "pod" + std::string(uid);
}

std::expected<nvml::device, std::string> device_of(const nvml_library& nvml, const std::string& card) {
  nvml::device out = nullptr;
  const auto code = nvml(call::handle_by_uuid, card.c_str(), &out);
  if (code == nvml::success) return out;
  return std::unexpected("the driver does not find the card: " + nvml.error_text(code));
}

/// No limits where the driver has none of this cgroup: a driver may call that not_found or, without the kernel's
/// controller, not_supported.
std::expected<limit_pair, nvml::return_code> limits_of(const nvml_library& nvml, nvml::device device,
                                                       const std::string& cgroup) {
  nvml::memory_limits_in_use out{.cgroup = cgroup.c_str(), .reserved = 0, .most = nvml::no_memory_limit, .used = 0};
  const auto code = nvml(call::memory_limits, device, &out);
  if (code == nvml::not_found || code == nvml::not_supported) return limit_pair();
  if (code != nvml::success) return std::unexpected(code);
  return limit_pair{out.reserved, out.most};
}

std::expected<void, std::string> set_limits(const nvml_library& nvml, nvml::device device, const std::string& cgroup,
                                            limit_pair wanted) {
  nvml::memory_limits limits{.cgroup = cgroup.c_str(), .reserved = wanted.reserved, .most = wanted.most};
  const auto code = nvml(call::set_memory_limits, device, &limits);
  if (code == nvml::function_not_found)
    return std::unexpected("the driver has no limits of memory by cgroup; branch R615 and newer have them");
  if (code != nvml::success)
    return std::unexpected("the driver refuses a limit of memory for " + cgroup + ": " + nvml.error_text(code));
  const auto now = limits_of(nvml, device, cgroup);
  if (!now)
    return std::unexpected("the limit of memory for " + cgroup +
                           " cannot be read back: " + nvml.error_text(now.error()));
  if (*now != wanted) return std::unexpected("the driver does not keep a limit of memory for " + cgroup);
  return {};
}

limit_pair limits_with(std::int64_t memory_mib) { return {0, static_cast<std::uint64_t>(memory_mib) * mib}; }

}  // namespace

std::expected<std::string, std::string> cgroup_of_pods(const std::string& root) {
  std::vector<std::string> out;
  for (const auto* name : {"/kubepods.slice", "/kubepods"})
    if (is_folder(root + name)) out.push_back(root + name);
  if (out.size() == 1) return out.front();
  if (out.empty()) return std::unexpected("no cgroup of pods is in " + root + ", as cgroup v2 has it");
  return std::unexpected(root + " has both kubepods.slice and kubepods");
}

std::expected<std::string, std::string> cgroup_of_pod(const std::string& root, std::string_view uid) {
  if (!is_uid(uid)) return std::unexpected("no pod has the UID \"" + std::string(uid) + "\"");
  const auto pods = cgroup_of_pods(root);
  if (!pods) return pods;
  const auto folder_of = pods->ends_with(".slice") ? folder_of_systemd : folder_of_cgroupfs;
  std::vector<std::string> out;
  for (const auto service_class : service_classes)
    if (auto path = *pods + folder_of(service_class, uid); is_folder(path)) out.push_back(std::move(path));
  if (out.size() == 1) return out.front();
  return std::unexpected("the pod has " + std::to_string(out.size()) + " cgroups in " + *pods);
}

std::expected<std::string, std::string> cgroup_of_container(const std::string& root, std::string_view uid,
                                                            std::string_view id) {
  if (!is_uid(id)) return std::unexpected("no container has the ID \"" + std::string(id) + "\"");
  const auto pod = cgroup_of_pod(root, uid);
  if (!pod) return pod;
  const std::string name(id);
  for (const auto& folder : {name, "cri-containerd-" + name + ".scope", "crio-" + name + ".scope"})
    if (is_folder(*pod + "/" + folder)) return *pod + "/" + folder;
  return std::unexpected("container " + name + " has no cgroup in " + *pod);
}

std::expected<std::string, std::string> cgroup_for_trial(const std::string& root, const std::string& proc) {
  const auto owner = cards::owner_of(proc, static_cast<unsigned>(::getpid()));
  return owner.pod_uid.empty() ? cgroup_of_pods(root) : cgroup_of_pod(root, owner.pod_uid);
}

std::expected<void, std::string> limit_memory(const nvml_library& nvml, const std::string& card,
                                              const std::string& cgroup, std::int64_t memory_mib) {
  if (memory_mib < 1) return std::unexpected("a share without memory cannot be limited");
  const auto device = device_of(nvml, card);
  if (!device) return std::unexpected(device.error());
  return set_limits(nvml, *device, cgroup, limits_with(memory_mib));
}

std::expected<void, std::string> try_memory_limit(const nvml_library& nvml, const std::string& card,
                                                  const std::string& cgroup, std::int64_t memory_mib) {
  const auto device = device_of(nvml, card);
  if (!device) return std::unexpected(device.error());
  const auto before = limits_of(nvml, *device, cgroup);
  if (before && *before != limit_pair()) return set_limits(nvml, *device, cgroup, *before);
  const auto done = set_limits(nvml, *device, cgroup, limits_with(memory_mib));
  if (!done) return done;
  return set_limits(nvml, *device, cgroup, {});
}

}  // namespace agent::mps
