// What one look costs the console's server, which answers no one else meanwhile: 5,000 nodes of 8 cards, 20,000 pods
// with a share each in 200 namespaces, and 50 pods that wait. `everyone` may see all, `person` one namespace. Answers
// to the commands of a person are those of the aggregated API.

#include <benchmark/benchmark.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/large_fleet.hpp"
#include "cli/cluster/picture.hpp"
#include "cli/console/overview.hpp"
#include "cli/console/view_answers.hpp"
#include "cli/console/views.hpp"

namespace {

constexpr std::int64_t waiting_count = 50;

kube::node node(std::int64_t number) {
  return bench::fleet_node(number, number % 3 ? "NVIDIA-A100-SXM4-80GB" : "Tesla-T4");
}

kube::pod waiting_pod(std::int64_t number) {
  auto out = bench::fleet_pod(number);
  out.node_name.clear();
  out.phase = kube::pod_phase::pending;
  out.containers.front().limits = {{"tencent.com/vcuda-core", 90}, {"tencent.com/vcuda-memory", 16}};
  return out;
}

cli::picture& cluster() {
  static const auto made = [] {
    auto out = std::make_unique<cli::picture>();
    const auto each = [&](auto&& act) {
      act(out->pods), act(out->nodes), act(out->policies), act(out->rules), act(out->quotas), act(out->old_quotas),
          act(out->cards);
    };
    each([](auto& store) { store.begin(); });
    for (std::int64_t i = 0; i < bench::node_count; ++i) out->nodes.put(node(i));
    for (std::int64_t i = 0; i < bench::pod_count; ++i) out->pods.put(bench::fleet_pod(i));
    for (std::int64_t i = 0; i < waiting_count; ++i) out->pods.put(waiting_pod(bench::pod_count + i));
    each([](auto& store) { store.commit(); });
    out->finish();
    return out;
  }();
  return *made;
}

cli::console::viewer everyone() {
  cli::console::viewer out;
  out.nodes = out.all_pods = out.all_quotas = out.declarations = true;
  return out;
}

cli::console::viewer person() {
  cli::console::viewer out;
  out.namespaces = out.quota_namespaces = {"team-7"};
  return out;
}

void measure(benchmark::State& state, const auto& answer) {
  (void)cluster();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = answer().size();
  state.counters["KiB"] = static_cast<double>(bytes) / 1024;
}

using cli::console::body_of;

void overview(benchmark::State& state) {
  measure(state, [] { return body_of(cli::console::overview_view(cluster(), everyone(), {})); });
}
void fleet(benchmark::State& state) {
  measure(state, [] { return body_of(cli::console::fleet_view(cluster(), everyone(), {0, 5'000})); });
}
void pods_of_everyone(benchmark::State& state) {
  measure(state, [] { return body_of(cli::console::holders_view(cluster(), everyone(), "", {0, 50}, {}, {})); });
}
void pods_of_person(benchmark::State& state) {
  measure(state, [] { return body_of(cli::console::holders_view(cluster(), person(), "team-7", {0, 50}, {}, {})); });
}
void namespaces(benchmark::State& state) {
  measure(state, [] { return body_of(cli::console::namespaces_view(cluster(), person(), {})); });
}
void one_pod(benchmark::State& state) {
  measure(state, [] {
    const auto& pod = *cluster().pods.find({"team-7", "train-7"});
    return body_of(cli::console::pod_view(cluster(), pod, nlohmann::json::object(), {}, {}, {}));
  });
}
void person_inspects_nodes(benchmark::State& state) {
  measure(state, [] { return cli::console::nodes_answer(cluster(), {}, {}).text; });
}
void person_inspects_pods(benchmark::State& state) {
  measure(state, [] { return cli::console::pods_answer(cluster(), "team-7", {}, {}).text; });
}
void person_sees_top(benchmark::State& state) {
  measure(state, [] { return cli::console::holdings_answer(cluster(), "team-7", {}, "").text; });
}

BENCHMARK(overview)->Unit(benchmark::kMillisecond);
BENCHMARK(fleet)->Unit(benchmark::kMillisecond);
BENCHMARK(pods_of_everyone)->Unit(benchmark::kMillisecond);
BENCHMARK(pods_of_person)->Unit(benchmark::kMillisecond);
BENCHMARK(namespaces)->Unit(benchmark::kMillisecond);
BENCHMARK(one_pod)->Unit(benchmark::kMillisecond);
BENCHMARK(person_inspects_nodes)->Unit(benchmark::kMillisecond);
BENCHMARK(person_inspects_pods)->Unit(benchmark::kMillisecond);
BENCHMARK(person_sees_top)->Unit(benchmark::kMillisecond);

}  // namespace
