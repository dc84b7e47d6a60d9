#include "reconcilers/scheduler_config/url.hpp"

#include <algorithm>
#include <utility>

namespace reconcilers::scheduler_config {

extender_url split_url(std::string_view url) {
  extender_url out;
  if (const auto end = url.find("://"); end != url.npos) {
    out.scheme = url.substr(0, end);
    url.remove_prefix(end + 3);
  }
  const auto slash = std::min(url.find('/'), url.size());
  out.path = url.substr(slash);
  auto host = url.substr(0, slash);
  if (host.starts_with('[')) {
    out.host = host.substr(1, std::min(host.find(']'), host.size()) - 1);
  } else {
    out.host = host.substr(0, host.rfind(':'));
  }
  return out;
}

std::optional<extender_url::proxy> extender_url::through() const {
  constexpr std::string_view begin = "/api/v1/namespaces/", middle = "/services/";
  if (!path.starts_with(begin)) return std::nullopt;
  auto rest = path.substr(begin.size());
  const auto at = rest.find(middle);
  if (at == rest.npos) return std::nullopt;
  proxy out;
  out.ns = rest.substr(0, at);
  rest.remove_prefix(at + middle.size());
  const auto end = std::min(rest.find('/'), rest.size());
  out.service = rest.substr(0, end);
  rest.remove_prefix(end);
  out.whole = rest == "/proxy" || rest.starts_with("/proxy/");
  return out;
}

std::string_view placeholder_in(std::string_view url) {
  static constexpr std::pair<std::string_view, std::string_view> forms[] = {
      {"${", "}"}, {"$(", ")"}, {"{{", "}}"}, {"<", ">"}};
  for (const auto& [open, close] : forms) {
    const auto begin = url.find(open);
    if (begin == url.npos) continue;
    const auto end = url.find(close, begin);
    if (end != url.npos) return url.substr(begin, end + close.size() - begin);
  }
  return {};
}

}  // namespace reconcilers::scheduler_config
