#pragma once
// HTTP answers as values: metav1.Status (JSON or protobuf) to kube::error.

#include <string_view>

#include "kube/error.hpp"
#include "kube/transport.hpp"

namespace kube {

/// The error an answer stands for; `operation` begins the line ("apply daemonsets.apps kube-system/x"). Only for status
/// >= 400. The server's own message is kept; a 409 AlreadyExists, 410 Expired and 504 ResourceVersionTooLarge are told
/// apart by reason.
error error_of(std::string_view operation, const response& answer);

/// A metav1.Status object out of a watch ERROR event, in either encoding.
error error_of_status(std::string_view operation, std::string_view bytes, encoding format);

}  // namespace kube
