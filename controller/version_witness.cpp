#include "controller/version_witness.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "controller/log.hpp"

namespace controller {
namespace {

/// 0 for what is no number.
std::uint64_t number_of(std::string_view version) {
  std::uint64_t out = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), out);
  return read.ec == std::errc() && read.ptr == version.data() + version.size() ? out : 0;
}

}  // namespace

void version_witness::note(std::string_view version) { highest_ = std::max(highest_, number_of(version)); }

std::optional<version_fall> version_witness::judge(std::string_view version) {
  const auto number = number_of(version);
  if (number > 0 && number < highest_) return version_fall{highest_, number};
  highest_ = std::max(highest_, number);
  return std::nullopt;
}

void start_afresh(std::string_view resource, const version_fall& fall) {
  log::error("the API server's data is older than what was seen; starting afresh",
             {{"resource", resource}, {"seen", fall.seen}, {"version", fall.version}});
  log::flush();
  _exit(1);
}

}  // namespace controller
