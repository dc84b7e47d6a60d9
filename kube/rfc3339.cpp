#include "kube/rfc3339.hpp"

#include <algorithm>
#include <chrono>

namespace kube {
namespace {

/// `size` digits from `index` on; -1 where something else stands there.
int number_at(std::string_view text, std::size_t index, std::size_t size) {
  int out = 0;
  for (const char c : text.substr(std::min(index, text.size()), size)) {
    if (c < '0' || c > '9') return -1;
    out = out * 10 + (c - '0');
  }
  return index + size <= text.size() ? out : -1;
}

}  // namespace

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const int y = number_at(text, 0, 4), mo = number_at(text, 5, 2), d = number_at(text, 8, 2);
  const int h = number_at(text, 11, 2), mi = number_at(text, 14, 2), s = number_at(text, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || h > 24 || mi < 0 || mi > 59 || s < 0 || s > 60) return std::nullopt;
  const auto date = year(y) / mo / d;
  const bool separated = text[4] == '-' && text[7] == '-' && std::string_view("Tt ").contains(text[10]) &&
                         text[13] == ':' && text[16] == ':';
  if (!date.ok() || !separated) return std::nullopt;
  auto rest = text.substr(19);
  if (rest.starts_with('.')) rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  const auto local = (sys_days(date) + hours(h) + minutes(mi) + seconds(s)).time_since_epoch().count();
  if (rest == "Z" || rest == "z") return local;
  const int offset_h = number_at(rest, 1, 2), offset_mi = number_at(rest, 4, 2);
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':' || offset_h < 0 || offset_mi < 0)
    return std::nullopt;
  const auto offset = offset_h * 3600 + offset_mi * 60;
  return rest[0] == '-' ? local + offset : local - offset;
}

std::optional<std::int64_t> parse_rfc3339_micros(std::string_view text) {
  const auto seconds = parse_rfc3339(text);
  if (!seconds) return std::nullopt;
  constexpr std::int64_t second = 1'000'000;
  std::int64_t fraction = 0;
  const auto point = text.find('.');
  if (point != std::string_view::npos) {
    auto worth = second;
    for (const char c : text.substr(point + 1)) {
      if (c < '0' || c > '9' || worth == 1) break;
      fraction += (worth /= 10) * (c - '0');
    }
  }
  return *seconds * second + fraction;
}

}  // namespace kube
