// What one object costs to decode: protobuf projections, and the same fields out of JSON with On-Demand for contrast.
// `allocs` counts heap blocks an object; `wire` is the size of its input.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "kube/json_object.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"

static std::size_t allocations = 0;  // of the one thread

void* operator new(std::size_t size) {
  ++allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace {

std::string golden(const std::string& name) {
  std::ifstream file(std::string(SOURCE_ROOT) + "/test/kube/golden/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no fixture " + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class Decode>
void measure(benchmark::State& state, const std::string& fixture, Decode decode) {
  const auto bytes = golden(fixture);
  const auto before = allocations;
  for (auto _ : state) {
    auto made = decode(bytes);
    if (!made) state.SkipWithError(made.error().message.c_str());
    benchmark::DoNotOptimize(made);
  }
  const auto objects = static_cast<double>(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.counters["allocs"] = static_cast<double>(allocations - before) / objects;
  state.counters["wire"] = static_cast<double>(bytes.size());
}

void add_amounts(kube::quantities& quantities, kube::on_demand::value list) {
  kube::on_demand::each_member(list, [&](std::string_view name, kube::on_demand::value amount) {
    const auto value = kube::parse_quantity(kube::on_demand::text_or(amount)).value_or(0);
    if (kube::is_extended_resource(name)) quantities.emplace_back(name, value);
  });
}

void read_container(kube::on_demand::value value, kube::container& container) {
  kube::on_demand::each_member(value, [&](std::string_view key, kube::on_demand::value field) {
    if (key == "name") container.name = kube::on_demand::text_or(field);
    if (key != "resources") return;
    kube::on_demand::each_member(field, [&](std::string_view side, kube::on_demand::value list) {
      if (side == "limits") add_amounts(container.limits, list);
      if (side == "requests") add_amounts(container.requests, list);
    });
  });
}

/// The same fields as pod::decode, but for container statuses.
kube::result<kube::pod> pod_of_json(std::string_view bytes) {
  static constexpr std::string_view patterns[] = {
      "quartermaster.io/", "state.quartermaster.io/", "tencent.com/", "hami.io/", "ALIYUN_COM_", "nvidia.com/"};
  return kube::on_demand::decode<kube::pod>(
      bytes, {patterns}, [](kube::pod& pod, std::string_view part, kube::on_demand::value section) {
        if (part != "spec" && part != "status") return;
        kube::on_demand::each_member(section, [&](std::string_view key, kube::on_demand::value field) {
          if (key == "nodeName") pod.node_name = kube::on_demand::text_or(field);
          if (key == "schedulerName") pod.scheduler_name = kube::on_demand::text_or(field);
          if (key == "priority") pod.priority = static_cast<std::int32_t>(kube::on_demand::number_or(field, 0));
          if (key == "podIP") pod.ip = kube::on_demand::text_or(field);
          if (key == "phase") pod.ready = kube::on_demand::text_or(field) == "Running";
          if (key == "containers") {
            kube::on_demand::each_item(
                field, [&](kube::on_demand::value value) { read_container(value, pod.containers.emplace_back()); });
          }
        });
      });
}

kube::result<kube::node> node_of_json(std::string_view bytes) {
  static constexpr std::string_view patterns[] = {"quartermaster.io/", "state.quartermaster.io/", "hami.io/"};
  return kube::on_demand::decode<kube::node>(
      bytes, {patterns}, [](kube::node& node, std::string_view part, kube::on_demand::value section) {
        if (part != "spec" && part != "status") return;
        kube::on_demand::each_member(section, [&](std::string_view key, kube::on_demand::value field) {
          if (key == "unschedulable") node.unschedulable = kube::on_demand::flag_or(field, false);
          if (key == "capacity") add_amounts(node.capacity, field);
          if (key == "allocatable") add_amounts(node.allocatable, field);
        });
      });
}

BENCHMARK_CAPTURE(measure, pod_gpu_protobuf, "pod_gpu.pb", kube::pod::decode);
BENCHMARK_CAPTURE(measure, pod_gpu_json, "pod_gpu.json", pod_of_json);
BENCHMARK_CAPTURE(measure, pod_plain_protobuf, "pod_plain.pb", kube::pod::decode);
BENCHMARK_CAPTURE(measure, pod_plain_json, "pod_plain.json", pod_of_json);
BENCHMARK_CAPTURE(measure, node_gfd_protobuf, "node_gfd.pb", kube::node::decode);
BENCHMARK_CAPTURE(measure, node_gfd_json, "node_gfd.json", node_of_json);

}  // namespace
