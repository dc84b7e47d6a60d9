#pragma once
// One side of one gRPC connection: HTTP/2 by libnghttp2, bytes in, bytes out, and calls in between. It has no socket
// and no clock. Served and made are calls with one message in; the answer is one message, or a stream of them. Sources:
// gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md), RFC 9113. docs/decisions/018 says why nghttp2.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kube/error.hpp"

struct nghttp2_session;

namespace agent::grpc {

/// How a call ended. The numbers are gRPC's.
enum class status_code : std::uint8_t {
  good = 0,
  unknown = 2,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  failed_precondition = 9,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
};
struct status {
  int code = 0;      ///< a status_code; a peer may send others
  std::string text;  ///< one line for a person; the kubelet shows it in `kubectl describe pod`

  status() = default;
  status(status_code code, std::string text) : code(static_cast<int>(code)), text(std::move(text)) {}
  bool good() const { return code == 0; }
};
std::string to_string(const status& status);  ///< "status 8: rejected by rate limit"

/// What one connection may cost.
struct session_limits {
  std::size_t message = std::size_t{4} << 20;   ///< bytes that a peer may send as one message
  std::size_t unsent = std::size_t{16} << 20;   ///< bytes of one answer that the peer does not take
  std::size_t headers = std::size_t{16} << 10;  ///< bytes of one call's headers
  std::uint32_t calls = 64;                     ///< at once
};

enum class role : std::uint8_t { server, client };
using call_id = std::int32_t;

/// Hears of what happens on a connection. From within, calls may be answered and made; only `receive` may not be
/// called.
class session_listener {
 public:
  virtual ~session_listener() = default;
  /// Server: a call with its message. `send` and `finish` answer it, now or later.
  virtual void called(call_id, std::string_view /*method*/, std::string_view /*message*/) {}
  /// Server: the client wants no answer any more, or the connection has ended. Not after `finish`.
  virtual void given_up(call_id) {}
  /// Client: one message of the answer.
  virtual void answered(call_id, std::string_view /*message*/) {}
  /// Client: nothing more follows.
  virtual void ended(call_id, const status&) {}
};

class session {
 public:
  session(role role, session_listener& listener, session_limits limits = {});
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  /// Bytes of the peer, cut anywhere. errc::decode: this is no HTTP/2; send the rest of `output` and close.
  kube::result<void> receive(std::string_view bytes);
  /// What is to be sent now, at most about `most` bytes; empty: nothing.
  std::string output(std::size_t most = std::size_t{64} << 10);
  /// Neither side has anything to say any more: close.
  bool over() const;
  std::size_t open_calls() const { return calls_.size(); }

  /// Server: one message of the answer. Nothing happens where the call is over.
  void send(call_id id, std::string_view message);
  void finish(call_id id, const status& status);

  /// Client. Returns 0 where no call can be made any more.
  call_id call(std::string_view method, std::string_view message);
  void cancel(call_id id);

  /// Takes no new calls; those that are open go on. Then `over`.
  void end();
  /// The connection is gone: every open call ends.
  void lost(const std::string& reason);

 private:
  struct callbacks;
  struct open_call;

  open_call* find(call_id id);
  void start_answer(call_id id, open_call& call, bool has_data);
  void refuse(call_id id, std::uint32_t code);
  void take_messages(call_id id, open_call& call);
  void serve(call_id id, open_call& call);
  void close(call_id id, std::uint32_t code);

  const role role_;
  session_listener& listener_;
  const session_limits limits_;
  nghttp2_session* raw_ = nullptr;
  std::map<call_id, std::unique_ptr<open_call>> calls_;
};

}  // namespace agent::grpc
