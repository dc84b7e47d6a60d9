#include "agent/cards/resident.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace agent::cards {
namespace {

struct mapping {
  std::uintptr_t begin = 0, end = 0;
  bool is_fixed = false;  ///< of a file, and cannot be written to
  bool is_changed = false;
};

bool begins_mapping(const std::string& line, mapping& target) {
  unsigned long long begin = 0, end = 0;
  char rights[5] = {}, path[2] = {};
  const int fields = std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %*s %1s", &begin, &end, &rights[0], &path[0]);
  if (fields < 3) return false;
  const std::string_view all(&rights[0]);
  const bool is_file = fields == 4 && path[0] == '/';
  target = {static_cast<std::uintptr_t>(begin), static_cast<std::uintptr_t>(end),
            is_file && (all == "r-xp" || all == "r--p"), false};
  return true;
}

/// "Anonymous:  0 kB" is a mapping whose pages are all the file's own.
bool says_changed(const std::string& line) {
  if (!line.starts_with("Anonymous:") && !line.starts_with("Swap:")) return false;
  return line.find_first_of("123456789") != line.npos;
}

}  // namespace

void release_unchanged_pages() {
  std::vector<mapping> all;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    mapping next;
    if (begins_mapping(line, next))
      all.push_back(next);
    else if (!all.empty() && says_changed(line))
      all.back().is_changed = true;
  }
  for (const auto& mapping : all)
    if (mapping.is_fixed && !mapping.is_changed)
      madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
}

}  // namespace agent::cards
