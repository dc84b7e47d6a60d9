// What HAMi's own device plugin does with what we write, and what we read of what HAMi writes. recorded/README.md says
// how the records are made.

#include <gmock/gmock.h>

#include <fstream>

#include "kube/projections/from_json.hpp"
#include "quota/place.hpp"
#include "reconcilers/extender/placement.hpp"
#include "reconcilers/extender/protocol.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using testing::SizeIs;

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr auto allocated = "hami.io/vgpu-devices-allocated";

/// Two cards with nothing given out.
quota::ledger two_cards() {
  quota::ledger book;
  book.put(node_of(
      node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}},
           {{"hami.io/node-nvidia-register",
             R"([{"id":"GPU-a0","count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true},)"
             R"({"id":"GPU-a1","index":1,"count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true}])"}}),
      nullptr, {}));
  return book;
}
kube::container asking(const std::string& name, std::int64_t cards, std::int64_t mib, std::int64_t cores,
                       role kind = role::main) {
  return container(name, {{"nvidia.com/gpualloc", cards}, {"nvidia.com/gpumem", mib}, {"nvidia.com/gpucores", cores}},
                   kind);
}
quota::holding decided(quota::ledger& book, const kube::pod& pod) {
  const pod_request request(pod, {});
  const auto view = *book.view("a");
  quota::demand needs;
  EXPECT_FALSE(quota::read(request.containers(), view.inventory->serves, needs));
  quota::placement placement;
  EXPECT_TRUE(quota::place(needs, view, {}, placement).fits());
  return quota::holding_of(needs, placement, *view.inventory);
}

TEST(hami_plugin, gives_every_container_the_cards_that_were_decided) {
  std::ifstream file("test/reconcilers/extender/recorded/hami-v2.10.0-lists.json");
  const auto record = json::parse(file, nullptr, false);
  ASSERT_TRUE(record.is_array());
  std::size_t looked_at = 0;
  for (const auto& entry : record) {
    const auto name = entry["name"].get<std::string>();
    if (name.starts_with("before-")) continue;
    ++looked_at;
    auto unbound = entry["pods"][0];
    unbound["metadata"].erase("annotations");
    unbound["spec"].erase("nodeName");
    const auto pod = *kube::from_json<kube::pod>(unbound.dump());
    auto book = two_cards();
    const auto held = decided(book, pod);
    const pod_request request(pod, {});
    const auto written = annotations_of(held, request, pod, *book.view("a")->inventory, 1'800'000'000 * second_ns);
    for (const auto& [key, value] : entry["pods"][0]["metadata"]["annotations"].items())
      EXPECT_EQ(written.value(key, ""), value.get<std::string>())
          << name << ": the record is of other words than we write";
    for (const auto& call : entry["calls"]) {
      const auto text = name + ": " + call.dump();
      EXPECT_EQ(call["container"], call["for"]) << text;
      const auto match = std::ranges::find(pod.containers, call["for"].get<std::string>(), &kube::container::name);
      EXPECT_EQ(call["memory"], std::to_string(kube::amount(match->limits, "nvidia.com/gpumem")) + "m") << text;
      EXPECT_EQ(call["cores"], std::to_string(kube::amount(match->limits, "nvidia.com/gpucores"))) << text;
      std::string cards;
      for (const auto& grant : held.grants)
        if (request.names()[grant.container] == &*match) cards += (cards.empty() ? "" : ",") + grant.card;
      EXPECT_EQ(call["cards"], cards.empty() ? "GPU-a0" : cards) << text;  // an init container's: those of the pod
    }
    EXPECT_EQ(entry["after"]["pods"][name]["bind-phase"], "success") << name;
  }
  EXPECT_EQ(looked_at, 7u);
}

/// HAMi 2.9 and later has a part for every init container (pkg/scheduler/score.go scoreNode), before that none.
TEST(hami_scheduler, what_it_writes_is_read_for_the_container_it_is_of) {
  const std::vector<kube::container> shape{container("proxy", {}, role::sidecar), container("web", {}),
                                           asking("main", 1, 12000, 40)};
  for (const auto* list : {";;GPU-a1,NVIDIA,12000,40:;", ";GPU-a1,NVIDIA,12000,40:;"}) {
    const auto bound = annotated(pod("p", shape, "a"), {{allocated, list}});
    auto book = two_cards();
    const pod_request request(bound, {});
    const auto got = held_by(bound, *book.view("a"), request);
    ASSERT_EQ(got.origin, source::confirmed) << list;
    ASSERT_THAT(got.holding.grants, SizeIs(1)) << list;
    EXPECT_EQ(got.holding.grants[0].card, "GPU-a1") << list;
    EXPECT_EQ(request.names()[got.holding.grants[0].container]->name, "main") << list;
  }
}

TEST(hami_scheduler, a_list_of_another_length_than_the_pod_is_not_read) {
  const auto bound = annotated(pod("p", {container("proxy", {}, role::sidecar), asking("main", 1, 4000, 30)}, "a"),
                               {{allocated, ";;GPU-a1,NVIDIA,4000,30:;;"}});
  auto book = two_cards();
  EXPECT_EQ(held_by(bound, *book.view("a"), pod_request(bound, {})).origin, source::guessed);
}

TEST(hami_scheduler, an_init_container_on_another_card_is_booked_there) {
  const auto bound = annotated(pod("p", {asking("load", 1, 2000, 10, role::init), asking("main", 1, 4000, 30)}, "a"),
                               {{allocated, "GPU-a0,NVIDIA,2000,10:;GPU-a1,NVIDIA,4000,30:;"}});
  auto book = two_cards();
  const auto got = held_by(bound, *book.view("a"), pod_request(bound, {}));
  EXPECT_EQ(got.origin, source::confirmed);
  ASSERT_THAT(got.holding.grants, SizeIs(2));
  EXPECT_EQ(got.holding.grants[1].card, "GPU-a0");
  EXPECT_EQ(got.holding.grants[1].memory_mib, 2000);
}

/// One ends before the next starts: the largest counts, once.
TEST(hami_scheduler, init_containers_alone_are_booked_as_the_largest_of_them) {
  const auto bound = annotated(pod("p",
                                   {asking("fetch", 1, 6000, 10, role::init), asking("check", 1, 3000, 40, role::init),
                                    asking("load", 1, 2000, 10, role::init), container("main", {})},
                                   "a"),
                               {{allocated, "GPU-a0,NVIDIA,6000,10:;GPU-a0,NVIDIA,3000,40:;GPU-a0,NVIDIA,2000,10:;;"}});
  auto book = two_cards();
  const auto got = held_by(bound, *book.view("a"), pod_request(bound, {}));
  EXPECT_EQ(got.origin, source::confirmed);
  std::int64_t memory = 0, cores = 0;
  for (const auto& grant : got.holding.grants) memory += grant.memory_mib, cores += grant.cores;
  EXPECT_EQ(memory, 6000);
  EXPECT_EQ(cores, 40);
}

/// A sidecar runs next to the init container that comes after it: both count.
TEST(hami_scheduler, an_init_container_beside_a_sidecar_is_booked_beside_it) {
  const auto bound = annotated(pod("p",
                                   {asking("proxy", 1, 3000, 20, role::sidecar),
                                    asking("load", 1, 2000, 10, role::init), asking("main", 1, 1500, 5)},
                                   "a"),
                               {{allocated, "GPU-a0,NVIDIA,3000,20:;GPU-a0,NVIDIA,2000,10:;GPU-a0,NVIDIA,1500,5:;"}});
  auto book = two_cards();
  const auto got = held_by(bound, *book.view("a"), pod_request(bound, {}));
  EXPECT_EQ(got.origin, source::confirmed);
  std::int64_t memory = 0, cores = 0;
  for (const auto& grant : got.holding.grants) memory += grant.memory_mib, cores += grant.cores;
  EXPECT_EQ(memory, 5000);
  EXPECT_EQ(cores, 30);
}

TEST(gpu_manager_plugin, is_told_the_number_of_the_device_file) {
  auto node = node_of(vgpu_node("a", 2), nullptr, {});
  node.cards[0].uuid = "GPU-x", node.cards[0].minor = 1;  // card 0 is missing
  node.cards[1].uuid = "GPU-y", node.cards[1].minor = 2;
  quota::ledger book;
  book.put(node);
  const auto pod = share("p", 200, 0);
  const auto held = decided(book, pod);
  const auto written = annotations_of(held, pod_request(pod, {}), pod, node, second_ns);
  EXPECT_EQ(written.at("tencent.com/predicate-gpu-idx-0"), "1,2");
  auto bound = annotated(pod, {{"tencent.com/gpu-assigned", "true"}, {"tencent.com/predicate-gpu-idx-0", "1,2"}});
  bound.node_name = "a";
  const auto got = held_by(bound, *book.view("a"), pod_request(bound, {}));
  EXPECT_EQ(got.origin, source::confirmed);
  EXPECT_EQ(got.holding, held);
}

}  // namespace
}  // namespace extender_test
