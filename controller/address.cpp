#include "controller/address.hpp"

#include <charconv>
#include <string_view>

namespace controller {

using boost::asio::ip::tcp;

kube::result<tcp::endpoint> parse_address(const std::string& text) {
  const auto bad = [&](std::string_view reason) {
    return std::unexpected(kube::error{kube::errc::config, 0, "address \"" + text + "\": " + std::string(reason), {}});
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return bad("not host:port");
  std::string host = text.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  unsigned short port = 0;
  const auto digits = text.substr(colon + 1);
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (wrong != std::errc() || end != digits.data() + digits.size()) return bad("not a port");
  if (host.empty()) return tcp::endpoint(tcp::v6(), port);
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code failed;
  const auto address = boost::asio::ip::make_address(host, failed);
  if (failed) return bad("the host must be an IP address");
  return tcp::endpoint(address, port);
}

}  // namespace controller
