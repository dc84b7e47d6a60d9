#include "agent/mps/mounts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace agent::mps {
namespace {

/// The fourth word of a line: what of its file system is mounted.
std::string_view root_of(std::string_view line) {
  for (int i = 0; i < 3; ++i) {
    const auto end = line.find(' ');
    if (end == line.npos) return {};
    line.remove_prefix(end + 1);
  }
  return line.substr(0, line.find(' '));
}

}  // namespace

bool is_mounted(const std::string& proc, std::string_view folder_end) {
  namespace fs = std::filesystem;
  std::error_code wrong;
  std::set<std::string> seen;  // namespaces, each of which many processes may have
  for (auto entry = fs::directory_iterator(proc, wrong); !wrong && entry != fs::directory_iterator();
       entry.increment(wrong)) {
    const auto name = entry->path().filename().string();
    if (!std::ranges::all_of(name, [](char sign) { return sign >= '0' && sign <= '9'; })) continue;
    std::error_code ignored;
    const auto space = fs::read_symlink(entry->path() / "ns" / "mnt", ignored).string();
    if (!space.empty() && !seen.insert(space).second) continue;
    std::ifstream mounts(entry->path() / "mountinfo");
    for (std::string line; std::getline(mounts, line);)
      if (root_of(line).ends_with(folder_end)) return true;
  }
  return false;
}

}  // namespace agent::mps
