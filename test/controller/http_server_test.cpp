#include "controller/http_server.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <ctime>
#include <filesystem>
#include <thread>

#include "controller/health.hpp"
#include "controller/sleep.hpp"
#include "controller/x509.hpp"
#include "test/controller/rig.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_pki.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

struct http_server : controller_test::rig {
  controller::http_server_metrics serving{metrics};
  controller::http_server_options options;
  std::unique_ptr<controller::http_server> server;

  http_server() {
    options.name = "test";
    options.address = "127.0.0.1:0";
  }
  void start() {
    server = std::make_unique<controller::http_server>(loop, serving, options);
    server->route("GET", "/hello", [](const controller::http_request& r) {
      return controller::http_response{200, "hello " + r.query + "\n"};
    });
    server->route(
        "POST", "/echo",
        [](const controller::http_request& r) { return controller::http_response{200, r.body, r.content_type}; }, 1000);
    server->route("GET", "/throws", [](const controller::http_request&) -> controller::http_response {
      throw std::runtime_error("a bug");
    });
    server->route("GET", "/redirects",
                  [](const controller::http_request&) { return controller::http_response{302, ""}; });
    server->route("GET", "/moved", [](const controller::http_request& r) {
      controller::http_response out{302, ""};
      out.fields = {{"Location", r.query}};
      return out;
    });
    server->route_async("GET", "/slow", [](controller::http_request) -> asio::awaitable<controller::http_response> {
      co_await controller::sleep_for(20ms);
      co_return controller::http_response{200, "late\n"};
    });
    const auto started = server->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  ~http_server() override {
    if (server) server->stop();
    turn([&] { return !server || server->drained(); });
  }

  /// Client and server share the loop: the client never blocks.
  struct client {
    explicit client(http_server& http_server) : rig(http_server), socket(http_server.loop.context()) {
      socket.connect({asio::ip::make_address("127.0.0.1"), http_server.server->port()});
      socket.non_blocking(true);
    }
    void send(const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); }
    /// Reads until `text` is there, or the end.
    std::string until(const std::string& text) {
      rig.turn([&] {
        char part[65536];
        error_code failed;
        const auto size = socket.read_some(asio::buffer(part), failed);
        got.append(part, size);
        if (failed && failed != asio::error::would_block) ended = true;
        return ended || (!text.empty() && got.find(text) != std::string::npos);
      });
      return std::exchange(got, {});
    }
    std::string all() { return until(""); }
    http_server& rig;
    tcp::socket socket;
    std::string got;
    bool ended = false;
  };
};

TEST_F(http_server, answers_and_keeps_the_connection) {
  start();
  client c(*this);
  c.send("GET /hello?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto first = c.until("hello x=1\n");
  EXPECT_NE(first.find("HTTP/1.1 200"), std::string::npos) << first;
  c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_NE(c.until("{}").find("Content-Type: application/json"), std::string::npos);
  EXPECT_FALSE(c.ended);
  EXPECT_EQ(metric(R"(quartermaster_http_requests_total{server="test",path="/hello",status="200"})"), 1);
}

TEST_F(http_server, sends_people_to_other_paths_of_its_own_alone) {
  start();
  const auto status = [&](const std::string& location) {
    client c(*this);
    c.send("GET /moved?" + location + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return c.until("\r\n\r\n").substr(0, 12);
  };
  EXPECT_EQ(status("/console/"), "HTTP/1.1 302");
  EXPECT_EQ(status("//elsewhere/"), "HTTP/1.1 500");
  EXPECT_EQ(status("https://elsewhere/"), "HTTP/1.1 500");
}

TEST_F(http_server, answers_pipelined_requests_in_order) {
  start();
  client c(*this);
  c.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /hello?2 HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto both = c.until("hello 2\n");
  EXPECT_LT(both.find("late"), both.find("hello"));
}

TEST_F(http_server, says_what_is_wrong_with_path_method_and_body) {
  start();
  const auto ask = [&](const std::string& text) {
    client c(*this);
    c.send(text);
    return c.until("\n\r\n").substr(0, 12) + (c.rig.server ? "" : "");
  };
  EXPECT_EQ(ask("GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 404");
  EXPECT_EQ(ask("POST /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), "HTTP/1.1 405");
  EXPECT_EQ(ask("GE /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 405");
  EXPECT_EQ(ask("GET /throws HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 500");
  EXPECT_EQ(ask("GET /redirects HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 500")
      << "an API server would follow it";
  EXPECT_EQ(ask("HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "HTTP/1.1 200");
  EXPECT_TRUE(log.contains("a bug"));
}

TEST_F(http_server, F38_a_body_beyond_the_limit_is_refused_however_it_comes) {
  start();
  client declared(*this);
  declared.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 64000000\r\n\r\nxxxx");
  EXPECT_EQ(declared.until("bytes\n").substr(0, 12), "HTTP/1.1 413");
  client chunked(*this);
  chunked.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) chunked.send("200\r\n" + std::string(512, 'x') + "\r\n");
  EXPECT_EQ(chunked.until("bytes\n").substr(0, 12), "HTTP/1.1 413");
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="too_large"})"), 2);
}

TEST_F(http_server, F38_who_is_refused_and_goes_on_sending_is_cut_off) {
  start();
  client c(*this);
  c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000000\r\n\r\n");
  const std::string part(1u << 16, 'x');
  std::size_t sent = 0;
  error_code failed;
  turn([&] {
    const auto size = c.socket.write_some(asio::buffer(part), failed);
    if (failed == asio::error::would_block) failed = {};
    sent += size;
    return failed || sent > (256u << 20);
  });
  EXPECT_TRUE(failed) << "took " << sent;
  EXPECT_LT(sent, 64u << 20);
}

TEST_F(http_server, F38_large_bodies_share_their_room_and_small_ones_need_none) {
  options.small_body = 100;
  options.bodies_limit = 1500;
  start();
  const auto post = [](std::size_t size) {
    return "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  };
  client first(*this), second(*this), small(*this), third(*this);
  first.send(post(900) + std::string(700, 'x'));
  settle();
  second.send(post(900) + std::string(850, 'y'));
  EXPECT_EQ(second.until("at once\n").substr(0, 12), "HTTP/1.1 503");
  small.send(post(100) + std::string(100, 's'));
  EXPECT_NE(small.until(std::string(100, 's')).find("200"), std::string::npos);
  first.send(std::string(200, 'x'));
  EXPECT_NE(first.until(std::string(900, 'x')).find("200"), std::string::npos);
  third.send(post(900) + std::string(900, 'y'));
  EXPECT_NE(third.until(std::string(900, 'y')).find("200"), std::string::npos) << "the room was given back";
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="busy"})"), 1);
}

TEST_F(http_server, F38_who_claims_a_large_body_and_sends_none_of_it_takes_no_room) {
  options.small_body = 100;
  options.bodies_limit = 1500;
  start();
  std::vector<std::unique_ptr<client>> claimants;
  for (int i = 0; i < 20; ++i) {
    claimants.push_back(std::make_unique<client>(*this));
    claimants.back()->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
  }
  settle();
  client honest(*this);
  honest.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'h'));
  EXPECT_NE(honest.until(std::string(1000, 'h')).find("200"), std::string::npos);
}

TEST_F(http_server, F38_what_no_route_takes_is_answered_before_its_body_comes) {
  start();
  const auto ask = [&](const std::string& request) {
    client c(*this);
    c.send(request + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n");
    const auto got = c.until("\n\r\n");
    EXPECT_NE(got.find("Connection: close"), std::string::npos) << got;
    return got.substr(0, 12);
  };
  EXPECT_EQ(ask("POST /none"), "HTTP/1.1 404");
  EXPECT_EQ(ask("POST /hello"), "HTTP/1.1 405");
  client expects(*this);
  expects.send("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(expects.until("\n\r\n").substr(0, 12), "HTTP/1.1 404") << "no one is asked for what no one reads";
}

TEST_F(http_server, F38_a_chunk_that_explains_itself_without_end_is_refused) {
  start();
  for (const auto* opening : {"1;", "0\r\na: "}) {
    client c(*this);
    c.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(opening));
    for (int i = 0; i < 4; ++i) c.send(std::string(16'000, 'x'));
    EXPECT_EQ(c.until("request\n").substr(0, 12), "HTTP/1.1 400") << opening;
  }
}

// Beast skips encodings it does not know and takes their body for the next request.
TEST_F(http_server, F38_a_request_that_could_be_two_is_answered_once_and_the_connection_ends) {
  start();
  for (const auto* field : {"Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip",
                            "Content-Length: 4\r\nTransfer-Encoding: chunked"}) {
    client c(*this);
    c.send("POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string(field) +
           "\r\n\r\nGET /hello?smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto got = c.all();
    EXPECT_EQ(got.substr(0, 12), "HTTP/1.1 400") << field;
    EXPECT_EQ(got.find("smuggled"), std::string::npos) << field;
  }
  client nameless(*this);
  nameless.send("GET /hello HTTP/1.1\r\n\r\n");
  EXPECT_EQ(nameless.until("request\n").substr(0, 12), "HTTP/1.1 400") << "no Host";
}

TEST_F(http_server, F38_garbage_is_answered_with_400_and_an_endless_head_with_431) {
  start();
  client garbage(*this);
  garbage.send("\x16\x03\x01 not http\r\n\r\n");
  EXPECT_EQ(garbage.until("request\n").substr(0, 12), "HTTP/1.1 400");
  client endless(*this);
  endless.send("GET /hello HTTP/1.1\r\nX: " + std::string(40'000, 'x'));
  EXPECT_EQ(endless.until("request\n").substr(0, 12), "HTTP/1.1 431");
}

TEST_F(http_server, F39_a_slow_head_or_body_or_silence_ends_at_its_deadline) {
  options.header_deadline = 60ms;
  options.body_deadline = 60ms;
  start();
  client silent(*this), head(*this), body(*this);
  head.send("GET /hello HT");
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
  EXPECT_EQ(silent.all(), "");
  EXPECT_EQ(head.all(), "");
  EXPECT_EQ(body.all(), "");
  EXPECT_TRUE(turn([&] { return metric(R"(quartermaster_http_refused_total{server="test",reason="timeout"})") == 3; }));
  client good(*this);
  good.send("GET /hello?still HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(good.until("still\n").find("200"), std::string::npos);
}

/// Everything a connection can wait for; when all places are taken, a new caller is served all the same.
TEST_F(http_server, F39_when_all_places_are_taken_the_longest_idle_goes) {
  options.max_connections = 4;
  start();
  server->route("GET", "/long", [](const controller::http_request&) {
    return controller::http_response{200, std::string(64u << 20, 'x')};
  });
  const auto answered = [&](client& c, const std::string& word) {
    c.send("GET /hello?" + word + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return c.until("hello " + word + "\n").find("200") != std::string::npos;
  };
  client first(*this), second(*this), third(*this), fourth(*this);
  for (auto* polite : {&first, &second, &third, &fourth}) EXPECT_TRUE(answered(*polite, "once"));
  EXPECT_TRUE(answered(first, "again"));
  client fifth(*this);
  EXPECT_TRUE(answered(fifth, "late"));
  EXPECT_EQ(second.all(), "") << "idle for the longest time";
  EXPECT_TRUE(answered(first, "still"));
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="evicted"})"), 1);

  // Those who have been served once and then hold their place with half of a request, or with an answer they do not
  // take, are no better.
  first.send("GET /hello HT");
  third.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
  fourth.send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
  fifth.send("G");
  settle();
  std::vector<std::unique_ptr<client>> late;
  for (int i = 0; i < 50; ++i) {
    late.push_back(std::make_unique<client>(*this));
    EXPECT_TRUE(answered(*late.back(), std::to_string(i)));
  }
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="full"})"), -1);
}

/// Callers without a request can take all places, but not those of people who read a stream.
TEST_F(http_server, F39_a_stream_is_not_closed_for_those_who_ask_for_nothing) {
  options.max_connections = 4;
  start();
  server->route("GET", "/stream", [](const controller::http_request&) {
    controller::http_response out;
    out.pieces = []() -> asio::awaitable<std::optional<std::string>> {
      co_await controller::sleep_for(5ms);
      co_return "piece\n";
    };
    return out;
  });
  client reader(*this);
  reader.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(reader.until("piece\n").find("200"), std::string::npos);
  std::vector<std::unique_ptr<client>> bare;
  for (int i = 0; i < 20; ++i) {
    bare.push_back(std::make_unique<client>(*this));
    settle();
  }
  EXPECT_NE(reader.until("piece\npiece\n"), "");
  EXPECT_FALSE(reader.ended);
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="evicted"})"), 17);

  // Where all read streams, the oldest goes.
  std::vector<std::unique_ptr<client>> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::make_unique<client>(*this));
    readers.back()->send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_NE(readers.back()->until("piece\n").find("200"), std::string::npos) << i;
  }
  reader.all();
  EXPECT_TRUE(reader.ended);
  for (auto& each : readers) EXPECT_FALSE(each->ended);
}

/// A page that is loaded again and again has one stream, not one for each time.
TEST_F(http_server, F39_a_stream_that_has_nothing_to_say_ends_with_its_reader) {
  start();
  const auto open = std::make_shared<int>();
  server->route("GET", "/stream", [open](const controller::http_request&) {
    controller::http_response out;
    const auto is_first = std::make_shared<bool>(true);
    out.pieces = [is_first, mine = open]() -> asio::awaitable<std::optional<std::string>> {
      if (std::exchange(*is_first, false)) co_return "piece\n";
      co_await controller::sleep_for(5ms);
      co_return "";
    };
    return out;
  });
  {
    client reader(*this);
    reader.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_NE(reader.until("piece\n"), "");
    EXPECT_EQ(open.use_count(), 3);
  }
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (open.use_count() > 2 && std::chrono::steady_clock::now() < until) settle();
  EXPECT_EQ(open.use_count(), 2) << "the route and this test hold it";
}

/// A probe's connection is there before its request is: those who have been at their own for longer go first.
TEST_F(http_server, F39_who_has_just_come_is_not_the_one_to_go) {
  options.max_connections = 4;
  start();
  std::vector<std::unique_ptr<client>> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(std::make_unique<client>(*this));
    busy.back()->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
    settle();
  }
  client probe(*this);
  settle();
  for (int i = 0; i < 3; ++i) {
    busy.push_back(std::make_unique<client>(*this));
    busy.back()->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
    settle();
  }
  probe.send("GET /hello?still HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(probe.until("still\n").find("200"), std::string::npos);
}

TEST_F(http_server, F58_O8_a_stop_answers_what_is_under_way_and_closes_the_rest) {
  start();
  client idle(*this), busy(*this);
  idle.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  idle.until("hello \n");
  busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(turn([&] { return server->connections() == 2; }));
  settle();
  server->stop();
  const auto last = busy.all();
  EXPECT_NE(last.find("late\n"), std::string::npos);
  EXPECT_NE(last.find("Connection: close"), std::string::npos) << last;
  EXPECT_EQ(idle.all(), "");
  EXPECT_TRUE(turn([&] { return server->drained(); }));
}

TEST_F(http_server, a_port_that_is_taken_is_one_line) {
  start();
  auto same = options;
  same.address = "127.0.0.1:" + std::to_string(server->port());
  controller::http_server second(loop, serving, same);
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find(same.address), std::string::npos) << started.error().message;
}

TEST_F(http_server, refuses_addresses_that_are_none) {
  for (const char* bad : {"", "8080", "host.example:80", "127.0.0.1:http", "127.0.0.1:70000"}) {
    auto wrong = options;
    wrong.address = bad;
    controller::http_server none(loop, serving, wrong);
    const auto started = none.start();
    ASSERT_FALSE(started) << bad;
    EXPECT_NE(started.error().message.find(bad), std::string::npos);
  }
}

TEST_F(http_server, O9_readyz_tells_every_reason_and_healthz_only_that_we_turn) {
  controller::milliseconds now = 10'000ms;
  controller::health health(metrics, [&now] { return now; });
  std::string trouble = "not synced yet";
  health.check("cache pods", [&trouble] { return trouble; });
  server = std::make_unique<controller::http_server>(loop, serving, options);
  add_health_routes(*server, health);
  ASSERT_TRUE(server->start());
  client c(*this);
  const auto ask = [&](const std::string& path, const std::string& until) {
    c.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return c.until(until);
  };
  const auto before = ask("/readyz", "not synced yet\n");
  EXPECT_NE(before.find("HTTP/1.1 503"), std::string::npos);
  EXPECT_NE(before.find("api-server: no answer yet"), std::string::npos) << before;
  EXPECT_NE(ask("/healthz", "ok\n").find("200"), std::string::npos);
  trouble.clear();
  health.on_contact();
  EXPECT_NE(ask("/readyz", "ok\n").find("200"), std::string::npos);
  EXPECT_EQ(health.silence(), std::nullopt);
  now += 6000ms;
  EXPECT_NE(ask("/readyz", "for 6 s\n").find("503"), std::string::npos);
  EXPECT_EQ(health.silence(), 6000ms);
  health.expect_contact_every(26s);  // OpenShift's lease timing
  EXPECT_NE(ask("/readyz", "ok\n").find("200"), std::string::npos);
  now += 60'000ms;
  EXPECT_NE(ask("/readyz", "for 66 s\n").find("503"), std::string::npos);
  health.expect_contact_every(1s);
  health.on_contact();
  health.on_silence("connection refused");
  EXPECT_NE(ask("/readyz", "refused\n").find("503"), std::string::npos);
  health.on_contact();
  health.stopping();
  EXPECT_NE(ask("/readyz", "stopping\n").find("503"), std::string::npos);
  EXPECT_NE(ask("/healthz", "ok\n").find("200"), std::string::npos);
}

struct certificate : http_server {
  kube_test::scratch_folder folder;
  kube_test::test_ca ca;

  void write(const kube_test::pem_pair& pair) const {
    folder.write("tls.crt", pair.certificate);
    folder.write("tls.key", pair.key);
  }
  controller::certificate_files files() const { return {folder.path("tls.crt"), folder.path("tls.key"), {}}; }
  static kube_test::leaf_options named(const std::string& name, long valid_for = 3600) {
    kube_test::leaf_options out;
    out.name = name;
    out.valid_for = valid_for;
    return out;
  }
  /// Common name of the certificate that a new connection is shown, after one request over it; the client runs on its
  /// own thread. `pem_pair`: what the client shows.
  std::string shown(const kube_test::pem_pair& pem_pair = {}) {
    return asked(
        [](tls_client& tls_client) {
          asio::write(tls_client,
                      asio::buffer(std::string("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")));
          std::string answer(64, '\0');
          asio::read(tls_client, asio::buffer(answer));
          char text[128] = {};
          const std::unique_ptr<X509, decltype(&X509_free)> leaf(SSL_get1_peer_certificate(tls_client.native_handle()),
                                                                 &X509_free);
          X509_NAME_get_text_by_NID(X509_get_subject_name(leaf.get()), NID_commonName, text, sizeof text);
          return answer.find(" 200 ") == std::string::npos ? std::string("none") : std::string(text);
        },
        pem_pair);
  }

  using tls_client = asio::ssl::stream<tcp::socket>;
  /// What `callback` makes of a new connection, on a thread of its own; or why it failed.
  std::string asked(const std::function<std::string(tls_client&)>& callback, const kube_test::pem_pair& pem_pair = {}) {
    std::string out;
    bool done = false;
    std::thread caller([&] {
      try {
        asio::io_context own;
        asio::ssl::context context(asio::ssl::context::tls_client);
        context.add_certificate_authority(asio::buffer(ca.pem()));
        context.set_verify_mode(asio::ssl::verify_peer);
        if (!pem_pair.certificate.empty()) {
          context.use_certificate(asio::buffer(pem_pair.certificate), asio::ssl::context::pem);
          context.use_private_key(asio::buffer(pem_pair.key), asio::ssl::context::pem);
        }
        tls_client stream(own, context);
        stream.next_layer().connect({asio::ip::make_address("127.0.0.1"), server->port()});
        stream.handshake(asio::ssl::stream_base::client);
        out = callback(stream);
      } catch (const std::exception& e) {
        out = e.what();
      }
      loop.post([&done] { done = true; });
    });
    turn([&] { return done; });
    caller.join();
    return out;
  }
};

TEST_F(certificate, F22_a_good_pair_is_taken_and_every_bad_one_is_not) {
  options.tls = files();
  options.certificate_period = 5ms;
  write(ca.issue(named("first")));
  start();
  EXPECT_EQ(shown(), "first");

  write(ca.issue(named("second")));
  ASSERT_TRUE(turn([&] { return log.contains("certificate reloaded"); }));
  EXPECT_EQ(shown(), "second");

  const auto rejected = [&] { return metric(R"(quartermaster_certificate_rejected{server="test"})"); };
  const auto bad = [&](const kube_test::pem_pair& pair) {
    write(pair);
    EXPECT_TRUE(turn([&] { return rejected() == 1; }));
    EXPECT_EQ(shown(), "second");
  };
  const auto good = [&](const std::string& name) {
    write(ca.issue(named(name)));
    EXPECT_TRUE(turn([&] { return rejected() == 0; }));
    EXPECT_EQ(shown(), name);
    write(ca.issue(named("second")));
    EXPECT_TRUE(turn([&] { return shown() == "second"; }));
  };
  bad({ca.issue(named("third")).certificate, ca.issue(named("other")).key});
  good("after a key that did not match");
  const auto half = ca.issue(named("half"));
  bad({half.certificate.substr(0, half.certificate.size() / 2), half.key});
  good("after a half written file");
  auto expired = named("expired", -10);
  expired.valid_from = -1000;
  bad(ca.issue(expired));
  good("after an expired one");
}

TEST_F(certificate, F22_a_pair_given_by_the_program_is_shown_and_a_bad_one_is_not) {
  options.tls = controller::certificate_files();
  options.certificate_period = 5ms;
  start();
  EXPECT_FALSE(server->serving());
  EXPECT_NE(shown(), "none") << "closed, not hung";
  const auto pair = [&](const std::string& name, long valid_for = 3600) {
    const auto made = ca.issue(named(name, valid_for));
    return controller::pem_pair{made.certificate, made.key};
  };
  const auto rejected = [&] { return metric(R"(quartermaster_certificate_rejected{server="test"})"); };
  ASSERT_TRUE(server->show({pair("first"), {}}));
  EXPECT_TRUE(server->serving());
  EXPECT_EQ(shown(), "first");
  auto mixed = pair("second");
  mixed.key = pair("other").key;
  auto half = pair("half");
  half.certificate.resize(half.certificate.size() / 2);
  for (const auto& bad : {mixed, half, controller::pem_pair(), controller::pem_pair{"garbage", "garbage"}}) {
    const auto taken = server->show({bad, {}});
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("server test"), std::string::npos) << taken.error().message;
    EXPECT_EQ(rejected(), 1);
    EXPECT_EQ(shown(), "first");
  }
  ASSERT_TRUE(server->show({pair("third"), {}}));
  EXPECT_EQ(rejected(), 0);
  EXPECT_EQ(shown(), "third");
  server->reject_certificate("not yet");
  EXPECT_EQ(rejected(), 1);
  EXPECT_EQ(shown(), "third");
}

TEST_F(certificate, a_client_ca_that_cannot_be_read_keeps_the_pair_back_until_it_can) {
  folder.write("ca.pem", "garbage");
  options.tls = controller::certificate_files{{}, {}, folder.path("ca.pem")};
  options.certificate_period = 5ms;
  start();
  const auto made = ca.issue(named("first"));
  const auto taken = server->show({{made.certificate, made.key}, {}});
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("ca.pem"), std::string::npos) << taken.error().message;
  EXPECT_FALSE(server->serving()) << "no one is believed without it";
  kube_test::test_ca callers("callers");
  folder.write("ca.pem", callers.pem());
  ASSERT_TRUE(turn([&] { return server->serving(); }));
  EXPECT_EQ(shown(callers.issue(named("caller"))), "first");
  EXPECT_NE(shown(), "first");
}

TEST_F(certificate, authorities_of_callers_that_are_given_count_and_a_text_without_any_is_refused) {
  kube_test::test_ca before("before"), after("after");
  const auto old_one = before.issue(named("caller")), new_one = after.issue(named("caller"));
  options.tls = controller::certificate_files();
  start();
  const auto made = ca.issue(named("first"));
  const controller::pem_pair pair{made.certificate, made.key};
  EXPECT_FALSE(server->show({pair, ""})) << "everyone would be let in";
  EXPECT_FALSE(server->show({pair, "garbage"}));
  EXPECT_FALSE(server->serving());
  ASSERT_TRUE(server->show({pair, before.pem()}));
  EXPECT_EQ(shown(old_one), "first");
  EXPECT_NE(shown(new_one), "first");
  EXPECT_NE(shown(), "first");
  ASSERT_TRUE(server->show({pair, before.pem() + after.pem()}));
  EXPECT_EQ(shown(old_one), "first");
  EXPECT_EQ(shown(new_one), "first");
}

TEST_F(certificate, callers_without_a_certificate_are_turned_away_where_one_is_asked_for) {
  folder.write("ca.pem", ca.pem());
  options.tls = controller::certificate_files{{}, {}, folder.path("ca.pem")};
  start();
  const auto made = ca.issue(named("first"));
  ASSERT_TRUE(server->show({{made.certificate, made.key}, {}}));
  EXPECT_NE(shown(), "first");
  EXPECT_TRUE(turn([&] { return metric(R"(quartermaster_http_refused_total{server="test",reason="tls"})") == 1; }));
}

TEST_F(certificate, large_bodies_go_both_ways_over_tls_however_slowly_they_are_read) {
  options.tls = files();
  options.bodies_limit = options.body_limit = 8u << 20;
  write(ca.issue(named("first")));
  start();
  server->route(
      "POST", "/large", [](const controller::http_request& r) { return controller::http_response{200, r.body}; },
      8u << 20);
  std::string sent;
  for (int i = 0; sent.size() < (3u << 20); ++i) sent += std::to_string(i) + ",";
  for (const bool chunked : {false, true}) {
    const auto got = asked([&](tls_client& tls_client) {
      std::string head = "POST /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
      if (chunked) {
        char size[32];
        std::snprintf(size, sizeof size, "%zx", sent.size());
        asio::write(tls_client,
                    asio::buffer(head + "Transfer-Encoding: chunked\r\n\r\n" + size + "\r\n" + sent + "\r\n0\r\n\r\n"));
      } else {
        asio::write(tls_client,
                    asio::buffer(head + "Content-Length: " + std::to_string(sent.size()) + "\r\n\r\n" + sent));
      }
      std::this_thread::sleep_for(50ms);  // until the server's socket is full
      std::string out;
      error_code ended;
      asio::read(tls_client, asio::dynamic_buffer(out), ended);
      EXPECT_EQ(ended, asio::error::eof) << "the end is announced, not cut: " << ended.message();
      return out;
    });
    const auto position = got.find("\r\n\r\n");
    ASSERT_NE(position, std::string::npos) << got.substr(0, 200);
    EXPECT_EQ(got.size() - position - 4, sent.size());
    EXPECT_TRUE(got.ends_with(sent)) << "chunked " << chunked;
  }
}

TEST_F(certificate, F39_who_is_silent_over_tls_or_does_not_read_ends_at_the_deadline) {
  options.tls = files();
  options.header_deadline = options.body_deadline = 80ms;
  write(ca.issue(named("first")));
  start();
  server->route("GET", "/long", [](const controller::http_request&) {
    return controller::http_response{200, std::string(32u << 20, 'x')};
  });
  client silent(*this);  // not even a hello
  EXPECT_EQ(silent.all(), "");
  asked([&](tls_client& half) {
    asio::write(half, asio::buffer(std::string("GET /hello HT")));
    std::string out(16, 0);
    error_code ended;
    half.read_some(asio::buffer(out), ended);
    EXPECT_TRUE(ended);
    return out;
  });
  asked([&](tls_client& deaf) {
    asio::write(deaf, asio::buffer(std::string("GET /long HTTP/1.1\r\nHost: a\r\n\r\n")));
    std::this_thread::sleep_for(300ms);
    std::string out;
    error_code ended;
    asio::read(deaf, asio::dynamic_buffer(out), ended);
    EXPECT_LT(out.size(), 32u << 20) << "the deadline was over before it was read";
    return out;
  });
  EXPECT_TRUE(turn([&] { return server->connections() == 0; }));
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="timeout"})"), 2);
  // Where other work keeps the machine busy, a handshake of its own can take longer than the deadline.
  std::string served;
  for (int tries = 0; served != "first" && tries < 20; ++tries) served = shown();
  EXPECT_EQ(served, "first");
}

TEST_F(certificate, what_is_no_tls_is_turned_away_and_what_is_cut_off_is_let_go) {
  options.tls = files();
  write(ca.issue(named("first")));
  start();
  client plain(*this);
  plain.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(plain.all(), "");
  client garbled(*this);
  garbled.send(std::string("\x16\x03\x01\x00\x05hello", 10));
  EXPECT_EQ(garbled.all().substr(0, 1), "\x15") << "an alert says why";
  EXPECT_EQ(metric(R"(quartermaster_http_refused_total{server="test",reason="tls"})"), 2);
  asked([&](tls_client& cut) {
    asio::write(cut, asio::buffer(std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")));
    cut.next_layer().close();
    return std::string();
  });
  EXPECT_TRUE(turn([&] { return server->connections() == 0; }));
  EXPECT_EQ(shown(), "first");
}

TEST_F(certificate, a_client_ca_is_read_again_when_it_changes) {
  kube_test::test_ca before("before"), after("after");
  const auto caller = named("caller");
  const auto old_one = before.issue(caller), new_one = after.issue(caller);
  options.tls = files();
  options.tls->client_ca = folder.write("ca.pem", before.pem());
  options.certificate_period = 5ms;
  write(ca.issue(named("first")));
  start();
  EXPECT_EQ(shown(old_one), "first");
  EXPECT_NE(shown(new_one), "first");
  const auto read = [&] { return metric(R"(quartermaster_certificate_reloads_total{server="test",result="ok"})"); };
  folder.write("ca.pem", before.pem() + after.pem());
  ASSERT_TRUE(turn([&] { return read() == 2; }));
  EXPECT_EQ(shown(old_one), "first");
  EXPECT_EQ(shown(new_one), "first");
  folder.write("ca.pem", after.pem());
  ASSERT_TRUE(turn([&] { return read() == 3; }));
  EXPECT_NE(shown(old_one), "first");
  EXPECT_EQ(shown(new_one), "first");
}

TEST_F(certificate, tells_who_calls_and_when_that_certificate_ends) {
  kube_test::test_ca callers("callers"), strangers("strangers");
  const auto soon = callers.issue(named("soon", 600)), later = callers.issue(named("later", 3000));
  std::vector<controller::x509::info> seen;
  options.tls = files();
  options.tls->client_ca = folder.write("ca.pem", callers.pem());
  options.on_caller = [&seen](const controller::x509::info& leaf) { seen.push_back(leaf); };
  write(ca.issue(named("first")));
  start();
  EXPECT_EQ(shown(soon), "first");
  EXPECT_EQ(shown(later), "first");
  EXPECT_NE(shown(strangers.issue(named("stranger"))), "first");
  EXPECT_NE(shown(), "first");
  const auto thrice = asked(
      [](tls_client& tls_client) {
        std::string answer(300, '\0');
        std::size_t size = 0;
        for (int i = 0; i < 3; ++i) {
          asio::write(tls_client, asio::buffer(std::string("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")));
          size = tls_client.read_some(asio::buffer(answer));
        }
        return answer.substr(0, size);
      },
      soon);
  EXPECT_NE(thrice.find(" 200 "), std::string::npos);
  ASSERT_EQ(seen.size(), 3U) << "one a connection, and none of those that were refused";
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_EQ(seen[0].name, "soon");
  EXPECT_EQ(seen[0].serial, "02");
  EXPECT_NEAR(static_cast<double>(seen[0].until), now + 600, 60);
  EXPECT_EQ(seen[1].name, "later");
  EXPECT_EQ(seen[1].serial, "03");
  EXPECT_NEAR(static_cast<double>(seen[1].until), now + 3000, 60);
  EXPECT_EQ(seen[2], seen[0]);
}

TEST_F(certificate, F22_a_pair_that_cannot_be_used_at_the_start_is_not_shown_and_the_program_goes_on) {
  const auto rejected = [&] { return metric(R"(quartermaster_certificate_rejected{server="test"})"); };
  auto late = named("expired", -10);
  late.valid_from = -1000;
  const auto first = ca.issue(named("one")), other = ca.issue(named("other")), expired = ca.issue(late);
  options.tls = files();
  options.certificate_period = 5ms;
  const std::vector<std::optional<kube_test::pem_pair>> unusable{
      std::nullopt, kube_test::pem_pair{}, kube_test::pem_pair{first.certificate, other.key}, expired};
  for (const auto& pair : unusable) {
    std::filesystem::remove(folder.path("tls.crt"));
    if (pair) write(*pair);
    start();
    EXPECT_EQ(rejected(), 1);
    EXPECT_FALSE(server->serving());
    EXPECT_NE(shown(), "none") << "closed, not hung";
    write(ca.issue(named("good")));
    ASSERT_TRUE(turn([&] { return server->serving(); }));
    EXPECT_EQ(rejected(), 0);
    EXPECT_EQ(shown(), "good");
  }
}

}  // namespace
