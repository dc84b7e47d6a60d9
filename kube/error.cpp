#include "kube/error.hpp"

namespace kube {

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::connect:
      return "connect";
    case errc::tls:
      return "tls";
    case errc::timeout:
      return "timeout";
    case errc::cancelled:
      return "cancelled";
    case errc::config:
      return "config";
    case errc::unauthorized:
      return "unauthorized";
    case errc::forbidden:
      return "forbidden";
    case errc::not_found:
      return "not_found";
    case errc::already_exists:
      return "already_exists";
    case errc::conflict:
      return "conflict";
    case errc::gone:
      return "gone";
    case errc::invalid:
      return "invalid";
    case errc::too_many_requests:
      return "too_many_requests";
    case errc::version_too_large:
      return "version_too_large";
    case errc::server:
      return "server";
    case errc::bad_request:
      return "bad_request";
    case errc::decode:
      return "decode";
  }
  return "unknown";
}

}  // namespace kube
