#pragma once
// The one error type of the REST client. Everything the API server, the network or a file can answer is a value of this
// type; an exception out of kube/ is a bug. `message` says which operation failed on what, in one line, for the person
// who reads it.

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kube {

enum class errc {
  connect,            ///< no TCP connection, reset, or the stream ended in the middle
  tls,                ///< the server's certificate is not signed by the CA we were given, or ours was refused
  timeout,            ///< our own deadline or silence deadline passed
  cancelled,          ///< the caller went away
  config,             ///< kubeconfig, token or certificate file missing or malformed
  unauthorized,       ///< 401
  forbidden,          ///< 403
  not_found,          ///< 404
  already_exists,     ///< 409, reason AlreadyExists
  conflict,           ///< 409, any other reason (stale resourceVersion, field manager, UID precondition)
  gone,               ///< 410, reason Expired or Gone, as HTTP status or in a stream: list again
  invalid,            ///< 422
  too_many_requests,  ///< 429; retry_after says when
  version_too_large,  ///< 504 with cause ResourceVersionTooLarge: the server is behind the version we asked for
  server,             ///< any 5xx
  bad_request,        ///< any other 4xx
  decode,             ///< the bytes are not what the content type promised
};

std::string_view to_string(errc code) noexcept;

struct error {
  errc code = errc::server;
  int http = 0;         ///< HTTP status, 0 when there was no answer
  std::string message;  ///< one line: operation, object, cause
  std::optional<std::chrono::seconds> retry_after;
};

template <class T>
using result = std::expected<T, error>;

/// What a person wrote, or a file of theirs, is wrong.
inline std::unexpected<error> config_error(std::string message) {
  return std::unexpected(error{errc::config, 0, std::move(message), std::nullopt});
}

}  // namespace kube
