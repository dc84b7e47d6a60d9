#pragma once
// HTTP answers as values: metav1.Status (JSON or protobuf) to kube::error.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "kube/error.hpp"
#include "kube/transport.hpp"

namespace kube {

/// 2xx. A redirect is no success: it is never followed, so the request was not carried out (client-go rest/request.go).
constexpr bool succeeded(int status) { return status >= 200 && status < 300; }

/// The part of metav1.Status that decides anything.
struct api_status {
  int code = 0;
  std::string reason;  ///< "Expired", "AlreadyExists", "StoreReadError", ...
  std::string message;
  bool version_too_large = false;  ///< cause ResourceVersionTooLarge
  std::optional<std::chrono::seconds> retry_after;
};

/// errc::decode when it is not a Status. A protobuf Status may come with its envelope or without.
result<api_status> read_status(std::string_view bytes, encoding format);

/// The error a status stands for; `operation` begins the line.
error error_of(std::string_view operation, const api_status& status);

/// The error an answer stands for; `operation` begins the line ("apply daemonsets.apps kube-system/x"). Only for a
/// status that is no success; 1xx and 3xx, which no answer to us has, are errc::server. The server's own message is
/// kept, as one line of at most 1,000 bytes; 409 AlreadyExists, 410 Expired and 504 ResourceVersionTooLarge have
/// codes of their own, by their reason.
error error_of(std::string_view operation, const response& answer);

/// A metav1.Status object out of a watch ERROR event, in either encoding.
error error_of_status(std::string_view operation, std::string_view bytes, encoding format);

}  // namespace kube
