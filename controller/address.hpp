#pragma once
// Where a server listens, as people write it in flags.

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "kube/error.hpp"

namespace controller {

/// "host:port", "[::1]:port" or ":port" (all addresses of both families); the host is an IP address or "localhost".
/// errc::config in one line.
kube::result<boost::asio::ip::tcp::endpoint> parse_address(const std::string& text);

}  // namespace controller
