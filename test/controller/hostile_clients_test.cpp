// A server among hostile clients, on real sockets: hundreds of one kind at a time, each back as soon as it is turned
// away. Throughout, /healthz must answer within a second, and memory must stay within 32 MiB of what the server takes
// at rest. A quarter of a second and 200 clients a kind; a second with QM_LONG; a minute and 1,000 with QM_NIGHTLY. (In
// the first two, which share their processors with other tests, an answer may take three seconds.) With QM_HOSTILE_PORT
// and QM_HOSTILE_PID it is that process on 127.0.0.1 which is attacked (its metrics port), and which is measured.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "controller/health.hpp"
#include "controller/http_server.hpp"
#include "controller/sleep.hpp"
#include "test/controller/rig.hpp"
#include "test/rounds.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#define QM_ALLOCATED __sanitizer_get_current_allocated_bytes()
#endif
#endif

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);

struct hostile_kind {
  std::string name;
  std::string opening;                ///< sent at once
  std::string flood;                  ///< and then this, again and again
  controller::milliseconds pause{0};  ///< between two of them
  enum { reads, deaf, half_closed } manner = reads;
};

void PrintTo(const hostile_kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<hostile_kind> kinds() {
  const std::string host = " HTTP/1.1\r\nHost: a\r\n", x(16'000, 'x');
  const std::string chunked = "POST /healthz" + host + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string taken = "POST /take" + host + "Transfer-Encoding: chunked\r\n\r\n";
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /metrics" + host + "\r\n";
  return {
      {"silent", "", "", {}, hostile_kind::reads},
      {"slow_head", "GET /hea", "l", 100ms, hostile_kind::reads},
      {"endless_head", "GET /healthz" + host + "X: ", x, {}, hostile_kind::reads},
      {"endless_fields", "GET /healthz" + host, "a: b\r\n", 1ms, hostile_kind::reads},
      {"polite_idlers", "GET /x" + host + "\r\n", "", {}, hostile_kind::reads},
      {"slow_body", "POST /take" + host + "Content-Length: 100000\r\n\r\n", "x", 100ms, hostile_kind::reads},
      {"large_bodies", taken + "f0000\r\n" + x, x, 20ms, hostile_kind::reads},
      {"endless_body", taken + "fffffff\r\n", x, {}, hostile_kind::reads},
      {"endless_chunks", taken, "1\r\na\r\n", 1ms, hostile_kind::reads},
      {"chunk_extensions", taken + "1;", x, {}, hostile_kind::reads},
      {"extensions_nowhere", chunked + "1;", x, {}, hostile_kind::reads},
      {"trailers", taken + "0\r\na: ", x, {}, hostile_kind::reads},
      {"deaf", many, "", {}, hostile_kind::deaf},
      {"half_closed", "GET /healthz HTTP/1.1\r\nHos", "", {}, hostile_kind::half_closed},
      {"smuggling",
       "POST /take" + host + "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nGET /metrics" + host + "\r\n",
       "",
       {},
       hostile_kind::reads},
      {"garbage",
       std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\r\n\r\n", 17),
       x,
       {},
       hostile_kind::reads},
  };
}

asio::awaitable<void> attack(const hostile_kind& profile, unsigned short port) {
  const auto executor = co_await asio::this_coro::executor;
  for (;;) {
    tcp::socket socket(executor);
    auto [failed] = co_await socket.async_connect({asio::ip::make_address("127.0.0.1"), port}, as_pair);
    if (!failed && !profile.opening.empty())
      std::tie(failed, std::ignore) = co_await asio::async_write(socket, asio::buffer(profile.opening), as_pair);
    boost::system::error_code ignored;
    if (profile.manner == hostile_kind::half_closed) socket.shutdown(tcp::socket::shutdown_send, ignored);
    while (!failed && profile.manner == hostile_kind::deaf) co_await controller::sleep_for(1s);
    while (!failed && !profile.flood.empty()) {
      std::tie(failed, std::ignore) = co_await asio::async_write(socket, asio::buffer(profile.flood), as_pair);
      if (profile.pause > 0ms) co_await controller::sleep_for(profile.pause);
    }
    char answer[512];
    while (!failed) std::tie(failed, std::ignore) = co_await socket.async_read_some(asio::buffer(answer), as_pair);
    socket.close(ignored);
    co_await controller::sleep_for(20ms);
  }
}

/// One GET /healthz on a connection of its own, and how long until its answer; empty where there is none for five
/// seconds.
std::optional<steady_clock::duration> probe(unsigned short port) {
  const auto began = steady_clock::now();
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{5, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto address = tcp::endpoint(asio::ip::make_address("127.0.0.1"), port);
  const std::string_view question = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  std::string got;
  if (::connect(fd, address.data(), static_cast<socklen_t>(address.size())) == 0 &&
      ::send(fd, question.data(), question.size(), MSG_NOSIGNAL) > 0) {
    char part[1024];
    for (ssize_t size = 0; (size = ::recv(fd, part, sizeof part, 0)) > 0;)
      got.append(part, static_cast<std::size_t>(size));
  }
  ::close(fd);
  if (!got.starts_with("HTTP/1.1 200")) return std::nullopt;
  return steady_clock::now() - began;
}

struct hostile_clients : controller_test::rig, testing::WithParamInterface<hostile_kind> {
  static const char* outside(const char* name) { return ::getenv(name); }
  const bool own = !outside("QM_HOSTILE_PORT");

  /// Bytes the server's process takes. With ASAN what was freed is kept for a while, so there what is allocated counts.
  std::size_t memory() const {
#ifdef QM_ALLOCATED
    if (own) return QM_ALLOCATED;
#endif
    std::ifstream file("/proc/" + std::string(own ? "self" : outside("QM_HOSTILE_PID")) + "/statm");
    std::size_t pages = 0;
    file >> pages >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
};

void raise_file_limit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

TEST_P(hostile_clients, F38_F39_O4_memory_stays_and_probes_are_answered) {
  const bool nightly = ::getenv("QM_NIGHTLY");
  const controller::milliseconds lasts = nightly ? 60'000ms : test::rounds(250ms, 1'000ms);
  const int clients = nightly ? 1000 : 200;
  raise_file_limit();

  controller::health health(metrics);
  controller::http_server_metrics serving(metrics);
  controller::http_server_options options;
  options.address = "127.0.0.1:0";
  options.bodies_limit = 16u << 20;
  controller::http_server server(loop, serving, options);
  if (own) {
    add_health_routes(server, health);
    // As long as those of the operator; what is asked here is not what it costs to write them.
    server.route("GET", "/metrics", [](const controller::http_request&) {
      return controller::http_response{200, std::string(64u << 10, '#')};
    });
    server.route("POST", "/take", [](const controller::http_request&) { return controller::http_response(); });
    ASSERT_TRUE(server.start());
  }
  const auto port = own ? server.port() : static_cast<unsigned short>(std::stoi(outside("QM_HOSTILE_PORT")));

  std::atomic<bool> done = false, probed = false;
  std::atomic<int> probes = 0, failed = 0;
  std::atomic<long> slowest_ms = 0;
  std::thread prober([&] {
    while (!done) {
      if (const auto took = probe(port))
        slowest_ms = std::max<long>(slowest_ms, std::chrono::ceil<std::chrono::milliseconds>(*took).count());
      else
        ++failed;
      ++probes;
      std::this_thread::sleep_for(std::min<controller::milliseconds>(50ms, lasts / 20));
    }
    probed = true;
  });
  const auto serve_for = [&](controller::milliseconds time) {
    std::size_t most = 0;
    const auto end = steady_clock::now() + time;
    while (steady_clock::now() < end) {
      if (own)
        loop.context().run_one_for(20ms);
      else
        std::this_thread::sleep_for(20ms);
      most = std::max(most, memory());
    }
    return most;
  };
  loop.context().restart();
  const auto rest = serve_for(lasts / 5);
  auto crowd = std::make_unique<asio::io_context>();
  const hostile_kind kind = GetParam();
  for (int i = 0; i < clients; ++i) asio::co_spawn(*crowd, attack(kind, port), asio::detached);
  std::thread crowding([&] { crowd->run(); });
  const auto most = serve_for(lasts);
  crowd->stop();
  crowding.join();
  done = true;
  while (!probed) serve_for(20ms);
  prober.join();
  crowd.reset();
  if (own) {
    server.stop();
    EXPECT_TRUE(turn([&] { return server.drained(); }));
  }

  const auto grown = most > rest ? most - rest : 0;
  RecordProperty("grown_kib", static_cast<int>(grown >> 10));
  RecordProperty("slowest_probe_ms", static_cast<int>(slowest_ms));
  std::cout << kind.name << ": " << clients << " clients for " << lasts.count() << " ms, memory at rest "
            << (rest >> 10) << " KiB, " << (grown >> 10) << " KiB more at most, " << probes << " probes, " << failed
            << " without an answer, the slowest " << slowest_ms << " ms\n";
  EXPECT_LT(grown, 32u << 20);
  EXPECT_EQ(failed, 0) << "probes without an answer";
  EXPECT_LT(slowest_ms, nightly ? 1000 : 3000);
  EXPECT_GT(probes, 0);
}

INSTANTIATE_TEST_SUITE_P(every_kind, hostile_clients, testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
