#include "reconcilers/extender/inventory.hpp"

#include <gmock/gmock.h>

#include "api/engine_words.hpp"
#include "quota/limits.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using quota::mode;
using reconcilers::extender::node_of;
using testing::ElementsAre;
using testing::IsEmpty;

quota::node_inventory seen(const kube::node& node, const reconcilers::accelerator_policy* policy = nullptr) {
  return node_of(node, policy, is_fpga);
}

TEST(inventory, gpu_manager_offers_hundredths_of_cards_and_quarter_gibibytes) {
  const auto got = seen(vgpu_node("a", 4));
  EXPECT_EQ(got.serves.modes, static_cast<int>(mode::vgpu));
  ASSERT_EQ(got.cards.size(), 4u);
  EXPECT_EQ(got.cards[3].uuid, "a/3");
  EXPECT_EQ(got.cards[3].memory_mib, 16384);
}

TEST(inventory, of_two_figures_for_memory_the_smaller_counts) {
  const auto got = seen(node(
      "a",
      {{"quartermaster.io/module", "vgpu"}, {"nvidia.com/gpu.memory", "15360"}, {"nvidia.com/gpu.product", "Tesla-T4"}},
      {{"tencent.com/vcuda-core", 100}, {"tencent.com/vcuda-memory", 64}}));
  ASSERT_EQ(got.cards.size(), 1u);
  EXPECT_EQ(got.cards[0].memory_mib, 15360);
  EXPECT_EQ(got.cards[0].model, "Tesla-T4");
}

TEST(inventory, what_the_kubelet_does_not_offer_is_not_served) {
  const auto got = seen(node("a", {{"quartermaster.io/module", "vgpu"}, {"nvidia.com/gpu.count", "8"}},
                             {{"tencent.com/vcuda-core", 0}, {"nvidia.com/gpu", 8}}));
  EXPECT_EQ(got.serves.modes, 0);
  EXPECT_THAT(got.cards, IsEmpty());
}

TEST(inventory, without_our_label_the_offered_key_tells) {
  EXPECT_EQ(seen(node("a", {}, {{"nvidia.com/gpu", 8}})).serves.modes, static_cast<int>(mode::pgpu));
  EXPECT_EQ(
      seen(node("a", {{"nvidia.com/gpu.replicas", "10"}, {"nvidia.com/gpu.count", "2"}}, {{"nvidia.com/gpu", 20}}))
          .serves.modes,
      static_cast<int>(mode::share));
  EXPECT_EQ(seen(node("a", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}, {"nvidia.com/gpu", 0}}))
                .serves.modes,
            static_cast<int>(mode::memory_shares));
  EXPECT_EQ(seen(node("a", {}, {{"cpu.io/x", 3}})).serves.modes, 0);
}

TEST(inventory, S52_of_two_words_for_one_thing_the_one_that_is_offered_counts) {
  const auto hami = seen(node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}}));
  quota::demand needs;
  const quota::amount card[] = {{"nvidia.com/gpu", 1}}, slot[] = {{"nvidia.com/gpualloc", 1}};
  const quota::limits as_card[] = {card}, as_slot[] = {slot};
  EXPECT_TRUE(quota::read(as_card, hami.serves, needs));
  EXPECT_FALSE(quota::read(as_slot, hami.serves, needs));
}

TEST(inventory, replicas_are_the_most_sharers_of_a_card) {
  const auto got =
      seen(node("a", {{"quartermaster.io/module", "share"}, {"nvidia.com/gpu.count", "2"}}, {{"nvidia.com/gpu", 20}}));
  ASSERT_EQ(got.cards.size(), 2u);
  EXPECT_EQ(got.cards[0].max_sharers, 10);
}

/// A limit for a model is written as the label nvidia.com/gpu.product says it, on nodes of HAMi too. Its plugin's own
/// names are those of test/plugins/recorded/hami.json and of its tests.
TEST(inventory, S52_a_card_of_hami_has_the_model_of_the_label_and_hamis_type) {
  const std::map<std::string, std::string> products{{"NVIDIA-Tesla T4", "Tesla-T4"},
                                                    {"NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"},
                                                    {"NVIDIA-NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"},
                                                    {"NVIDIA", "NVIDIA"},
                                                    {"", ""}};
  for (const auto& [type, product] : products) {
    const json list = json::array({{{"id", "GPU-a"}, {"count", 10}, {"devmem", 15360}, {"type", type}}});
    const texts annotations{{"hami.io/node-nvidia-register", list.dump()}};
    const amounts slots{{"nvidia.com/gpualloc", 10}};
    const auto card = seen(node("a", {{"quartermaster.io/module", "hami"}}, slots, annotations)).cards.at(0);
    EXPECT_EQ(card.type, type);
    EXPECT_EQ(card.model, product);
    const auto named = seen(
        node("a", {{"quartermaster.io/module", "hami"}, {"gaia.tencent.com/gpu-model", "V100"}}, slots, annotations));
    EXPECT_EQ(named.cards.at(0).model, "V100") << "who labels nodes for gpu-quota-admission means its names";
  }
}

TEST(inventory, hami_registers_its_cards_in_two_forms) {
  const json list =
      json::array({{{"id", "GPU-a"},
                    {"count", 10},
                    {"devmem", 81920},
                    {"devcore", 100},
                    {"type", "NVIDIA-A100"},
                    {"numa", 1},
                    {"health", true}},
                   {{"id", "GPU-b"}, {"index", 1}, {"count", 10}, {"devmem", 81920}, {"type", "NVIDIA-A100"}}});
  const auto now = seen(node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}},
                             {{"hami.io/node-nvidia-register", list.dump()}}));
  const auto before = seen(node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}},
                                {{"hami.io/node-nvidia-register",
                                  "GPU-a,10,81920,100,NVIDIA-A100,1,true:GPU-b,10,81920,100,NVIDIA-A100,0,false:"}}));
  ASSERT_EQ(now.cards.size(), 2u);
  EXPECT_EQ(now.cards[0].uuid, "GPU-a");
  EXPECT_EQ(now.cards[0].numa, 1);
  EXPECT_TRUE(now.cards[0].healthy);
  EXPECT_FALSE(now.cards[1].healthy) << "zero values are left out";
  EXPECT_EQ(now.cards, before.cards);
  EXPECT_EQ(now.serves.default_memory_mib, 5000);
  EXPECT_THAT(seen(node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}},
                        {{"hami.io/node-nvidia-register", "[{\"id\":3}, 7, {}]"}}))
                  .cards,
              IsEmpty())
      << "names of our own would mean nothing to HAMi's plugin";
  EXPECT_THAT(seen(node("a", {{"quartermaster.io/module", "hami"}, {"nvidia.com/gpu.count", "2"}},
                        {{"nvidia.com/gpualloc", 20}}))
                  .cards,
              IsEmpty())
      << "its plugin has not said yet what it calls them";
  EXPECT_THAT(seen(node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}},
                        {{"hami.io/node-nvidia-register",
                          R"([{"id":"G-1","count":4294967297,"health":true},{"id":"G-1"},{"id":"G;2"}])"}}))
                  .cards,
              testing::SizeIs(1));
}

TEST(inventory, the_policy_and_its_node_sets_say_the_defaults_of_slots) {
  reconcilers::accelerator_policy policy;
  auto& hami = policy.modules["hami"];
  hami.settings["defaultMem"] = "3000";
  hami.node_sets.push_back({"small", {{"defaultMem", "1000"}}});
  const auto label = std::pair<std::string, std::string>("quartermaster.io/module", "hami");
  EXPECT_EQ(seen(node("a", {label}, {{"nvidia.com/gpualloc", 20}}), &policy).serves.default_memory_mib, 3000);
  EXPECT_EQ(seen(node("a", {label, {"quartermaster.io/plugin-set", "small"}}, {{"nvidia.com/gpualloc", 20}}), &policy)
                .serves.default_memory_mib,
            1000);
}

TEST(inventory, cards_can_be_cordoned_and_declared_keys_are_counted) {
  const auto got = seen(node("a", {{"ack.node.gpu.placement", "spread"}},
                             {{"nvidia.com/gpu", 3}, {"example.com/fpga", 2}, {"rdma/hca", 5}},
                             {{"quartermaster.io/cordon", "a/2 , a/0,b/1"}}));
  EXPECT_TRUE(got.cards[0].cordoned);
  EXPECT_FALSE(got.cards[1].cordoned);
  EXPECT_TRUE(got.cards[2].cordoned);
  EXPECT_THAT(got.counts, ElementsAre(quota::count{"example.com/fpga", 2}));
  EXPECT_EQ(got.placement, quota::policy::spread);
}

/// The links are ordered by the cards' numbers, and the report need not be.
TEST(inventory, S9_the_agents_links_are_between_the_cards_they_name) {
  const auto reported = *api::accelerator_node::decode(R"({"metadata":{"name":"a"},"status":{"cards":[
    {"uuid":"GPU-c","index":2,"numa":1,"links":["SYS","NV4 SYS","X"]},
    {"uuid":"GPU-a","index":0,"numa":0,"links":["X","PIX","SYS"]},
    {"uuid":"GPU-b","index":1,"numa":0,"links":["PIX","X","NV4 SYS"]}]}})");
  const auto three = node("a", {}, {{"nvidia.com/gpu", 3}});
  const auto got = node_of(three, nullptr, is_fpga, reported.cards);
  ASSERT_EQ(got.cards.size(), 3u);
  EXPECT_EQ(got.cards[0].uuid, "GPU-a");
  EXPECT_EQ(got.between(0, 1), (quota::link{quota::path::bridge, 0}));
  EXPECT_EQ(got.between(2, 1), (quota::link{quota::path::system, 4}));
  EXPECT_EQ(got.between(0, 2), (quota::link{quota::path::system, 0}));
  EXPECT_EQ(got.cards[2].numa, 1);

  auto partial = reported.cards;
  partial[1].links.clear();
  EXPECT_THAT(node_of(three, nullptr, is_fpga, partial).links, IsEmpty()) << "one card does not say its links";
}

/// Settings of the module (resourceName, resourceMem and so on).
TEST(inventory, S52_keys_of_hami_may_have_other_names) {
  using namespace reconcilers::extender;
  const auto policy = *reconcilers::accelerator_policy::decode(R"({"metadata":{"name":"default",
    "uid":"00000000-0000-4000-8000-000000000001","resourceVersion":"1"},"spec":{"modules":{"hami":{"enabled":true,
    "settings":{"resourceName":"example.com/vgpu","resourceMem":"example.com/vmem","resourceCores":"example.com/vcore"}}}}})");
  const auto renamed = renamed_keys(&policy);
  ASSERT_EQ(renamed.size(), 3u);
  EXPECT_EQ(renamed_keys(nullptr).size(), 0u);
  const declared_keys keys([](std::string_view key) { return key.starts_with("example.com/"); }, renamed);
  const auto made =
      node_of(node("a", {{"quartermaster.io/module", "hami"}}, {{"example.com/vgpu", 10}},
                   {{"hami.io/node-nvidia-register", "GPU-a0,10,16000,100,NVIDIA-T4,0,true,0,hami-core:"}}),
              &policy, keys);
  EXPECT_TRUE(made.serves.has(mode::slots));
  ASSERT_EQ(made.cards.size(), 1u);
  EXPECT_TRUE(made.counts.empty()) << "not a plain count";
  const auto left =
      node_of(node("a", {{"quartermaster.io/module", "hami"}}, {{"example.com/vgpu", 10}, {"nvidia.com/gpualloc", 0}},
                   {{"hami.io/node-nvidia-register", "GPU-a0,10,16000,100,NVIDIA-T4,0,true,0,hami-core:"}}),
              &policy, keys);
  EXPECT_TRUE(left.serves.has(mode::slots)) << "the kubelet keeps the earlier key with 0";
  const auto workload =
      pod("p", {container("main", {{"example.com/vgpu", 1}, {"example.com/vmem", 3000}, {"example.com/vcore", 20}})});
  ASSERT_TRUE(asks(workload, keys));
  const pod_request request(workload, keys);
  quota::demand needs;
  const auto no = quota::read(request.containers(), made.serves, needs);
  ASSERT_FALSE(no) << api::words_of(*no, text::language::en);
  ASSERT_EQ(needs.needs().size(), 1u);
  EXPECT_EQ(needs.needs()[0].memory_mib, 3000);
  EXPECT_EQ(needs.needs()[0].cores, 20);
  EXPECT_TRUE(needs.counts().empty());
}

// What keeps pods apart stands in their annotation when they are bound, before their card has been asked.
TEST(inventory, S64_memory_is_held_by_the_driver_where_our_plugin_lends_and_all_cards_have_its_limits) {
  const auto shares = node("a", {{"quartermaster.io/module", "mps"}}, {{"nvidia.com/mps-core", 200}});
  const auto held_by = [](const kube::node& node, std::vector<api::reported_card> cards) {
    return quota::text_of(quota::isolation_of(node_of(node, nullptr, is_fpga, cards).serves));
  };
  const auto card = [](const char* uuid) {
    api::reported_card out;
    out.uuid = uuid;
    out.memory_mib = 16384;
    return out;
  };
  auto limited = card("GPU-1"), other = card("GPU-2"), cut = card("GPU-3");
  limited.is_limited = true;
  cut.mig = true;
  EXPECT_EQ(held_by(shares, {limited}), "driver");
  EXPECT_EQ(held_by(shares, {limited, cut}), "driver") << "of a cut card no share is given";
  EXPECT_EQ(held_by(shares, {limited, other}), "mps");
  EXPECT_EQ(held_by(shares, {cut}), "mps");
  EXPECT_EQ(held_by(shares, {}), "mps");
  EXPECT_EQ(held_by(vgpu_node("a", 4), {limited}), "soft") << "GPU-Manager's plugin sets no such limit";
}

}  // namespace
}  // namespace extender_test
