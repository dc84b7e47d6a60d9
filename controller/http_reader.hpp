#pragma once
// Requests out of the bytes of one connection: no socket, no clock, so that a fuzzer can drive it. Every byte that is
// kept for a caller counts against a limit from the first one: the head, what a chunk says besides its size, the
// trailers, the body. What two readers of the same bytes could take for different requests is refused (RFC 9112, 6.3
// and 11.2). The parser is Boost.Beast's; of the header fields only what is asked for here is kept.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace controller {

/// What servers for people read of the header; empty: not there. Of two of one name the request is malformed.
struct http_fields {
  std::string host, origin, authorization, accept_encoding, if_none_match, cookie, fetch_site;
  /// X-Remote-...: whom a proxy speaks for. Names in lower case; as often as they came, in their order.
  std::vector<std::pair<std::string, std::string>> remote;
};

struct http_head {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< without "?"
  std::string content_type;
  http_fields fields;
  unsigned version = 11;  ///< 10 or 11
  bool keep_alive = true;
  bool expects_continue = false;
  bool has_body = false;                ///< one is on its way
  std::optional<std::uint64_t> length;  ///< of the body as the caller claims it; empty: chunked, or no body
};

/// What the bytes so far come to.
enum class http_reading {
  more,            ///< read into `room`, then ask again
  done,            ///< the head, or the body, is whole
  malformed,       ///< not HTTP, or not one request beyond doubt: 400
  head_too_large,  ///< 431
  body_too_large,  ///< 413
};

class http_reader {
 public:
  /// `header_limit`: bytes of a head, and of the extensions of one chunk, and of the trailers.
  explicit http_reader(std::size_t header_limit);
  ~http_reader();
  http_reader(const http_reader&) = delete;
  http_reader& operator=(const http_reader&) = delete;

  /// Where the next bytes go, at least one. Valid until the next call of anything here.
  std::span<char> room();
  /// So many bytes are in `room` now.
  void received(std::size_t bytes);
  /// Nothing has come that was not read: the caller is between two requests.
  bool empty() const;
  /// Something of the request that is being read has come.
  bool begun() const;

  http_reading read_head();
  /// After read_head said `done`.
  const http_head& head() const;
  /// After the head; `limit` in bytes.
  http_reading read_body(std::size_t limit);
  /// Memory that the body takes so far. What a caller claims and did not send is not in it.
  std::size_t body_size() const;
  /// The body, with room behind its end for parsers that read a little beyond it (simdjson) if its length is known. The
  /// next request can be read then.
  std::string take_body();
  /// Bytes kept for the caller in all.
  std::size_t held() const;

 private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace controller
