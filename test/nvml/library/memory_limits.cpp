// Limits of memory by cgroup, as drivers of branch R615 and newer have them. A cgroup is any folder here.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "../call.hpp"

using namespace nvml;

namespace {

subject limited_card(const char* function, device device) {
  const auto match = find(function, device);
  if (std::atoi(match.now->node["driver"]["version"].get<std::string>().c_str()) < 615)
    throw failure{function_not_found};
  if (match.is_mig_device() || match.is_cut() || match.card.value("memory_limits", "kept") == "off")
    throw failure{not_supported};
  return match;
}

bool is_folder(const char* path) {
  struct statx file{};
  // Not stat(): its symbol is newer than the oldest C library that this must load with.
  return statx(AT_FDCWD, path, 0, STATX_TYPE, &file) == 0 && S_ISDIR(file.stx_mode);
}

/// By "UUID CGROUP": soft and hard limit.
json kept_limits() {
  const char* path = std::getenv("QM_NVML_LIMITS");
  if (!path) return session::instance().setting("", "memory_limits");
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

void keep(const json& limits) {
  const char* path = std::getenv("QM_NVML_LIMITS");
  if (!path) return session::instance().set("", "memory_limits", limits);
  std::ofstream(path, std::ios::trunc) << limits.dump();
}

std::string name_of(const subject& card, const char* cgroup) { return card.handle.uuid + " " + cgroup; }

}  // namespace

NVML_EXPORT nvmlDeviceSetMemoryLimits_v1(device device, memory_limits* limits) {
  return answer([&] {
    const auto card = limited_card("nvmlDeviceSetMemoryLimits_v1", device);
    require(limits);
    require(limits->cgroup);
    if (geteuid() != 0) throw failure{no_permission};
    const auto total = card.fact("memory_total_mib").get<std::uint64_t>() * mib;
    if (limits->reserved > limits->most || limits->reserved > total) throw failure{invalid_argument};
    if (limits->most > total && limits->most != no_memory_limit) throw failure{invalid_argument};
    if (!is_folder(limits->cgroup)) throw failure{operating_system};
    if (card.card.value("memory_limits", "kept") == "ignored") return;
    auto all = kept_limits();
    if (!all.is_object()) all = json::object();
    all[name_of(card, limits->cgroup)] = {limits->reserved, limits->most};
    keep(all);
  });
}

NVML_EXPORT nvmlDeviceGetMemoryLimits_v1(device device, memory_limits_in_use* limits) {
  return answer([&] {
    const auto card = limited_card("nvmlDeviceGetMemoryLimits_v1", device);
    require(limits);
    require(limits->cgroup);
    if (!is_folder(limits->cgroup)) throw failure{operating_system};
    const auto all = kept_limits();
    const auto match = all.find(name_of(card, limits->cgroup));
    if (!all.is_object() || match == all.end()) throw failure{not_found};
    limits->reserved = (*match)[0], limits->most = (*match)[1], limits->used = 0;
  });
}
