#include "kube/status.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "kube/reason.hpp"
#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

constexpr std::string_view too_large_reason = "ResourceVersionTooLarge";
/// Servers before 1.18.6 said it in words only: client-go reflector, isTooLargeResourceVersionError.
constexpr std::string_view too_large_words = "Too large resource version";

void read_details(std::string_view bytes, api_status& api_status) {
  each_field(bytes, field<4>([&](std::string_view cause) {  // StatusCause: reason 1
               if (wire::read_entry(cause).key == too_large_reason) api_status.version_too_large = true;
             }),
             field<5>([&](std::int32_t after) {
               if (after > 0) api_status.retry_after = std::chrono::seconds(after);
             }));
}

result<api_status> read_protobuf(std::string_view bytes) {
  const auto outer = wire::unwrap(bytes);
  if (!outer) return std::unexpected(outer.error());
  if (!outer->kind.empty() && outer->kind != "Status") {
    return std::unexpected(error{errc::decode, 0, "not a Status", {}});
  }
  return wire::guarded("Status", [&] {
    api_status made;
    each_field(outer->raw, field<3>(made.message), field<4>(made.reason),
               field<5>([&](std::string_view details) { read_details(details, made); }), field<6>(made.code));
    return made;
  });
}

result<api_status> read_json(std::string_view bytes) {
  const auto object = nlohmann::json::parse(bytes, nullptr, false);
  if (!object.is_object() || text_in(object, "kind") != "Status") {
    return std::unexpected(error{errc::decode, 0, "not a Status", {}});
  }
  api_status made;
  made.code = static_cast<int>(number_in(object, "code"));
  made.reason = text_in(object, "reason");
  made.message = text_in(object, "message");
  const auto details = object.find("details");
  if (details == object.end() || !details->is_object()) return made;
  if (const auto after = static_cast<int>(number_in(*details, "retryAfterSeconds")); after > 0) {
    made.retry_after = std::chrono::seconds(after);
  }
  const auto causes = details->find("causes");
  if (causes == details->end() || !causes->is_array()) return made;
  for (const auto& cause : *causes) {
    if (cause.is_object() && text_in(cause, "reason") == too_large_reason) made.version_too_large = true;
  }
  return made;
}

errc code_of(const api_status& status) {
  if (status.reason == "Expired" || status.reason == "Gone") return errc::gone;
  if (status.version_too_large || (status.code == 504 && status.message.contains(too_large_words))) {
    return errc::version_too_large;
  }
  switch (status.code) {
    case 401:
      return errc::unauthorized;
    case 403:
      return errc::forbidden;
    case 404:
      return errc::not_found;
    case 409:
      return status.reason == "AlreadyExists" ? errc::already_exists : errc::conflict;
    case 410:
      return errc::gone;
    case 422:
      return errc::invalid;
    case 429:
      return errc::too_many_requests;
    default:
      return status.code >= 400 && status.code < 500 ? errc::bad_request : errc::server;
  }
}

/// One line that cannot break a log or a terminal: control characters become blanks, the end is cut on a character
/// edge.
std::string one_line(std::string_view message) {
  constexpr std::size_t most = 1000;
  const bool cut = message.size() > most;
  if (cut) {
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
    message = message.substr(0, end);
  }
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return cut ? line + "..." : line;
}

std::string reason_in(const api_status& status) {
  std::string out;
  if (status.code != 0) out = std::to_string(status.code);
  if (!status.reason.empty()) out += (out.empty() ? "" : " ") + one_line(status.reason);
  if (!status.message.empty()) out += (out.empty() ? "" : ": ") + one_line(status.message);
  return out;
}

api_status status_in(const response& answer) {
  // A server that is too busy, starting, or not an API server at all answers in plain text.
  const auto format = answer.body.starts_with(std::string_view("k8s\0", 4)) ? encoding::protobuf : encoding::json;
  api_status status = read_status(answer.body, format).value_or(api_status{0, {}, answer.body, false, {}});
  status.code = answer.status;
  if (answer.retry_after) status.retry_after = answer.retry_after;
  if (answer.body.starts_with('<')) status.message = "a page of HTML, which no API server sends";
  if (answer.status >= 300 && answer.status < 400)
    status.message = "a redirect, which no API server sends: is there a proxy with a login before it?";
  return status;
}

}  // namespace

result<api_status> read_status(std::string_view bytes, encoding format) {
  return format == encoding::protobuf ? read_protobuf(bytes) : read_json(bytes);
}

error error_of(std::string_view operation, const api_status& status) {
  error made{code_of(status), status.code, std::string(operation), status.retry_after};
  if (const auto reason = reason_in(status); !reason.empty()) made.message += ": " + reason;
  return made;
}

error error_of(std::string_view operation, const response& answer) { return error_of(operation, status_in(answer)); }

std::string reason_of(const response& answer) { return reason_in(status_in(answer)); }

error error_of_status(std::string_view operation, std::string_view bytes, encoding format) {
  const auto status = read_status(bytes, format);
  if (!status) return error{errc::decode, 0, std::string(operation) + ": " + status.error().message, {}};
  return error_of(operation, *status);
}

}  // namespace kube
