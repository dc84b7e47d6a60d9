#include "kube/resource.hpp"

#include "kube/percent.hpp"

namespace kube {

void append_percent_encoded(std::string& output, std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      output += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      output += '%';
      output += digits[byte >> 4];
      output += digits[byte & 15];
    }
  }
}

std::string path_of(const resource& type, std::string_view ns, std::string_view name, std::string_view subresource) {
  std::string path = type.group.empty() ? "/api/" : "/apis/";
  if (!type.group.empty()) {
    path += type.group;
    path += '/';
  }
  path += type.version;
  if (type.namespaced && !ns.empty()) {
    path += "/namespaces/";
    append_percent_encoded(path, ns);
  }
  path += '/';
  path += type.plural;
  if (!name.empty()) {
    path += '/';
    append_percent_encoded(path, name);
  }
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

}  // namespace kube
