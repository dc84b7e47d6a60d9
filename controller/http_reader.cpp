#include "controller/http_reader.hpp"

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <string_view>
#include <utility>

namespace controller {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

/// What is read at once: of a head, which is short, and of a body; a TLS record has no more.
constexpr std::size_t head_piece = 4 * 1024, body_piece = 16 * 1024;
/// "0", and two ends of a line: from where a chunk begins, at least so much is to come. Beast 1.81 asserts that it is
/// there when it is asked a second time.
constexpr std::size_t last_chunk = 5;
/// Behind the end of a body.
constexpr std::size_t margin = 64;

constexpr beast::string_view remote_prefix("X-Remote-");

std::string in_lower_case(beast::string_view text) {
  std::string out(text.data(), text.size());
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

class request_parser final : public http::basic_parser<true> {
 public:
  http_head head;
  std::string body;
  std::size_t body_limit_bytes = 0;

 private:
  using text = beast::string_view;
  void on_request_impl(http::verb, text method, text target, int version, error_code&) override {
    head.method.assign(method.data(), method.size());
    const auto mark = std::min(target.find('?'), target.size());
    head.path.assign(target.data(), mark);
    if (mark < target.size()) head.query.assign(target.data() + mark + 1, target.size() - mark - 1);
    head.version = static_cast<unsigned>(version);
  }
  void on_response_impl(int, text, int, error_code&) override {}
  void on_field_impl(http::field name, text field, text value, error_code& failed) override {
    if (!in_head_) return;  // trailers are read, and not kept
    switch (name) {
      case http::field::host:
        if (++hosts_ > 1) failed = http::error::bad_value;
        head.fields.host.assign(value.data(), value.size());
        return;
      case http::field::origin:
        return once(head.fields.origin, value, failed);
      case http::field::authorization:
        return once(head.fields.authorization, value, failed);
      case http::field::accept_encoding:
        return once(head.fields.accept_encoding, value, failed);
      case http::field::if_none_match:
        return once(head.fields.if_none_match, value, failed);
      case http::field::cookie:
        return once(head.fields.cookie, value, failed);
      case http::field::transfer_encoding:
        // Beast skips what it does not know, and would take the body for the next request.
        if (head.version == 10 || !beast::iequals(value, "chunked")) failed = http::error::bad_transfer_encoding;
        return;
      case http::field::content_type:
        head.content_type.assign(value.data(), value.size());
        return;
      case http::field::expect:
        head.expects_continue = head.version == 11 && beast::iequals(value, "100-continue");
        return;
      default:
        if (beast::iequals(field, "Sec-Fetch-Site")) once(head.fields.fetch_site, value, failed);
        if (field.size() > remote_prefix.size() && beast::iequals(field.substr(0, remote_prefix.size()), remote_prefix))
          head.fields.remote.emplace_back(in_lower_case(field), std::string(value.data(), value.size()));
        return;
    }
  }
  static void once(std::string& kept, text value, error_code& failed) {
    if (!kept.empty()) failed = http::error::bad_value;
    kept.assign(value.data(), value.size());
  }
  void on_header_impl(error_code& failed) override {
    in_head_ = false;
    if (head.version == 11 && hosts_ == 0) failed = http::error::bad_value;
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(std::uint64_t size, text, error_code& failed) override {
    if (size > body_limit_bytes - body.size()) failed = http::error::body_limit;
  }
  std::size_t on_body_impl(text piece, error_code& failed) override { return take(piece, failed); }
  std::size_t on_chunk_body_impl(std::uint64_t, text piece, error_code& failed) override { return take(piece, failed); }
  void on_finish_impl(error_code&) override {}

  std::size_t take(text piece, error_code& failed) {
    if (piece.size() > body_limit_bytes - body.size()) {
      failed = http::error::body_limit;
      return 0;
    }
    keep(piece);
    return piece.size();
  }

  /// Grows by a quarter: a string of its own accord doubles, `reserve` too, and the caller that then learns that there
  /// is no room has taken twice the room that counts.
  void keep(text piece) {
    if (piece.size() > body.capacity() - body.size()) {
      std::string larger;
      larger.reserve(body.size() + body.size() / 4 + piece.size());
      body = std::move(larger.append(body));
    }
    body.append(piece.data(), piece.size());
  }

  int hosts_ = 0;
  bool in_head_ = true;
};

}  // namespace

struct http_reader::core {
  explicit core(std::size_t limit) : header_limit(limit), buffer(limit + body_piece) { begin(); }

  void begin() {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(header_limit));
    parser->body_limit(boost::none);  // counted where it is kept
    head_bytes = 0;
    stuck = false;
  }
  /// Until the head is there, or with `whole` the body too.
  http_reading advance(bool whole) {
    parser->eager(whole);
    while (whole ? !parser->is_done() : !parser->is_header_done()) {
      if (buffer.size() == 0 || (stuck && whole && buffer.size() < last_chunk)) return http_reading::more;
      error_code failed;
      const auto used = parser->put(buffer.data(), failed);
      buffer.consume(used);
      if (!whole) head_bytes += used;
      stuck = failed == http::error::need_more;
      if (!whole && head_bytes + (parser->is_header_done() ? 0 : buffer.size()) > header_limit)
        return http_reading::head_too_large;
      if (failed == http::error::need_more || (!failed && used == 0)) {
        // What the parser cannot use yet stays in the buffer, however long it gets: a head, a chunk's extensions,
        // trailers.
        if (buffer.size() > header_limit) return http_reading::malformed;
        return http_reading::more;
      }
      if (failed == http::error::header_limit) return http_reading::head_too_large;
      if (failed == http::error::body_limit) return http_reading::body_too_large;
      if (failed) return http_reading::malformed;
    }
    return http_reading::done;
  }

  std::size_t header_limit;
  beast::flat_buffer buffer;
  std::optional<request_parser> parser;
  std::size_t head_bytes = 0;
  bool stuck = false;  // what is in the buffer is not enough
};

http_reader::http_reader(std::size_t header_limit) : core_(std::make_unique<core>(header_limit)) {}
http_reader::~http_reader() = default;

std::span<char> http_reader::room() {
  auto& buffer = core_->buffer;
  const auto piece = core_->parser->is_header_done() ? body_piece : head_piece;
  const auto room = buffer.prepare(std::min(piece, buffer.max_size() - buffer.size()));
  return {static_cast<char*>(room.data()), room.size()};
}

void http_reader::received(std::size_t bytes) { core_->buffer.commit(bytes); }
bool http_reader::empty() const { return core_->buffer.size() == 0; }
bool http_reader::begun() const { return core_->buffer.size() > 0 || core_->parser->got_some(); }

http_reading http_reader::read_head() {
  const auto state = core_->advance(false);
  if (state != http_reading::done) return state;
  auto& parser = *core_->parser;
  parser.head.keep_alive = parser.keep_alive();
  parser.head.has_body = !parser.is_done();
  if (const auto length = parser.content_length()) parser.head.length = *length;
  return state;
}

const http_head& http_reader::head() const { return core_->parser->head; }

http_reading http_reader::read_body(std::size_t limit) {
  auto& parser = *core_->parser;
  if (parser.head.length.value_or(0) > limit) return http_reading::body_too_large;
  parser.body_limit_bytes = limit;
  // Memory that no one has written to is not taken yet.
  if (parser.head.length && parser.body.empty())
    parser.body.reserve(static_cast<std::size_t>(*parser.head.length) + margin);
  return core_->advance(true);
}

std::size_t http_reader::body_size() const {
  const auto& parser = *core_->parser;
  return parser.head.length ? parser.body.size() : parser.body.capacity();
}

std::string http_reader::take_body() {
  auto out = std::move(core_->parser->body);
  core_->begin();
  if (core_->buffer.size() == 0) core_->buffer.shrink_to_fit();
  return out;
}

std::size_t http_reader::held() const { return core_->buffer.capacity() + body_size(); }

}  // namespace controller
