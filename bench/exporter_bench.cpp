// What a scrape of the agent costs: what each card uses is attributed to containers, and the page is written. 64 cards
// with 99 containers each are some 40,000 series; 8 cards with one container each are a usual node.
// Rows of docs/claims.md: T19.

#include <benchmark/benchmark.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <stdexcept>
#include <thread>

#include "agent/exporter/page.hpp"
#include "controller/http_server.hpp"
#include "controller/metrics_access.hpp"

namespace {

using namespace agent;

std::string digits(std::int64_t number, std::size_t length) {
  auto out = std::to_string(number);
  return std::string(length - out.size(), '0') + out;
}

struct bench_node {
  bench_node(std::int64_t cards, std::int64_t shares) {
    page.node = "gpu-node-17.example.com";
    page.mode = "vgpu";
    for (std::int64_t c = 0; c < cards; ++c) add_card(c, shares);
    for (const auto& pod : pods) known.push_back(&pod);
  }

  void add_card(std::int64_t number, std::int64_t shares) {
    agent::cards::card card;
    card.uuid = "GPU-a1000000-0000-4000-8000-" + digits(number, 12);
    card.model = "NVIDIA A100-SXM4-80GB";
    agent::cards::card_usage use;
    use.uuid = card.uuid;
    use.memory_total = std::uint64_t{80} << 30;
    use.memory_used = std::uint64_t{60} << 30;
    use.memory_reserved = std::uint64_t{1} << 29;
    use.utilization_ppm = 970'000;
    use.temperature_celsius = 61;
    use.power_mw = 250'000;
    use.energy_mj = 123'456'789;
    use.throttle_reasons = 4;
    use.nvlink_transmitted = use.nvlink_received = std::uint64_t{1} << 50;
    use.lists_processes = use.samples_processes = true;
    for (std::int64_t i = 0; i < shares; ++i) {
      exporter::pod pod;
      pod.key = {"team-" + std::to_string(i % 7), "train-" + std::to_string(number) + "-" + std::to_string(i)};
      pod.id = kube::uid::parse("00000000-0000-4000-8000-" + digits(number * 1000 + i, 12));
      pod.ids = {{"main", digits(number * 1000 + i, 64)}};
      pod.planned = {{"main", card.uuid, 1, std::uint64_t{700} << 20}};
      agent::cards::process_usage process;
      process.pid = static_cast<unsigned>(number * 1000 + i);
      process.owner = {agent::cards::owner_kind::pod, pod.ids[0].id, ""};
      process.memory = std::uint64_t{500} << 20;
      process.utilization_ppm = 8'000;
      use.processes.push_back(process);
      pods.push_back(std::move(pod));
    }
    page.report.cards.push_back(card);
    page.usage.push_back(use);
  }

  exporter::page page;
  std::vector<exporter::pod> pods;
  std::vector<const exporter::pod*> known;
};

void scrape(benchmark::State& state) {
  bench_node node(state.range(0), state.range(1));
  std::size_t bytes = 0, series = 0;
  for (auto _ : state) {
    node.page.parts = exporter::attribute(node.page.usage, {}, &node.known);
    controller::metric_text text;
    write(node.page, text);
    const auto body = text.take();
    bytes = body.size();
    state.PauseTiming();
    series = 0;
    for (std::size_t end = 0; (end = body.find('\n', end)) != body.npos; ++end) series += body[end + 1] != '#';
    state.ResumeTiming();
  }
  state.counters["series"] = static_cast<double>(series);
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(scrape)->Args({64, 99})->Args({8, 1})->Unit(benchmark::kMillisecond);

/// The same as a caller sees it: from a connection that is open to the last byte of the answer.
void scrape_over_http(benchmark::State& state) {
  bench_node node(state.range(0), state.range(1));
  controller::registry metrics;
  controller::loop loop(metrics);
  controller::http_server_metrics serving(metrics);
  controller::http_server_options options;
  options.address = "127.0.0.1:0";
  controller::http_server server(loop, serving, options);
  metrics.collect([&node](controller::metric_text& text) {
    node.page.parts = exporter::attribute(node.page.usage, {}, &node.known);
    write(node.page, text);
  });
  controller::add_metrics_route(server, metrics);
  if (!server.start()) throw std::runtime_error("no port");
  std::thread thread([&loop] { loop.run(); });
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket client(context);
  client.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
  std::size_t bytes = 0;
  for (auto _ : state) {
    boost::asio::write(client, boost::asio::buffer(std::string_view("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")));
    std::string answer;
    const auto head = boost::asio::read_until(client, boost::asio::dynamic_buffer(answer), "\r\n\r\n");
    const auto length = answer.find("Content-Length: ");
    if (length > head) throw std::runtime_error("no Content-Length");
    bytes = std::stoul(answer.substr(length + 16));
    const auto left = head + bytes - answer.size();
    boost::asio::read(client, boost::asio::dynamic_buffer(answer), boost::asio::transfer_exactly(left));
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  loop.quit();
  thread.join();
}
BENCHMARK(scrape_over_http)->Args({64, 99})->Args({8, 1})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
