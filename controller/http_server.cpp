#include "controller/http_server.hpp"

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/status.hpp>
#include <tuple>
#include <utility>

#include "controller/address.hpp"
#include "controller/http_reader.hpp"
#include "controller/http_stream.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

namespace {

/// Head and body of an answer go out as one piece where they fit into one TLS record.
constexpr std::size_t one_piece = 16 * 1024;
/// For a last word to someone who is turned away, and for his end.
constexpr milliseconds farewell{1000};
/// Connections taken from the kernel in one turn of the loop; fewer than places, so that none of them ends another.
constexpr int most_accepted = 32;
constexpr int not_modified = 304;
/// A redirect to another path of this server. Who calls us must not be sent elsewhere.
bool stays_here(const http_response& answer) {
  const auto location = std::ranges::find(answer.fields, "Location", &std::pair<std::string, std::string>::first);
  return answer.status == 302 && location != answer.fields.end() && location->second.starts_with('/') &&
         !location->second.starts_with("//");
}
/// Of a GET's body, which means nothing (RFC 9110, 9.3.1).
constexpr std::size_t body_of_get = 1024;

bool late(const error_code& failed) { return failed == boost::beast::error::timeout; }

/// How often a caller's certificate is reported again.
constexpr std::chrono::minutes note_period{1};

/// What a connection waits for.
enum class phase {
  idle,       ///< for the first byte of a request, or for the end
  busy,       ///< for the rest of a request, or for its answer to be taken
  streaming,  ///< for the next piece of its answer
  answering,  ///< for us: never closed
};

/// One open connection as its siblings see it.
struct connection {
  std::function<void()> close;  // ends whatever it waits for
  phase is = phase::idle;
  std::uint64_t since = 0;  // a number that grows: when it came to wait for this
  bool leaving = false;     // has been closed and is not out of the list yet
  bool served = false;      // has finished a request
  bool unread = false;      // bytes of a refused request are still coming
  // Its certificate, if it has shown one, and when that was last reported.
  std::optional<x509::info> caller = std::nullopt;
  std::optional<std::chrono::steady_clock::time_point> noted = std::nullopt;
};

/// Everything before the body.
std::string head_of(const http_response& http_response, bool keep, unsigned version) {
  std::string out = version == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  const auto reason = http::obsolete_reason(static_cast<http::status>(http_response.status));
  out.append(std::to_string(http_response.status)).append(" ").append(reason.data(), reason.size());
  if (http_response.status != not_modified) out.append("\r\nContent-Type: ").append(http_response.content_type);
  out.append("\r\nX-Content-Type-Options: nosniff");
  if (!http_response.pieces && http_response.status != not_modified)
    out.append("\r\nContent-Length: ").append(std::to_string(http_response.body.size()));
  for (const auto& [name, value] : http_response.fields) out.append("\r\n").append(name).append(": ").append(value);
  if (!keep)
    out.append("\r\nConnection: close");
  else if (version == 10)
    out.append("\r\nConnection: keep-alive");
  return out.append("\r\n\r\n");
}

/// A word of `methods` ("GET POST"); HEAD is answered where GET is.
bool allowed(std::string_view methods, std::string_view method) {
  if (method == "HEAD") method = "GET";
  while (!methods.empty()) {
    const auto end = std::min(methods.find(' '), methods.size());
    if (methods.substr(0, end) == method) return true;
    methods.remove_prefix(std::min(end + 1, methods.size()));
  }
  return false;
}

}  // namespace

http_server_metrics::http_server_metrics(registry& registry)
    : certificates(registry),
      requests(registry.counters("quartermaster_http_requests_total", "Answers, by route and status.",
                                 {"server", "path", "status"})),
      seconds(registry.histograms("quartermaster_http_request_seconds", "From the whole request to its answer.",
                                  {"server", "path"})),
      connections(registry.gauges("quartermaster_http_connections", "Open connections.", {"server"})),
      refused(registry.counters("quartermaster_http_refused_total", "Connections ended by us.", {"server", "reason"})) {
}

struct http_server::core : std::enable_shared_from_this<core> {
  struct served_path {
    std::string methods;
    handler sync;
    async_handler async;
    std::size_t body_limit = 0;
  };

  struct body_room;

  core(loop& l, http_server_metrics& m, http_server_options h)
      : event_loop(l),
        metrics(m),
        options(std::move(h)),
        acceptor(event_loop.context()),
        reload_timer(event_loop.context()) {
    if (options.tls) tls_certificate = std::make_unique<certificate>(*options.tls, options.name, metrics.certificates);
  }

  kube::result<void> open();
  asio::awaitable<void> accept();
  asio::awaitable<void> watch_certificate();
  void admit(tcp::socket socket);
  asio::awaitable<void> serve(tcp::socket socket, std::list<connection>::iterator self);
  asio::awaitable<void> serve_all(http_stream& stream, connection& self);
  asio::awaitable<bool> read_head(http_stream& stream, http_reader& reader);
  asio::awaitable<std::optional<http_response>> read_body(http_stream& stream, http_reader& reader, std::size_t limit,
                                                          body_room& room);
  asio::awaitable<bool> one_request(http_stream& stream, http_reader& reader, connection& self);
  asio::awaitable<http_response> answer(const served_path& route, http_request request);
  asio::awaitable<bool> write(http_stream& stream, const http_response& out, bool keep, unsigned version, bool head);
  asio::awaitable<void> write_pieces(http_stream& stream, const http_pieces& pieces);
  std::map<std::string, served_path, std::less<>>::const_iterator route_of(std::string_view path) const;
  void waits(connection& connection, phase phase) {
    connection.is = phase;
    connection.since = ++turns;
  }
  void note_caller(connection& connection);
  bool make_room();
  struct place;
  void refuse(std::string_view reason) { metrics.refused.with({options.name, reason}).add(); }
  void publish() { metrics.connections.with({options.name}).set(static_cast<double>(open_connections.size())); }

  loop& event_loop;
  http_server_metrics metrics;  // references into the registry; a copy, because connections may outlive the struct
  http_server_options options;
  tcp::acceptor acceptor;
  asio::steady_timer reload_timer;
  std::unique_ptr<certificate> tls_certificate;  // null: plain HTTP
  std::map<std::string, served_path, std::less<>> routes;
  std::list<connection> open_connections;
  std::uint64_t turns = 0;
  std::size_t bodies = 0;  // bytes of large bodies that have come
  bool stopping = false;
};

kube::result<void> http_server::core::open() {
  if (tls_certificate) tls_certificate->load();
  auto endpoint = parse_address(options.address);
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
  step([&] { acceptor.non_blocking(true, failed); });
  if (failed)
    return std::unexpected(kube::error{
        kube::errc::config, 0, options.name + " server on " + options.address + ": " + failed.message(), {}});
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
    // Those who wait in the kernel come in together: one a turn of the loop, a probe behind a thousand clients that are
    // turned away and come back would wait a thousand turns.
    for (int more = 1; more < most_accepted && !stopping; ++more) {
      error_code none;
      tcp::socket next(event_loop.context());
      acceptor.accept(next, none);
      if (none) break;
      admit(std::move(next));
    }
  }
}

/// Closes the connection that has waited longest: one that is idle between requests if there is one, which HTTP/1.1
/// lets a server close at any time, and one that gets a stream only where there is no other. The newest connection, a
/// probe of the kubelet's for one, is the last to go. False: all are being answered.
bool http_server::core::make_room() {
  const auto order = [](const connection& c) {
    const bool is_idle = c.is == phase::idle && c.served;
    return std::tuple(c.leaving, c.is == phase::answering, c.is == phase::streaming, !is_idle, c.since);
  };
  const auto first = std::ranges::min_element(open_connections, {}, order);
  if (first == open_connections.end() || first->leaving || first->is == phase::answering) return false;
  first->leaving = true;
  first->close();
  return true;
}

void http_server::core::admit(tcp::socket socket) {
  if (std::ranges::count(open_connections, false, &connection::leaving) >=
      static_cast<std::ptrdiff_t>(options.max_connections)) {
    const bool room = make_room();
    refuse(room ? "evicted" : "full");
    if (!room) return;
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto self = open_connections.emplace(open_connections.end());
  self->close = [] {};
  waits(*self, phase::idle);
  publish();
  event_loop.spawn("http_connection", serve(std::move(socket), self));
}

void http_server::core::note_caller(connection& connection) {
  const auto now = std::chrono::steady_clock::now();
  if (!options.on_caller || !connection.caller || (connection.noted && now - *connection.noted < note_period)) return;
  connection.noted = now;
  options.on_caller(*connection.caller);
}

asio::awaitable<void> http_server::core::watch_certificate() {
  const auto keep = shared_from_this();
  while (!stopping) {
    reload_timer.expires_after(options.certificate_period);
    const auto [failed] = co_await reload_timer.async_wait(as_pair);
    if (failed || stopping) co_return;
    tls_certificate->refresh();
  }
}

/// A connection is in the list exactly as long as its coroutine is alive, however that ends.
struct http_server::core::place {
  place(std::shared_ptr<core> core, std::list<connection>::iterator self) : core_(std::move(core)), self_(self) {}
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() {
    core_->open_connections.erase(self_);
    core_->publish();
  }
  std::shared_ptr<core> core_;
  std::list<connection>::iterator self_;
};

/// A large body has its room as long as it is read and answered.
struct http_server::core::body_room {
  explicit body_room(core& core) : core_(core) {}
  body_room(const body_room&) = delete;
  body_room& operator=(const body_room&) = delete;
  ~body_room() { core_.bodies -= taken_; }
  /// The body takes so many bytes by now. False: there is no room for them.
  bool hold(std::size_t bytes) {
    if (bytes <= std::max(taken_, core_.options.small_body)) return true;
    if (core_.bodies - taken_ + bytes > core_.options.bodies_limit) return false;
    core_.bodies += bytes - taken_;
    taken_ = bytes;
    return true;
  }

 private:
  core& core_;
  std::size_t taken_ = 0;
};

asio::awaitable<void> http_server::core::serve(tcp::socket socket, std::list<connection>::iterator self) {
  const place here(shared_from_this(), self);
  if (self->leaving) co_return;
  if (tls_certificate && !tls_certificate->context()) {
    refuse("no_certificate");
    co_return;
  }
  http_stream stream(std::move(socket), tls_certificate ? tls_certificate->context() : nullptr);
  self->close = [&stream] { stream.close(); };
  stream.expires_after(options.header_deadline);
  const auto failed = co_await stream.handshake();
  if (failed) {
    if (!self->leaving) refuse(late(failed) ? "timeout" : "tls");
    co_return;
  }
  self->caller = stream.peer();
  note_caller(*self);
  co_await serve_all(stream, *self);
  waits(*self, phase::idle);
  stream.expires_after(farewell);
  co_await stream.finish(self->unread);
}

asio::awaitable<void> http_server::core::serve_all(http_stream& stream, connection& self) {
  http_reader reader(options.header_limit);
  while (!stopping) {
    // The time between two requests is the caller's; the clock of a request starts with its first byte.
    if (reader.empty()) {
      waits(self, phase::idle);
      stream.expires_after(self.served ? options.idle_deadline : options.header_deadline);
      const auto [failed, size] = co_await stream.read_some(reader.room());
      if (failed) {
        if (late(failed) && !self.served) refuse("timeout");
        co_return;
      }
      reader.received(size);
    }
    waits(self, phase::busy);
    note_caller(self);
    const bool more = co_await one_request(stream, reader, self);
    if (!more) co_return;
    self.served = true;
  }
}

/// The head of the next request, within its deadline; false: there is none, and the caller got an answer if it deserved
/// one.
asio::awaitable<bool> http_server::core::read_head(http_stream& stream, http_reader& reader) {
  stream.expires_after(options.header_deadline);
  auto state = reader.read_head();
  while (state == http_reading::more) {
    const auto [failed, size] = co_await stream.read_some(reader.room());
    if (failed) {
      if (late(failed)) refuse("timeout");
      co_return false;
    }
    reader.received(size);
    state = reader.read_head();
  }
  if (state == http_reading::done) co_return true;
  refuse("malformed");
  stream.expires_after(farewell);
  const int status = state == http_reading::head_too_large ? 431 : 400;
  co_await write(stream, http_response{status, "malformed request\n"}, false, 11, false);
  co_return false;
}

/// The body, within its deadline and limit. Empty: it is there. Otherwise what to answer; status 0: nothing.
asio::awaitable<std::optional<http_response>> http_server::core::read_body(http_stream& stream, http_reader& reader,
                                                                           std::size_t limit, body_room& room) {
  stream.expires_after(options.body_deadline);
  if (reader.head().expects_continue && reader.head().has_body && reader.head().length.value_or(0) <= limit)
    co_await stream.write("HTTP/1.1 100 Continue\r\n\r\n");
  for (;;) {
    const auto state = reader.read_body(limit);
    if (state == http_reading::body_too_large) {
      refuse("too_large");
      co_return http_response{413, "the body is larger than " + std::to_string(limit) + " bytes\n"};
    }
    if (state != http_reading::done && state != http_reading::more) {
      refuse("malformed");
      co_return http_response{400, "malformed request\n"};
    }
    if (!room.hold(reader.body_size())) {
      refuse("busy");
      co_return http_response{503, "too many large bodies at once\n"};
    }
    if (state == http_reading::done) co_return std::nullopt;
    const auto [failed, size] = co_await stream.read_some(reader.room());
    if (failed) {
      refuse(late(failed) ? "timeout" : "malformed");
      co_return http_response{0, {}};
    }
    reader.received(size);
  }
}

/// Reads and answers one request; false: the connection is of no more use.
asio::awaitable<bool> http_server::core::one_request(http_stream& stream, http_reader& reader, connection& self) {
  self.unread = true;  // until the whole request is there
  const bool has_head = co_await read_head(stream, reader);
  if (!has_head) co_return false;
  const http_head head = reader.head();
  const auto match = route_of(head.path);
  const served_path* const route = match == routes.end() ? nullptr : &match->second;
  const std::string label = route ? match->first : "other";

  // What is not going to be used is not read.
  body_room room(*this);
  std::optional<http_response> refusal;
  if (!route) {
    refusal = http_response{404, "no such path\n"};
  } else if (!allowed(route->methods, head.method)) {
    refusal = http_response{405, "use " + route->methods + "\n"};
  } else {
    auto limit = route->body_limit > 0 ? route->body_limit : options.body_limit;
    if (head.method == "GET" || head.method == "HEAD") limit = std::min(limit, body_of_get);
    refusal = co_await read_body(stream, reader, limit, room);
  }
  if (refusal && refusal->status == 0) co_return false;
  http_response out;
  if (refusal) {
    self.unread = head.has_body;
    if (!self.unread) reader.take_body();
    out = std::move(*refusal);
  } else {
    self.unread = false;
    http_request request{
        head.method,        head.path,   head.query,       head.content_type,
        reader.take_body(), head.fields, stream.address(), self.caller ? self.caller->name : std::string()};
    stream.expires_never();  // a handler may wait for the API server; it has its own deadline
    waits(self, phase::answering);
    const auto began = std::chrono::steady_clock::now();
    out = co_await answer(*route, std::move(request));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    metrics.seconds.with({options.name, label}).observe(took.count());
    waits(self, phase::busy);
  }
  if (out.status < 200 || (out.status >= 300 && out.status < 400 && out.status != not_modified && !stays_here(out)))
    out = {500, "no redirects\n"};
  if (out.status == not_modified) out.body.clear();
  metrics.requests.with({options.name, label, std::to_string(out.status)}).add();
  stream.expires_after(options.body_deadline);
  const bool keep = head.keep_alive && !stopping && !self.unread && !out.pieces;
  const bool is_head = head.method == "HEAD";
  const bool is_taken = co_await write(stream, out, keep, head.version, is_head);
  if (is_taken && out.pieces && !is_head) {
    waits(self, phase::streaming);
    co_await write_pieces(stream, out.pieces);
  }
  co_return is_taken&& keep;
}

asio::awaitable<http_response> http_server::core::answer(const served_path& route, http_request request) {
  std::string thrown;
  try {
    if (route.sync) co_return route.sync(request);
    co_return co_await route.async(std::move(request));
  } catch (const std::exception& e) {
    thrown = e.what();
  }
  log::error("exception out of an HTTP handler", {{"server", options.name}, {"error", thrown}});
  co_return http_response{500, "internal error\n"};
}

/// All but the pieces. False: the caller does not take it.
asio::awaitable<bool> http_server::core::write(http_stream& stream, const http_response& out, bool keep,
                                               unsigned version, bool head) {
  auto first = head_of(out, keep, version);
  const std::string_view body = head ? std::string_view() : out.body;
  const auto size = std::min(body.size(), one_piece - std::min(one_piece, first.size()));
  first.append(body.substr(0, size));
  auto failed = co_await stream.write(first);
  if (!failed && size < body.size()) failed = co_await stream.write(body.substr(size));
  co_return !failed;
}

/// Nothing to say is not written, so who has left is looked for.
asio::awaitable<void> http_server::core::write_pieces(http_stream& stream, const http_pieces& pieces) {
  while (!stopping) {
    stream.expires_never();
    std::optional<std::string> piece;
    try {
      piece = co_await pieces();
    } catch (const std::exception& bug) {
      log::error("exception out of an HTTP handler", {{"server", options.name}, {"error", bug.what()}});
    }
    if (!piece || stream.has_gone()) co_return;
    if (piece->empty()) continue;
    stream.expires_after(options.body_deadline);
    const auto failed = co_await stream.write(*piece);
    if (failed) co_return;
  }
}

std::map<std::string, http_server::core::served_path, std::less<>>::const_iterator http_server::core::route_of(
    std::string_view path) const {
  if (const auto match = routes.find(path); match != routes.end()) return match;
  for (auto end = path.rfind('/'); end != std::string_view::npos;
       end = end == 0 ? path.npos : path.rfind('/', end - 1)) {
    const auto match = routes.find(std::string(path.substr(0, end + 1)) + "*");
    if (match != routes.end()) return match;
  }
  return routes.end();
}

http_server::http_server(loop& loop, http_server_metrics& metrics, http_server_options options)
    : core_(std::make_shared<core>(loop, metrics, std::move(options))) {}
http_server::~http_server() { stop(); }

void http_server::route(std::string_view methods, std::string path, handler handler, std::size_t body_limit) {
  core_->routes[std::move(path)] = {std::string(methods), std::move(handler), {}, body_limit};
}
void http_server::route_async(std::string_view methods, std::string path, async_handler async_handler,
                              std::size_t body_limit) {
  core_->routes[std::move(path)] = {std::string(methods), {}, std::move(async_handler), body_limit};
}

kube::result<void> http_server::start() {
  if (auto opened = core_->open(); !opened) return opened;
  core_->event_loop.spawn_essential("http_accept", core_->accept());
  if (core_->tls_certificate) core_->event_loop.spawn_essential("http_certificate", core_->watch_certificate());
  log::info("serving", {{"server", core_->options.name},
                        {"address", core_->options.address},
                        {"port", port()},
                        {"tls", core_->tls_certificate != nullptr}});
  return {};
}

kube::result<void> http_server::show(const given_certificate& given_certificate) {
  return core_->tls_certificate->take(given_certificate);
}
void http_server::reject_certificate(std::string_view reason) { core_->tls_certificate->reject(reason); }
bool http_server::serving() const { return !core_->tls_certificate || core_->tls_certificate->context() != nullptr; }

void http_server::stop() {
  if (std::exchange(core_->stopping, true)) return;
  error_code ignored;
  core_->acceptor.close(ignored);
  core_->reload_timer.cancel();
  for (auto& each : core_->open_connections) {
    if (each.is == phase::idle) each.close();
  }
}

bool http_server::drained() const { return core_->open_connections.empty(); }
std::size_t http_server::connections() const { return core_->open_connections.size(); }
unsigned short http_server::port() const {
  error_code ignored;
  return core_->acceptor.local_endpoint(ignored).port();
}

}  // namespace controller
