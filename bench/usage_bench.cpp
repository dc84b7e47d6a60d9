// What the time of cards costs the operator: 5,000 nodes of 8 cards, and 20,000 pods with a share each. `checkpoint` is
// one, with an API server that answers at once; hold_ms is the longest time in which nothing else on the loop could
// run. `scrape` is the page of what pods hold, and `churn` is a pod that comes and goes.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "bench/large_fleet.hpp"
#include "reconcilers/usage/allocation_metrics.hpp"
#include "reconcilers/usage/keeper.hpp"
#include "reconcilers/usage/recorder.hpp"

namespace {

constexpr std::int64_t first_second = 1'800'000'000;

/// Every list is empty, and every object is as it was sent.
struct agreeing_server final : kube::transport {
  kube::task<kube::response> send(kube::request request) override {
    const bool reads = request.verb == kube::method::get;
    kube::response out;
    out.status = 200;
    out.body = reads ? R"({"items":[]})" : request.body;
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override { co_return kube::response(); }
};

struct fleet {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<api::accelerator_quota> quotas;
  controller::store<kube::config_map> old_quotas;
  controller::store<api::accelerator_node> reports;
  controller::store<kube::name_space> name_spaces;
  controller::registry metrics;
  reconcilers::extender::account account{{pods, nodes, policies, rules, quotas, old_quotas, reports}, metrics};
  quota::seconds now = first_second;
  reconcilers::usage::recorder recorder{
      {pods, nodes, reports, name_spaces, policies, account, [this] { return std::optional(now); }}};
  agreeing_server server;
  kube::client client{server};
  reconcilers::usage::keeper keeper{client, recorder, metrics, {}};
  std::size_t bytes_of_book = 0;

  fleet() {
    for (std::int64_t i = 0; i < bench::node_count; ++i) nodes.put(bench::fleet_node(i, "NVIDIA-A100-SXM4-80GB"));
    for (std::int64_t i = 0; i < bench::pod_count; ++i) pods.put(pod(i));
    const auto before = mallinfo2().uordblks;
    recorder.begin();
    bytes_of_book = mallinfo2().uordblks - before;
    recorder.book().resume(now);
  }
  static kube::pod pod(std::int64_t number) {
    auto out = bench::fleet_pod(number);
    out.scheduled_at = first_second - 10;
    out.owners = {{"ReplicaSet", "web-" + std::to_string(number % 2'000), {}, true}};
    return out;
  }
};

fleet& the_fleet() {
  static fleet made;
  return made;
}

/// Milliseconds of its longest piece between two waits.
double longest_piece(kube::task<void> task) {
  boost::asio::io_context loop(1);
  bool done = false;
  boost::asio::co_spawn(loop, std::move(task),
                        [&](std::exception_ptr thrown, const kube::result<void>& result) { done = !thrown && result; });
  std::chrono::duration<double, std::milli> longest{0};
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    if (loop.run_one() == 0) break;
    longest = std::max<decltype(longest)>(longest, std::chrono::steady_clock::now() - begin);
  }
  if (!done) throw std::runtime_error("the checkpoint failed");
  return longest.count();
}

void checkpoint(benchmark::State& state) {
  auto& all = the_fleet();
  longest_piece(all.keeper.resume());
  double hold = 0;
  for (auto _ : state) {
    all.now += 300;
    hold = std::max(hold, longest_piece(all.keeper.checkpoint(all.now)));
  }
  state.counters["hold_ms"] = hold;
  state.counters["book_MiB"] = static_cast<double>(all.bytes_of_book) / (1 << 20);
  state.counters["holders"] = static_cast<double>(all.recorder.book().holders());
}
BENCHMARK(checkpoint)->Unit(benchmark::kMillisecond);

void scrape(benchmark::State& state) {
  auto& all = the_fleet();
  std::size_t bytes = 0;
  for (auto _ : state) {
    controller::metric_text text;
    reconcilers::usage::write_allocation_metrics(
        true, all.account, all.pods, [&](std::string_view ns) { return all.recorder.organization(ns); }, nullptr, text);
    bytes = text.take().size();
  }
  state.counters["page_MiB"] = static_cast<double>(bytes) / (1 << 20);
}
BENCHMARK(scrape)->Unit(benchmark::kMillisecond);

void churn(benchmark::State& state) {
  auto& all = the_fleet();
  std::int64_t number = bench::pod_count;
  for (auto _ : state) {
    ++all.now;
    auto pod = fleet::pod(++number);
    all.pods.put(pod);
    all.pods.erase(pod);
    if (number % 1'000 == 0) all.recorder.book().settle(all.now);
  }
  state.counters["holders"] = static_cast<double>(all.recorder.book().holders());
}
BENCHMARK(churn)->Unit(benchmark::kMicrosecond)->Iterations(10'000);

}  // namespace
