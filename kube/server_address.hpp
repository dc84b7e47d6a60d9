#pragma once
// The part of a server's URL that a person looks for in a message.

#include <string_view>

namespace kube {

/// "host:port/path" of "https://host:port/path".
inline std::string_view address_of(std::string_view server) {
  const auto scheme = server.find("://");
  return scheme == std::string_view::npos ? server : server.substr(scheme + 3);
}

}  // namespace kube
