// Any bytes as what the scheduler sends, and as the annotations a pod or a node carries: never a crash, and what is
// answered is JSON of the protocol. The first byte says what the rest is.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/projections/from_json.hpp"
#include "quota/place.hpp"
#include "reconcilers/extender/placement.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace {

using namespace reconcilers::extender;
using nlohmann::json;

void require(bool holds) {
  if (!holds) std::abort();
}

kube::packed_map one_entry(std::string_view key, std::string_view value) {
  return kube::packed_map::of({{key, value}});
}

void as_filter(const std::string& body) {
  static body_parser parser;
  filter_args args;
  if (!read(parser, body, args)) return;
  std::vector<node_verdict> all;
  for (const auto& name : args.nodes) all.push_back({name, name.size() % 2 == 0 ? "no" : "", false});
  std::string out;
  append_filter_result(out, all, args.whole_nodes);
  require(!json::parse(out, nullptr, false).is_discarded());
  (void)kube::from_json<kube::pod>(args.pod_json);
}

void as_preemption(const std::string& body) {
  static body_parser parser;
  preempt_args args;
  if (!read(parser, body, args)) return;
  require(!json::parse(preempt_result(args.nodes), nullptr, false).is_discarded());
}

void as_binding(const std::string& body) {
  static body_parser parser;
  if (const auto args = read_bind(parser, body))
    require(!json::parse(bind_result(args->node), nullptr, false).is_discarded());
}

/// Whatever a pod says of itself, the ledger holds at least what its limits say.
void as_annotation(std::string_view key, const std::string& value, std::string_view module, std::string_view resource) {
  kube::node node;
  node.key.name = "a";
  node.labels = one_entry("quartermaster.io/module", module);
  node.allocatable = {{std::string(resource), 400}};
  if (module == "vgpu") node.allocatable.emplace_back("tencent.com/vcuda-memory", 256);
  if (module == "hami")
    node.annotations =
        one_entry("hami.io/node-nvidia-register", R"([{"id":"a/0","count":10,"devmem":16384,"health":true}])");
  if (module == "gpushare") node.allocatable = {{"aliyun.com/gpu-count", 4}, {"aliyun.com/gpu-mem", 64}};
  quota::ledger book;
  book.put(node_of(node, nullptr, {}));
  kube::pod pod;
  pod.key = {"n", "p"};
  pod.node_name = "a";
  kube::container main;
  main.name = "main";
  main.limits = {{std::string(resource), 1}};
  if (module == "vgpu") main.limits.emplace_back("tencent.com/vcuda-memory", 4);
  pod.containers = {main};
  pod.annotations = one_entry(key, value);
  const pod_request request(pod, {});
  const auto got = held_by(pod, *book.view("a"), request);
  if (got.origin == source::planned || got.origin == source::guessed) {
    require(got.holding.grants.size() == 1);
    require(got.holding.grants[0].cores >= 0 && got.holding.grants[0].cores <= 100 &&
            got.holding.grants[0].memory_mib >= 0);
  }
  book.record("uid", got.holding);
  book.release("uid");
  for (const auto& card : book.view("a")->used) require(card == quota::card_use{});
}

void as_register(const std::string& value) {
  kube::node node;
  node.key.name = "a";
  node.labels = one_entry("quartermaster.io/module", "hami");
  node.annotations = one_entry("hami.io/node-nvidia-register", value);
  node.allocatable = {{"nvidia.com/gpualloc", 20}};
  const auto got = node_of(node, nullptr, {});
  quota::ledger book;
  book.put(got);
  quota::demand needs;
  const quota::amount limits[] = {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 100}};
  const quota::limits containers[] = {limits};
  if (!quota::read(containers, got.serves, needs)) {
    quota::placement placement;
    (void)quota::place(needs, *book.view("a"), {}, placement);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      as_filter(rest);
      break;
    case 1:
      as_preemption(rest);
      break;
    case 2:
      as_binding(rest);
      break;
    case 3:
      as_annotation("quartermaster.io/placement", rest, "vgpu", "tencent.com/vcuda-core");
      break;
    case 4:
      as_annotation("hami.io/vgpu-devices-allocated", rest, "hami", "nvidia.com/gpualloc");
      break;
    case 5:
      as_annotation("ALIYUN_COM_GPU_MEM_IDX", rest, "gpushare", "aliyun.com/gpu-mem");
      break;
    default:
      as_register(rest);
  }
  return 0;
}
