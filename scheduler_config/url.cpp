#include "scheduler_config/url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <boost/asio/ip/address_v4.hpp>
#include <memory>
#include <utility>

#include "text/text.hpp"

namespace scheduler_config {
namespace {

using curl_address = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(const curl_address& url, CURLUPart part) {
  char* text = nullptr;
  const bool there = curl_url_get(url.get(), part, &text, 0) == CURLUE_OK;
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, &curl_free);
  return there ? std::string(text) : std::string();
}

/// Countries have two letters. The rest is what hosts are named with: the open registry domains and those that sites
/// use inside; a namespace is hardly called so.
bool is_top_level_domain(std::string_view name) {
  static constexpr std::string_view others[] = {
      "com",     "net",     "org",       "edu",         "gov",      "mil",   "int",  "info",   "biz",
      "name",    "pro",     "dev",       "app",         "cloud",    "tech",  "site", "online", "xyz",
      "top",     "club",    "vip",       "work",        "shop",     "store", "wang", "ltd",    "group",
      "company", "systems", "network",   "world",       "run",      "page",  "asia", "mobi",   "tel",
      "arpa",    "local",   "localhost", "localdomain", "internal", "lan",   "home", "corp",   "intranet",
      "private", "host",    "test",      "example",     "invalid",  "domain"};
  return (name.size() == 2 && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == name.npos) ||
         name.starts_with("xn--") || std::ranges::find(others, name) != std::end(others);
}

}  // namespace

extender_url split_url(std::string_view url) {
  extender_url out;
  if (const auto end = url.find("://"); end != url.npos) {
    out.scheme = url.substr(0, end);
    url.remove_prefix(end + 3);
  }
  const auto slash = std::min(url.find('/'), url.size());
  out.path = url.substr(slash);
  auto host = url.substr(0, slash);
  host.remove_prefix(host.rfind('@') + 1);  // NAME:PASSWORD@
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
  const auto match = rest.find(middle);
  if (match == rest.npos) return std::nullopt;
  proxy out;
  out.ns = rest.substr(0, match);
  rest.remove_prefix(match + middle.size());
  const auto end = std::min(rest.find('/'), rest.size());
  out.service = rest.substr(0, end);
  rest.remove_prefix(end);
  out.whole = rest == "/proxy" || rest.starts_with("/proxy/");
  return out;
}

std::optional<term> fault_of_url(const std::string& url) {
  const curl_address parsed(curl_url(), &curl_url_cleanup);
  switch (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0)) {
    case CURLUE_OK:
      break;
    case CURLUE_BAD_PORT_NUMBER:
      return term::port_fault;
    case CURLUE_BAD_IPV6:
    case CURLUE_BAD_HOSTNAME:
    case CURLUE_NO_HOST:
      return term::host_fault;
    default:
      return term::address_fault;
  }
  if (part_of(parsed, CURLUPART_PORT) == "0") return term::port_fault;
  // libcurl completes "10.0.0"; kube-scheduler asks DNS for it.
  const auto host = split_url(url).host;
  boost::system::error_code none;
  if (host.find_first_not_of("0123456789.") == host.npos) boost::asio::ip::make_address_v4(host, none);
  return none ? std::optional(term::host_fault) : std::nullopt;
}

bool is_service_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const auto name = text::lower_case(host);
  if (name.contains(':') || name.empty() || name.find_first_not_of("0123456789.") == name.npos) return false;
  if (name.ends_with(".svc") || name.contains(".svc.")) return true;
  const auto dot = name.rfind('.');
  if (dot == name.npos) return name != "localhost";
  return name.find('.') == dot && !is_top_level_domain(std::string_view(name).substr(dot + 1));
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

}  // namespace scheduler_config
