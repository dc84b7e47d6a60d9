// The work queue: what one key costs on its way through, and in a storm on a queue that is already long.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "controller/work_queue.hpp"

namespace {

using namespace std::chrono_literals;
using controller::work_queue;

std::vector<kube::object_key> keys(std::int64_t count) {
  std::vector<kube::object_key> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back({"namespace", "gpu-node-" + std::to_string(i)});
  return out;
}
work_queue make() {
  return work_queue(work_queue::settings(), [] { return 0.5; });
}

/// client-go's BenchmarkQueue: 100 keys, each added, taken and done.
void add_take_done(benchmark::State& state) {
  const auto names = keys(100);
  for (auto _ : state) {
    auto queue = make();
    for (const auto& name : names) {
      queue.add(name, 0ms);
      const auto taken = queue.take(0ms);
      queue.done(*taken);
    }
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(add_take_done);

/// Changes of keys that are queued already: what a storm costs.
void add_again(benchmark::State& state) {
  const auto names = keys(state.range(0));
  auto queue = make();
  for (const auto& name : names) queue.add(name, 0ms);
  std::size_t index = 0;
  for (auto _ : state) queue.add(names[index++ % names.size()], 0ms);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(add_again)->Arg(100)->Arg(5000);

/// client-go's BenchmarkDelayingQueue_AddAfter: keys with times of their own, then all of them out.
void add_delayed(benchmark::State& state) {
  const auto names = keys(state.range(0));
  for (auto _ : state) {
    auto queue = make();
    std::uint64_t random = 1;
    for (const auto& name : names) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      queue.add(name, controller::milliseconds(random >> 44));
    }
    while (const auto taken = queue.take(24h)) queue.done(*taken);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(add_delayed)->Arg(5000)->Arg(150'000);

/// Every key fails and comes back.
void fail_and_come_back(benchmark::State& state) {
  const auto names = keys(1000);
  auto queue = make();
  for (const auto& name : names) queue.add(name, 0ms);
  controller::milliseconds now = 0ms;
  for (auto _ : state) {
    auto taken = queue.take(now);
    if (!taken) taken = queue.take(now = *queue.next_due());
    queue.failed(*taken, now);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(fail_and_come_back);

}  // namespace
