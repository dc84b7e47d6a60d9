#pragma once
// The one seam between this program and the API server. The real one is kube/curl_transport.hpp; tests use
// test/kube/scripted_transport.hpp. An HTTP status is a value, not an error: see kube/status.hpp for the mapping.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/request.hpp"
#include "kube/task.hpp"

namespace kube {

struct response {
  int status = 0;
  std::string body;
  std::string content_type;
  std::optional<std::chrono::seconds> retry_after;
  std::vector<std::string> warnings;  ///< texts of Warning headers
  /// The server's clock when it began to answer, whole seconds since 1970; 0 where it says none. A stream's is the one
  /// of its head, so it is old when the stream ends.
  std::int64_t date = 0;
};

/// Gets the body of a 200 stream as it arrives. The view is valid during the call only. Returning false ends the stream
/// (errc::cancelled).
using chunk_sink = std::function<bool(std::string_view)>;

class transport {
 public:
  virtual ~transport() = default;

  /// Sends and reads the whole answer. Errors: connect, tls, timeout, cancelled, config; an HTTP status never is one.
  virtual task<response> send(request request) = 0;

  /// A body without end. Completes with the response (empty body) when the server closes a 200 stream cleanly; any
  /// other status completes with its body (at most 1 MiB) and the sink is never called. Errors as `send`; a stream cut
  /// in the middle is errc::connect, silence is errc::timeout.
  virtual task<response> stream(request request, chunk_sink sink) = 0;
};

}  // namespace kube
