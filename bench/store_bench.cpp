// A store of 15,000 pods or 5,000 GPU nodes: what it costs to fill, to see again unchanged, and to keep. `bytes` is the
// heap an object takes, of the struct and of the store around it.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"

namespace {

template <class T>
T golden(const std::string& name) {
  std::ifstream file(std::string(SOURCE_ROOT) + "/test/kube/golden/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  auto made = T::decode(text.str());
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

template <class T>
std::vector<T> many(const std::string& name, std::int64_t count) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(golden<T>(name));
    all.back().key.name = all.back().key.name.substr(0, 24) + "-" + std::to_string(100000 + i);
  }
  return all;
}

std::size_t in_use() {
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

template <class T>
void list_into(controller::store<T>& store, const std::vector<T>& all) {
  store.begin();
  for (const auto& entry : all) store.put(T(entry));
  store.commit();
}

template <class T>
void fill(benchmark::State& state, const std::string& name) {
  const auto all = many<T>(name, state.range(0));
  std::size_t bytes = 0;
  for (auto _ : state) {
    const auto before = in_use();
    controller::store<T> store;
    list_into(store, all);
    bytes = in_use() - before;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes"] = static_cast<double>(bytes) / static_cast<double>(state.range(0));
}

template <class T>
void list_again(benchmark::State& state, const std::string& name) {
  const auto all = many<T>(name, state.range(0));
  controller::store<T> store;
  list_into(store, all);
  std::size_t changes = 0;
  store.observe([&](const T*, const T*) { ++changes; });
  for (auto _ : state) list_into(store, all);
  if (changes != 0) state.SkipWithError("equal objects were reported");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void fill_pods(benchmark::State& state, const char* file) { fill<kube::pod>(state, file); }
void fill_nodes(benchmark::State& state, const char* file) { fill<kube::node>(state, file); }
void list_pods_again(benchmark::State& state, const char* file) { list_again<kube::pod>(state, file); }
void list_nodes_again(benchmark::State& state, const char* file) { list_again<kube::node>(state, file); }

BENCHMARK_CAPTURE(fill_pods, plain, "pod_plain.pb")->Arg(15000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fill_pods, gpu, "pod_gpu.pb")->Arg(15000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fill_nodes, gfd, "node_gfd.pb")->Arg(5000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(list_pods_again, plain, "pod_plain.pb")->Arg(15000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(list_nodes_again, gfd, "node_gfd.pb")->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace
