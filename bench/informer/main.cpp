// The counterpart of bench/peers/informer on our own runtime: pods, nodes and the ConfigMaps of kube-public, reflected
// into stores over the real transport; no reconcilers. Prints the same lines as the peer:
//
//   synced <unix ns> objects <n>            once, when all three stores hold the initial list
//   latency <n> <p50 ns> <p99 ns> <max ns>  on SIGUSR1: observer calls for stamped pods since the last such line

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/reflector.hpp"
#include "controller/sleep.hpp"
#include "controller/store.hpp"
#include "kube/config.hpp"
#include "kube/curl_transport.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"

namespace {

constexpr std::string_view stamp_key = "quartermaster.io/bench-stamp";

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Write-to-observer times in nanoseconds.
class latencies {
 public:
  void see(const kube::pod* before, const kube::pod* after) {
    if (!before || !after) return;
    const auto stamp = after->annotations.find(stamp_key);
    if (!stamp || before->annotations.find(stamp_key) == stamp) return;
    const std::int64_t now = unix_ns();
    std::int64_t written = 0;
    if (std::from_chars(stamp->data(), stamp->data() + stamp->size(), written).ec == std::errc()) {
      ns_.push_back(now - written);
    }
  }
  void print() {
    std::ranges::sort(ns_);
    std::printf("latency %zu %lld %lld %lld\n", ns_.size(), at(0.5), at(0.99), at(1));
    std::fflush(stdout);
    ns_.clear();
  }

 private:
  long long at(double q) const {
    if (ns_.empty()) return 0;
    return ns_[std::min(ns_.size() - 1, static_cast<std::size_t>(q * static_cast<double>(ns_.size())))];
  }
  std::vector<std::int64_t> ns_;
};

boost::asio::awaitable<void> print_when_asked(controller::loop& loop, latencies& seen) {
  boost::asio::signal_set signal_set(loop.context(), SIGUSR1);
  for (;;) {
    co_await signal_set.async_wait(boost::asio::use_awaitable);
    seen.print();
  }
}

/// What is reflected, and the line that says when all of it is there.
struct caches {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<kube::config_map> maps;

  boost::asio::awaitable<void> print_when_synced() {
    while (!pods.synced() || !nodes.synced() || !maps.synced()) {
      co_await controller::sleep_for(std::chrono::milliseconds(2));
    }
    std::printf("synced %lld objects %zu\n", static_cast<long long>(unix_ns()),
                pods.size() + nodes.size() + maps.size());
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--kubeconfig") {
    std::fputs("usage: sync_informer --kubeconfig FILE\n", stderr);
    return 2;
  }
  kube::config_options options;
  options.kubeconfig = argv[2];
  auto config = kube::load_config(options);
  if (!config) {
    std::fprintf(stderr, "sync_informer: %s\n", config.error().message.c_str());
    return 1;
  }
  controller::registry metrics;
  controller::loop loop(metrics);
  kube::curl_transport transport(loop.executor(), std::move(*config));
  controller::reflector_metrics counted(metrics);
  caches held;
  latencies seen;
  held.pods.observe([&](const kube::pod* before, const kube::pod* after) { seen.see(before, after); });
  kube::watch_settings in_public;
  in_public.ns = "kube-public";
  loop.spawn("pods", controller::reflect(transport, kube::watch_settings(), held.pods, counted));
  loop.spawn("nodes", controller::reflect(transport, kube::watch_settings(), held.nodes, counted));
  loop.spawn("configmaps", controller::reflect(transport, in_public, held.maps, counted));
  loop.spawn("synced", held.print_when_synced());
  loop.spawn("asked", print_when_asked(loop, seen));
  loop.run();
}
