// Does the time of an answer of the aggregated API tell a person something of what they may not see? Each row asks two
// questions in turns, of a server in this process: `first_us` and `second_us` are the medians of their answers, and
// `order` is how often the first of a pair took longer, of 1. It is 0.5 where the time tells nothing: it does not
// depend on how fast the machine is, or on how seldom it is disturbed.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/large_fleet.hpp"
#include "cli/cluster/picture.hpp"
#include "cli/console/view_api.hpp"

namespace {

/// Says that a person may see namespace team-7 and no other.
struct reviewing_server final : kube::transport {
  kube::task<kube::response> send(kube::request request) override {
    kube::response out;
    const bool is_review = request.target.contains("/subjectaccessreviews");
    out.status = is_review ? 201 : 404;
    const bool is_allowed = request.body.contains(R"("namespace":"team-7")");
    out.body = !is_review   ? R"({"kind":"Status","code":404})"
               : is_allowed ? R"({"status":{"allowed":true}})"
                            : R"({"status":{"allowed":false}})";
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override { co_return kube::response(); }
};

/// The API over a cluster of so many pods.
struct view_server {
  cli::picture cluster;
  reviewing_server transport;
  kube::client api{transport};
  cli::console::view_api views{
      cli::console::view_api::dependencies{.look = [this]() -> cli::picture& { return cluster; },
                                           .api = api,
                                           .not_ready = [] { return text::phrase(); },
                                           .now = controller::boot_now,
                                           .wall = {},
                                           .people = {1'000'000, 1'000'000, 16}}};

  explicit view_server(std::int64_t pods) {
    const auto each = [&](auto&& act) {
      act(cluster.pods), act(cluster.nodes), act(cluster.policies), act(cluster.rules), act(cluster.quotas),
          act(cluster.old_quotas), act(cluster.cards);
    };
    each([](auto& store) { store.begin(); });
    for (std::int64_t i = 0; i < bench::node_count; ++i) cluster.nodes.put(bench::fleet_node(i, "Tesla-T4"));
    // Pods of team-7 are the same ones in each cluster.
    for (std::int64_t i = 0; i < bench::pod_count; ++i)
      if (i < pods || i % 200 == 7) cluster.pods.put(bench::fleet_pod(i));
    each([](auto& store) { store.commit(); });
    cluster.finish();
    views.trust({.authorities = "x",
                 .names = {"front-proxy"},
                 .user_fields = {"x-remote-user"},
                 .uid_fields = {},
                 .group_fields = {},
                 .extra_prefixes = {}});
  }
  /// Microseconds.
  double time(const std::string& path, const std::string& query, int status) {
    controller::http_request request;
    request.method = "GET";
    request.path = "/apis/view.quartermaster.io/v1alpha1/namespaces/" + path;
    request.query = query;
    request.fields.remote = {{"x-remote-user", "a"}};
    request.caller_name = "front-proxy";
    boost::asio::io_context loop(1);
    int answered = 0;
    boost::asio::co_spawn(loop, views.answer(std::move(request)),
                          [&](std::exception_ptr thrown, const controller::http_response& response) {
                            answered = thrown ? 0 : response.status;
                          });
    const auto begin = std::chrono::steady_clock::now();
    loop.run();
    const std::chrono::duration<double, std::micro> out = std::chrono::steady_clock::now() - begin;
    if (answered != status) throw std::runtime_error(path + " says " + std::to_string(answered));
    return out.count();
  }
};

view_server& full() {
  static const auto made = std::make_unique<view_server>(bench::pod_count);
  return *made;
}
view_server& sparse() {
  static const auto made = std::make_unique<view_server>(bench::pod_count / 10);
  return *made;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// How often one of `first` is larger than one of `second`: the statistic of Mann and Whitney, over all pairs.
double order_of(std::vector<double> first, std::vector<double> second) {
  std::ranges::sort(second);
  double sum = 0;
  for (const auto value : first) {
    const auto [equal, above] = std::ranges::equal_range(second, value);
    sum += static_cast<double>(equal - second.begin()) + static_cast<double>(above - equal) / 2;
  }
  return sum / (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

void compare(benchmark::State& state, const auto& ask_first, const auto& ask_second) {
  std::vector<double> first, second;
  for (int i = 0; i < 10; ++i) ask_first(), ask_second();
  bool is_turned = false;  // so that neither always has the other's warmth
  for (auto _ : state) {
    is_turned = !is_turned;
    if (is_turned) second.push_back(ask_second());
    first.push_back(ask_first());
    if (!is_turned) second.push_back(ask_second());
  }
  state.counters["first_us"] = median_of(first);
  state.counters["second_us"] = median_of(second);
  state.counters["order"] = order_of(first, second);
}

auto asking(view_server& (*cluster)(), std::string path, int status) {
  return [cluster, path = std::move(path), status] { return cluster().time(path, "", status); };
}

/// A pod of another namespace that is there, and one that is not.
void refused_pod(benchmark::State& state) {
  compare(state, asking(full, "team-8/podviews/train-8", 403), asking(full, "team-8/podviews/train-x", 403));
}
/// A namespace with a hundred pods, and one that no one has made.
void refused_namespace(benchmark::State& state) {
  compare(state, asking(full, "team-8/podviews", 403), asking(full, "team-x/podviews", 403));
}
/// In one's own namespace: a name that a pod of another one has, and one that no pod has.
void foreign_name(benchmark::State& state) {
  compare(state, asking(full, "team-7/podviews/train-8", 404), asking(full, "team-7/podviews/train-x", 404));
}
/// The pods of one's own namespace, of a cluster of 20,000 pods and of one of 2,000.
void list_among_many(benchmark::State& state) {
  compare(state, asking(full, "team-7/podviews", 200), asking(sparse, "team-7/podviews", 200));
}
void holdings_among_many(benchmark::State& state) {
  compare(state, asking(full, "team-7/holdings", 200), asking(sparse, "team-7/holdings", 200));
}

BENCHMARK(refused_pod)->Unit(benchmark::kMicrosecond)->Iterations(20'000);
BENCHMARK(refused_namespace)->Unit(benchmark::kMicrosecond)->Iterations(20'000);
BENCHMARK(foreign_name)->Unit(benchmark::kMicrosecond)->Iterations(20'000);
BENCHMARK(list_among_many)->Unit(benchmark::kMicrosecond)->Iterations(200);
BENCHMARK(holdings_among_many)->Unit(benchmark::kMicrosecond)->Iterations(50);

}  // namespace
