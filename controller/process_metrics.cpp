#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "controller/metrics.hpp"

namespace controller {
namespace {

std::string read_small(const char* path) {
  std::string out(4096, '\0');
  std::FILE* const file = std::fopen(path, "re");
  out.resize(file ? std::fread(out.data(), 1, out.size(), file) : 0);
  if (file) std::fclose(file);
  return out;
}

/// Fields of /proc/self/stat behind the command name, which may hold blanks and brackets; the first is field 3.
double stat_field(const std::string& stat, int field) {
  const auto end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  const char* position = stat.c_str() + end_of_name + 1;
  for (int i = 3; i < field && position; ++i) position = std::strchr(position + 1, ' ');
  return position ? std::strtod(position, nullptr) : 0;
}

double open_fds() {
  DIR* const dir = opendir("/proc/self/fd");
  if (!dir) return 0;
  double found = 0;
  while (const dirent* entry = readdir(dir)) found += entry->d_name[0] != '.';
  closedir(dir);
  return found - 1;  // the directory itself
}

double boot_time() {
  const auto stat = read_small("/proc/stat");
  const auto position = stat.find("\nbtime ");
  if (position != std::string::npos) return std::strtod(stat.c_str() + position + 7, nullptr);
  timespec wall{}, boot{};
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  return static_cast<double>(wall.tv_sec - boot.tv_sec);
}

}  // namespace

void add_process_metrics(registry& registry) {
  registry.collect([](metric_text& metric_text) {
    const auto stat = read_small("/proc/self/stat");
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const auto append = [&](std::string_view name, std::string_view help, std::string_view type, double value) {
      metric_text.family(name, help, type);
      metric_text.sample(name, {}, value);
    };
    append("process_cpu_seconds_total", "User and system CPU time.", "counter",
           (stat_field(stat, 14) + stat_field(stat, 15)) / ticks);
    append("process_resident_memory_bytes", "Resident memory.", "gauge",
           stat_field(stat, 24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
    append("process_virtual_memory_bytes", "Virtual memory.", "gauge", stat_field(stat, 23));
    append("process_threads", "Threads.", "gauge", stat_field(stat, 20));
    append("process_open_fds", "Open file descriptors.", "gauge", open_fds());
    append("process_max_fds", "Limit on open file descriptors.", "gauge", static_cast<double>(limit.rlim_cur));
    append("process_start_time_seconds", "Start of the process since 1970.", "gauge",
           boot_time() + stat_field(stat, 22) / ticks);
    metric_text.family("quartermaster_build_info", "Always 1; the label says what runs.", "gauge");
    metric_text.sample("quartermaster_build_info", {{"version", QUARTERMASTER_VERSION}}, 1);
  });
}

}  // namespace controller
