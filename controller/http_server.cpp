#include "controller/http_server.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <utility>

#include "controller/address.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);
using plain_stream = beast::tcp_stream;
using tls_stream = beast::ssl_stream<beast::tcp_stream>;

/// One open connection as its siblings see it.
struct connection {
  std::function<void()> close;  // ends whatever it waits for
  bool served = false;          // has finished a request
  bool idle = true;             // waits for the first byte of one
  bool unread = false;          // bytes of a refused request are still coming
};

http_request request_of(const http::request<http::string_body>& head) {
  const auto text = [](const auto& view) { return std::string(view.data(), view.size()); };
  http_request out;
  out.method = text(head.method_string());
  out.path = text(head.target());
  out.content_type = text(head[http::field::content_type]);
  if (const auto mark = out.path.find('?'); mark != std::string::npos) {
    out.query = out.path.substr(mark + 1);
    out.path.resize(mark);
  }
  return out;
}

}  // namespace

http_server_metrics::http_server_metrics(registry& into)
    : certificates(into),
      requests(into.counters("quartermaster_http_requests_total", "Answers, by route and status.",
                             {"server", "path", "status"})),
      seconds(into.histograms("quartermaster_http_request_seconds", "From the whole request to its answer.",
                              {"server", "path"})),
      connections(into.gauges("quartermaster_http_connections", "Open connections.", {"server"})),
      refused(into.counters("quartermaster_http_refused_total", "Connections ended by us.", {"server", "reason"})) {}

struct http_server::core : std::enable_shared_from_this<core> {
  struct served_path {
    std::string methods;
    handler sync;
    async_handler async;
    std::size_t body_limit = 0;
  };

  struct body_room;

  core(loop& l, http_server_metrics& m, http_server_options h)
      : on(l), metrics(m), how(std::move(h)), acceptor(on.context()), reload_timer(on.context()) {
    if (how.tls) shown = std::make_unique<certificate>(*how.tls, how.name, metrics.certificates);
  }

  kube::result<void> open();
  asio::awaitable<void> accept();
  asio::awaitable<void> watch_certificate();
  void admit(tcp::socket socket);
  asio::awaitable<void> serve_plain(tcp::socket socket, std::list<connection>::iterator self);
  asio::awaitable<void> serve_tls(tcp::socket socket, std::list<connection>::iterator self);
  template <class Stream>
  asio::awaitable<void> serve(Stream& stream, connection& self);
  template <class Stream, class Parser>
  asio::awaitable<bool> read_head(Stream& stream, beast::flat_buffer& buffer, Parser& parser, connection& self);
  template <class Stream, class Parser>
  asio::awaitable<std::optional<http_response>> read_body(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                                          std::size_t limit, body_room& room, connection& self);
  template <class Stream>
  asio::awaitable<bool> one_request(Stream& stream, beast::flat_buffer& buffer, connection& self);
  asio::awaitable<http_response> answer(const served_path* route, http_request request);
  template <class Stream>
  asio::awaitable<bool> write(Stream& stream, http_response out, bool keep, unsigned version, bool head);
  struct place;
  asio::awaitable<void> linger(plain_stream& stream);
  void refuse(std::string_view reason) { metrics.refused.with({how.name, reason}).add(); }
  void publish() { metrics.connections.with({how.name}).set(static_cast<double>(open_connections.size())); }

  loop& on;
  http_server_metrics metrics;  // references into the registry; a copy, because connections may outlive the struct
  http_server_options how;
  tcp::acceptor acceptor;
  asio::steady_timer reload_timer;
  std::unique_ptr<certificate> shown;  // null: plain HTTP
  std::map<std::string, served_path, std::less<>> routes;
  std::list<connection> open_connections;  // oldest first
  std::size_t bodies = 0;                  // bytes that large bodies may come to
  bool stopping = false;
};

kube::result<void> http_server::core::open() {
  if (shown) {
    if (auto loaded = shown->load(); !loaded) return loaded;
  }
  auto endpoint = parse_address(how.address);
  if (!endpoint) return std::unexpected(endpoint.error());
  error_code failed;
  const auto step = [&](auto&& call) {
    if (!failed) call();
  };
  step([&] { acceptor.open(endpoint->protocol(), failed); });
  if (failed == asio::error::address_family_not_supported && endpoint->address().is_unspecified()) {
    *endpoint = tcp::endpoint(tcp::v4(), endpoint->port());  // a kernel without IPv6
    acceptor.open(endpoint->protocol(), failed);
  }
  step([&] { acceptor.set_option(tcp::acceptor::reuse_address(true), failed); });
  if (endpoint->protocol() == tcp::v6()) step([&] { acceptor.set_option(asio::ip::v6_only(false), failed); });
  step([&] { acceptor.bind(*endpoint, failed); });
  step([&] { acceptor.listen(asio::socket_base::max_listen_connections, failed); });
  if (failed)
    return std::unexpected(
        kube::error{kube::errc::config, 0, how.name + " server on " + how.address + ": " + failed.message(), {}});
  return {};
}

asio::awaitable<void> http_server::core::accept() {
  const auto keep = shared_from_this();
  while (!stopping) {
    auto [failed, socket] = co_await acceptor.async_accept(as_pair);
    if (stopping || failed == asio::error::operation_aborted) co_return;
    if (failed) {
      // Out of descriptors, most likely: the backlog waits while others end.
      refuse("accept");
      const bool slept = co_await sleep_for(milliseconds(100));
      if (!slept) co_return;
      continue;
    }
    admit(std::move(socket));
  }
}

void http_server::core::admit(tcp::socket socket) {
  if (open_connections.size() >= how.max_connections) {
    const auto unproven = std::ranges::find_if(open_connections, [](const connection& c) { return !c.served; });
    if (unproven == open_connections.end()) {
      refuse("full");
      return;
    }
    refuse("evicted");
    unproven->served = true;  // chosen once; it leaves the list when its coroutine ends
    unproven->close();
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto self = open_connections.emplace(open_connections.end());
  self->close = [] {};
  publish();
  on.spawn("http_connection", shown ? serve_tls(std::move(socket), self) : serve_plain(std::move(socket), self));
}

asio::awaitable<void> http_server::core::watch_certificate() {
  const auto keep = shared_from_this();
  while (!stopping) {
    reload_timer.expires_after(how.certificate_period);
    const auto [failed] = co_await reload_timer.async_wait(as_pair);
    if (failed || stopping) co_return;
    shown->refresh();
  }
}

/// A connection is in the list exactly as long as its coroutine is alive, however that ends.
struct http_server::core::place {
  place(std::shared_ptr<core> in, std::list<connection>::iterator self) : in_(std::move(in)), self_(self) {}
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() {
    in_->open_connections.erase(self_);
    in_->publish();
  }
  std::shared_ptr<core> in_;
  std::list<connection>::iterator self_;
};

/// A large body has its room as long as it is read and answered.
struct http_server::core::body_room {
  explicit body_room(core& of) : of_(of) {}
  body_room(const body_room&) = delete;
  body_room& operator=(const body_room&) = delete;
  ~body_room() { of_.bodies -= taken_; }
  bool take(std::size_t bytes) {
    if (bytes <= of_.how.small_body) return true;
    if (of_.bodies + bytes > of_.how.bodies_limit) return false;
    of_.bodies += bytes;
    taken_ += bytes;
    return true;
  }

 private:
  core& of_;
  std::size_t taken_ = 0;
};

asio::awaitable<void> http_server::core::serve_plain(tcp::socket socket, std::list<connection>::iterator self) {
  const place here(shared_from_this(), self);
  plain_stream stream(std::move(socket));
  self->close = [&stream] { stream.close(); };
  co_await serve(stream, *self);
  error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  if (self->unread) co_await linger(stream);
}

asio::awaitable<void> http_server::core::serve_tls(tcp::socket socket, std::list<connection>::iterator self) {
  const place here(shared_from_this(), self);
  const auto context = shown->context();  // held as long as the connection lives
  if (!context) {
    refuse("no_certificate");
    co_return;
  }
  tls_stream stream(std::move(socket), *context);
  auto& lowest = beast::get_lowest_layer(stream);
  self->close = [&lowest] { lowest.close(); };
  lowest.expires_after(how.header_deadline);
  const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::server, as_pair);
  if (failed) {
    refuse(failed == beast::error::timeout ? "timeout" : "tls");
    co_return;
  }
  co_await serve(stream, *self);
  if (self->unread) co_await linger(lowest);
  lowest.expires_after(std::chrono::seconds(1));
  co_await stream.async_shutdown(as_pair);
}

/// Closing with unread bytes resets the connection, and the caller would never see why it was refused: read on for a
/// second.
asio::awaitable<void> http_server::core::linger(plain_stream& stream) {
  std::array<char, 4096> nowhere{};
  stream.expires_after(std::chrono::seconds(1));
  for (int reads = 0; reads < 4096; ++reads) {
    const auto [failed, size] = co_await stream.async_read_some(asio::buffer(nowhere), as_pair);
    if (failed) co_return;
  }
}

template <class Stream>
asio::awaitable<void> http_server::core::serve(Stream& stream, connection& self) {
  beast::flat_buffer buffer;
  while (!stopping) {
    // The time between two requests is the caller's; the clock of a request starts with its first byte.
    self.idle = true;
    if (buffer.size() == 0) {
      beast::get_lowest_layer(stream).expires_after(self.served ? how.idle_deadline : how.header_deadline);
      const auto [failed, size] = co_await stream.async_read_some(buffer.prepare(4096), as_pair);
      if (failed) {
        if (failed == beast::error::timeout && !self.served) refuse("timeout");
        co_return;
      }
      buffer.commit(size);
    }
    self.idle = false;
    const bool more = co_await one_request(stream, buffer, self);
    if (!more) co_return;
    self.served = true;
    if (buffer.size() == 0 && buffer.capacity() > 64 * 1024) buffer.shrink_to_fit();
  }
}

/// The head of the next request, within its deadline; false: there is none, and the caller was told if it deserved it.
template <class Stream, class Parser>
asio::awaitable<bool> http_server::core::read_head(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                                   connection& self) {
  auto& lowest = beast::get_lowest_layer(stream);
  parser.header_limit(static_cast<std::uint32_t>(how.header_limit));
  parser.body_limit(boost::none);  // set when the route is known
  lowest.expires_after(how.header_deadline);
  const auto [failed, size] = co_await http::async_read_header(stream, buffer, parser, as_pair);
  if (!failed) co_return true;
  if (failed == beast::error::timeout) refuse("timeout");
  const bool ours = failed.category() == http::make_error_code(http::error::bad_method).category();
  if (!ours || failed == http::error::end_of_stream || failed == http::error::partial_message) co_return false;
  refuse("malformed");
  self.unread = true;
  const bool too_large = failed == http::error::header_limit || failed == http::error::buffer_overflow;
  lowest.expires_after(std::chrono::seconds(1));
  co_await write(stream, http_response{too_large ? 431 : 400, "malformed request\n"}, false, 11, false);
  co_return false;
}

/// The body, within its deadline and limit. Empty: it is there. Otherwise what to answer; status 0: nothing.
template <class Stream, class Parser>
asio::awaitable<std::optional<http_response>> http_server::core::read_body(Stream& stream, beast::flat_buffer& buffer,
                                                                           Parser& parser, std::size_t limit,
                                                                           body_room& room, connection& self) {
  http_response too_large{413, "the body is larger than " + std::to_string(limit) + " bytes\n"};
  beast::get_lowest_layer(stream).expires_after(how.body_deadline);
  const auto length = parser.content_length();
  error_code failed;
  if (length && *length > limit) {
    failed = http::error::body_limit;
  } else if (!room.take(parser.chunked() ? limit : length.value_or(0))) {
    self.unread = true;
    refuse("busy");
    co_return http_response{503, "too many large bodies at once\n"};
  } else {
    parser.body_limit(limit);
    // Room behind the end for parsers that read a little beyond it (simdjson), so that nobody has to copy the body.
    if (length) parser.get().body().reserve(static_cast<std::size_t>(*length) + 64);
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go(http::status::continue_, parser.get().version());
      co_await http::async_write(stream, go, as_pair);
    }
    const auto [wrong, size] = co_await http::async_read(stream, buffer, parser, as_pair);
    failed = wrong;
  }
  if (!failed) co_return std::nullopt;
  self.unread = true;
  if (failed == http::error::body_limit) {
    refuse("too_large");
    co_return too_large;
  }
  refuse(failed == beast::error::timeout ? "timeout" : "malformed");
  co_return http_response{0, {}};
}

/// Reads and answers one request; false: the connection is of no more use.
template <class Stream>
asio::awaitable<bool> http_server::core::one_request(Stream& stream, beast::flat_buffer& buffer, connection& self) {
  auto& lowest = beast::get_lowest_layer(stream);
  http::request_parser<http::string_body> parser;
  const bool has_head = co_await read_head(stream, buffer, parser, self);
  if (!has_head) co_return false;
  const unsigned version = parser.get().version();
  const bool keep = parser.get().keep_alive();
  http_request request = request_of(parser.get());
  const bool is_head = request.method == "HEAD";
  const auto at = routes.find(request.path);
  const served_path* const route = at == routes.end() ? nullptr : &at->second;
  const std::string label = route ? at->first : "other";

  const std::size_t limit = route && route->body_limit > 0 ? route->body_limit : how.body_limit;
  body_room room(*this);
  auto refusal = co_await read_body(stream, buffer, parser, limit, room, self);
  if (refusal && refusal->status == 0) co_return false;
  http_response out;
  if (refusal) {
    out = std::move(*refusal);
  } else {
    request.body = std::move(parser.get().body());
    lowest.expires_never();  // a handler may wait for the API server; it has its own deadline
    const auto began = std::chrono::steady_clock::now();
    out = co_await answer(route, std::move(request));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    metrics.seconds.with({how.name, label}).observe(took.count());
  }
  if (out.status < 200 || (out.status >= 300 && out.status < 400)) out = {500, "no redirects\n"};
  metrics.requests.with({how.name, label, std::to_string(out.status)}).add();
  lowest.expires_after(how.body_deadline);
  const bool go_on = keep && !stopping && !self.unread;
  co_return co_await write(stream, std::move(out), go_on, version, is_head);
}

asio::awaitable<http_response> http_server::core::answer(const served_path* route, http_request request) {
  if (!route) co_return http_response{404, "no such path\n"};
  const std::string_view method = request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
  const auto at = route->methods.find(method);
  const bool whole = at != std::string::npos && (at == 0 || route->methods[at - 1] == ' ') &&
                     (at + method.size() == route->methods.size() || route->methods[at + method.size()] == ' ');
  if (method.empty() || !whole) co_return http_response{405, "use " + route->methods + "\n"};
  std::string thrown;
  try {
    if (route->sync) co_return route->sync(request);
    co_return co_await route->async(std::move(request));
  } catch (const std::exception& e) {
    thrown = e.what();
  }
  log::error("exception out of an HTTP handler", {{"server", how.name}, {"error", thrown}});
  co_return http_response{500, "internal error\n"};
}

template <class Stream>
asio::awaitable<bool> http_server::core::write(Stream& stream, http_response out, bool keep, unsigned version,
                                               bool head) {
  http::response<http::string_body> message(static_cast<http::status>(out.status), version);
  message.set(http::field::content_type, out.content_type);
  message.set("X-Content-Type-Options", "nosniff");
  message.keep_alive(keep);
  message.content_length(out.body.size());
  if (!head) message.body() = std::move(out.body);
  http::response_serializer<http::string_body> serializer(message);
  const auto [failed, size] = co_await http::async_write(stream, serializer, as_pair);
  co_return !failed && keep;
}

http_server::http_server(loop& on, http_server_metrics& metrics, http_server_options how)
    : core_(std::make_shared<core>(on, metrics, std::move(how))) {}
http_server::~http_server() { stop(); }

void http_server::route(std::string_view methods, std::string path, handler what, std::size_t body_limit) {
  core_->routes[std::move(path)] = {std::string(methods), std::move(what), {}, body_limit};
}
void http_server::route_async(std::string_view methods, std::string path, async_handler what, std::size_t body_limit) {
  core_->routes[std::move(path)] = {std::string(methods), {}, std::move(what), body_limit};
}

kube::result<void> http_server::start() {
  if (auto opened = core_->open(); !opened) return opened;
  core_->on.spawn("http_accept", core_->accept());
  if (core_->shown) core_->on.spawn("http_certificate", core_->watch_certificate());
  log::info("serving", {{"server", core_->how.name},
                        {"address", core_->how.address},
                        {"port", port()},
                        {"tls", core_->shown != nullptr}});
  return {};
}

kube::result<void> http_server::show(const pem_pair& pair) { return core_->shown->take(pair); }
void http_server::reject_certificate(std::string_view why) { core_->shown->reject(why); }
bool http_server::serving() const { return !core_->shown || core_->shown->context() != nullptr; }

void http_server::stop() {
  if (std::exchange(core_->stopping, true)) return;
  error_code ignored;
  core_->acceptor.close(ignored);
  core_->reload_timer.cancel();
  for (auto& each : core_->open_connections) {
    if (each.idle) each.close();
  }
}

bool http_server::drained() const { return core_->open_connections.empty(); }
std::size_t http_server::connections() const { return core_->open_connections.size(); }
unsigned short http_server::port() const {
  error_code ignored;
  return core_->acceptor.local_endpoint(ignored).port();
}

void add_metrics_route(http_server& to, const registry& of) {
  to.route("GET", "/metrics",
           [&of](const http_request&) { return http_response{200, of.text(), std::string(registry::content_type)}; });
}

}  // namespace controller
