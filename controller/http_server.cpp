#include "controller/http_server.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "controller/address.hpp"
#include "controller/byte_stream.hpp"
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
using request_parser = http::request_parser<http::string_body>;
/// What is read at once; a TLS record has no more.
constexpr std::size_t most_read = 16 * 1024;

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

/// Everything before the body.
std::string head_of(const http_response& of, bool keep, unsigned version) {
  std::string out = version == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  const auto reason = http::obsolete_reason(static_cast<http::status>(of.status));
  out.append(std::to_string(of.status)).append(" ").append(reason.data(), reason.size());
  out.append("\r\nContent-Type: ").append(of.content_type);
  out.append("\r\nX-Content-Type-Options: nosniff\r\nContent-Length: ").append(std::to_string(of.body.size()));
  if (!keep)
    out.append("\r\nConnection: close");
  else if (version == 10)
    out.append("\r\nConnection: keep-alive");
  return out.append("\r\n\r\n");
}

/// Reads until the head is there, or with `whole` the body too.
asio::awaitable<error_code> read(byte_stream& stream, beast::flat_buffer& buffer, request_parser& parser, bool whole) {
  parser.eager(whole);
  while (whole ? !parser.is_done() : !parser.is_header_done()) {
    error_code failed;
    const auto used = buffer.size() == 0 ? 0 : parser.put(buffer.data(), failed);
    buffer.consume(used);
    if (failed && failed != http::error::need_more) co_return failed;
    if (used > 0 && !failed) continue;
    const auto room = buffer.prepare(most_read);
    const auto [wrong, size] = co_await stream.read_some({static_cast<char*>(room.data()), room.size()});
    if (wrong == asio::error::eof)
      co_return parser.got_some() ? http::error::partial_message : http::error::end_of_stream;
    if (wrong) co_return wrong;
    buffer.commit(size);
  }
  co_return error_code();
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
  asio::awaitable<void> serve(tcp::socket socket, std::list<connection>::iterator self);
  asio::awaitable<void> serve_all(byte_stream& stream, connection& self);
  asio::awaitable<bool> read_head(byte_stream& stream, beast::flat_buffer& buffer, request_parser& parser,
                                  connection& self);
  asio::awaitable<std::optional<http_response>> read_body(byte_stream& stream, beast::flat_buffer& buffer,
                                                          request_parser& parser, std::size_t limit, body_room& room,
                                                          connection& self);
  asio::awaitable<bool> one_request(byte_stream& stream, beast::flat_buffer& buffer, connection& self);
  asio::awaitable<http_response> answer(const served_path* route, http_request request);
  asio::awaitable<bool> write(byte_stream& stream, http_response out, bool keep, unsigned version, bool head);
  struct place;
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
  on.spawn("http_connection", serve(std::move(socket), self));
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

asio::awaitable<void> http_server::core::serve(tcp::socket socket, std::list<connection>::iterator self) {
  const place here(shared_from_this(), self);
  if (shown && !shown->context()) {
    refuse("no_certificate");
    co_return;
  }
  byte_stream stream(std::move(socket), shown ? shown->context() : nullptr);
  self->close = [&stream] { stream.close(); };
  stream.expires_after(how.header_deadline);
  const auto failed = co_await stream.handshake();
  if (failed) {
    refuse(failed == asio::error::timed_out ? "timeout" : "tls");
    co_return;
  }
  co_await serve_all(stream, *self);
  stream.expires_after(std::chrono::seconds(1));
  co_await stream.finish();
  // Closing with unread bytes resets the connection, and the caller would never see why it was refused.
  if (self->unread) co_await stream.discard();
}

asio::awaitable<void> http_server::core::serve_all(byte_stream& stream, connection& self) {
  beast::flat_buffer buffer;
  while (!stopping) {
    // The time between two requests is the caller's; the clock of a request starts with its first byte.
    self.idle = true;
    if (buffer.size() == 0) {
      stream.expires_after(self.served ? how.idle_deadline : how.header_deadline);
      const auto room = buffer.prepare(most_read);
      const auto [failed, size] = co_await stream.read_some({static_cast<char*>(room.data()), room.size()});
      if (failed) {
        if (failed == asio::error::timed_out && !self.served) refuse("timeout");
        co_return;
      }
      buffer.commit(size);
    }
    self.idle = false;
    const bool more = co_await one_request(stream, buffer, self);
    if (!more) co_return;
    self.served = true;
    if (buffer.size() == 0 && buffer.capacity() > 2 * most_read) buffer.shrink_to_fit();
  }
}

/// The head of the next request, within its deadline; false: there is none, and the caller was told if it deserved it.
asio::awaitable<bool> http_server::core::read_head(byte_stream& stream, beast::flat_buffer& buffer,
                                                   request_parser& parser, connection& self) {
  parser.header_limit(static_cast<std::uint32_t>(how.header_limit));
  parser.body_limit(boost::none);  // set when the route is known
  stream.expires_after(how.header_deadline);
  const auto failed = co_await read(stream, buffer, parser, false);
  if (!failed) co_return true;
  if (failed == asio::error::timed_out) refuse("timeout");
  const bool ours = failed.category() == http::make_error_code(http::error::bad_method).category();
  if (!ours || failed == http::error::end_of_stream || failed == http::error::partial_message) co_return false;
  refuse("malformed");
  self.unread = true;
  const bool too_large = failed == http::error::header_limit;
  stream.expires_after(std::chrono::seconds(1));
  co_await write(stream, http_response{too_large ? 431 : 400, "malformed request\n"}, false, 11, false);
  co_return false;
}

/// The body, within its deadline and limit. Empty: it is there. Otherwise what to answer; status 0: nothing.
asio::awaitable<std::optional<http_response>> http_server::core::read_body(byte_stream& stream,
                                                                           beast::flat_buffer& buffer,
                                                                           request_parser& parser, std::size_t limit,
                                                                           body_room& room, connection& self) {
  http_response too_large{413, "the body is larger than " + std::to_string(limit) + " bytes\n"};
  stream.expires_after(how.body_deadline);
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
      failed = co_await stream.write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (!failed) failed = co_await read(stream, buffer, parser, true);
  }
  if (!failed) co_return std::nullopt;
  self.unread = true;
  if (failed == http::error::body_limit) {
    refuse("too_large");
    co_return too_large;
  }
  refuse(failed == asio::error::timed_out ? "timeout" : "malformed");
  co_return http_response{0, {}};
}

/// Reads and answers one request; false: the connection is of no more use.
asio::awaitable<bool> http_server::core::one_request(byte_stream& stream, beast::flat_buffer& buffer,
                                                     connection& self) {
  request_parser parser;
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
    stream.expires_never();  // a handler may wait for the API server; it has its own deadline
    const auto began = std::chrono::steady_clock::now();
    out = co_await answer(route, std::move(request));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    metrics.seconds.with({how.name, label}).observe(took.count());
  }
  if (out.status < 200 || (out.status >= 300 && out.status < 400)) out = {500, "no redirects\n"};
  metrics.requests.with({how.name, label, std::to_string(out.status)}).add();
  stream.expires_after(how.body_deadline);
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

asio::awaitable<bool> http_server::core::write(byte_stream& stream, http_response out, bool keep, unsigned version,
                                               bool head) {
  auto first = head_of(out, keep, version);
  if (head) out.body.clear();
  // Head and body in one piece where they fit into one: a short answer is one send.
  const auto with = std::min(out.body.size(), byte_stream::piece - std::min(byte_stream::piece, first.size()));
  first.append(out.body, 0, with);
  auto failed = co_await stream.write(first);
  if (!failed) failed = co_await stream.write(std::string_view(out.body).substr(with));
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
