#include "text/input_file.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>

namespace text {
namespace {

bool is_open_already(std::string_view path) {
  constexpr std::array<std::string_view, 4> folders{"/dev/fd/", "/dev/stdin", "/proc/self/fd/",
                                                    "/proc/thread-self/fd/"};
  return std::ranges::any_of(folders, [&](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace

std::string fault_of_input(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return {};
  const bool is_empty = S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
  if (is_empty || is_open_already(path)) return {};
  return S_ISFIFO(about.st_mode) ? "file.pipe" : S_ISSOCK(about.st_mode) ? "file.socket" : "file.device";
}

bool is_utf16(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) return true;
  const auto has_gaps = [&](std::size_t first) {
    return bytes.size() >= 4 && bytes[first] == '\0' && bytes[first + 2] == '\0' && bytes[1 - first] != '\0';
  };
  return has_gaps(0) || has_gaps(1);
}

}  // namespace text
