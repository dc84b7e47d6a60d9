#include "text/resource_name.hpp"

#include <algorithm>

namespace text {
namespace {

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_qualified_part(std::string_view text) {
  return !text.empty() && text.size() <= 63 && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

/// @param max_label of one label, bytes
bool is_of_labels(std::string_view text, std::size_t max_bytes, std::size_t max_label) {
  if (text.empty() || text.size() > max_bytes) return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('.', begin), text.size());
    const auto label = text.substr(begin, end - begin);
    if (label.empty() || label.size() > max_label || !is_lower_alnum(label.front()) || !is_lower_alnum(label.back()) ||
        !std::ranges::all_of(label, [](char c) { return is_lower_alnum(c) || c == '-'; })) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool is_dns_subdomain(std::string_view text, std::size_t max_bytes) { return is_of_labels(text, max_bytes, 63); }

bool is_object_name(std::string_view text) { return is_of_labels(text, 253, 253); }

bool is_label_key(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_qualified_part(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_qualified_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) { return text.empty() || is_qualified_part(text); }

resource_name_fault fault_of_extended_resource(std::string_view name) {
  using enum resource_name_fault;
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return no_domain;
  if (name.contains("kubernetes.io/")) return native_domain;
  if (name.starts_with("requests.")) return requests;
  constexpr std::size_t room = 253 - std::string_view("requests.").size();  // quota puts its prefix in front
  if (!is_dns_subdomain(name.substr(0, slash), room)) return bad_domain;
  return is_qualified_part(name.substr(slash + 1)) ? none : bad_name;
}

}  // namespace text
