// Which cards a pod's annotations and labels let it have.
#include "quota/selector.hpp"

#include <gtest/gtest.h>

#include <map>

#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "test/facts_in.hpp"
#include "test/quota/facts.hpp"

namespace quota {
namespace {

using pairs = std::map<std::string, std::string>;

const card v100{.uuid = "GPU-1", .model = "Tesla V100-SXM2-16GB", .memory_mib = 16160};
const card a100{.uuid = "GPU-2", .model = "NVIDIA A100-PCIE-40GB", .memory_mib = 40536};

std::string allowed(const pairs& pairs) {
  const auto wanted = selector::of(pairs);
  node_inventory node{.name = "n", .serves = {}, .cards = {v100, a100}, .counts = {}, .placement = {}};
  node.pool = "red";
  std::string out;
  for (const card& card : node.cards) out += wanted.allows(node, card) ? card.uuid.substr(4) : "";
  EXPECT_EQ(wanted.problem(), "");
  return out;
}

TEST(selector, S50_types_are_parts_of_the_model_whatever_the_case_and_any_of_the_list_will_do) {
  EXPECT_EQ(allowed({}), "12");
  EXPECT_EQ(allowed({{"nvidia.com/use-gputype", "a100"}}), "2");
  EXPECT_EQ(allowed({{"nvidia.com/use-gputype", "H100, v100 ,T4"}}), "1");
  EXPECT_EQ(allowed({{"nvidia.com/use-gputype", "NVIDIA"}, {"nvidia.com/nouse-gputype", "pcie"}}), "");
  EXPECT_EQ(allowed({{"nvidia.com/nouse-gputype", "Tesla"}}), "2");
  EXPECT_EQ(allowed({{"nvidia.com/nouse-gputype", " , "}}), "12");
}

TEST(selector, S50_annotations_of_hami_mean_its_name_of_the_model_and_models_mean_either) {
  const card t4{.uuid = "GPU-3", .model = "Tesla-T4", .type = "NVIDIA-Tesla T4", .memory_mib = 15360};
  const auto allows = [&](const char* key, const char* value) { return selector::of(pairs{{key, value}}).allows(t4); };
  EXPECT_TRUE(allows("nvidia.com/use-gputype", "NVIDIA-Tesla T4")) << "the model alone has no NVIDIA in it";
  EXPECT_FALSE(allows("nvidia.com/use-gputype", "A100"));
  EXPECT_FALSE(allows("nvidia.com/nouse-gputype", "NVIDIA"));
  EXPECT_TRUE(allows("aliyun.accelerator/nvidia_name", "Tesla-T4"));
  EXPECT_TRUE(allows("gaia.tencent.com/gpu-model", "Tesla T4"));
}

TEST(selector, S50_uuids_are_whole_and_both_lists_hold) {
  EXPECT_EQ(allowed({{"nvidia.com/use-gpuuuid", "GPU-1,GPU-2"}, {"nvidia.com/nouse-gpuuuid", "GPU-2"}}), "1");
  EXPECT_EQ(allowed({{"nvidia.com/use-gpuuuid", "GPU"}}), "");
}

TEST(selector, S60_labels_of_ack_and_of_models_and_pools_choose_too) {
  EXPECT_EQ(allowed({{"aliyun.accelerator/nvidia_name", "Tesla-V100-SXM2-16GB"}}), "1");
  EXPECT_EQ(allowed({{"aliyun.accelerator/nvidia_mem", "40960MiB"}}), "2");
  EXPECT_EQ(allowed({{"aliyun.accelerator/nvidia_mem", "32768MiB"}}), "");
  EXPECT_EQ(allowed({{"aliyun.accelerator/nvidia_count", "2"}}), "12");
  EXPECT_EQ(allowed({{"aliyun.accelerator/nvidia_count", "8"}}), "");
  EXPECT_EQ(allowed({{"gaia.tencent.com/gpu-model", "V100"}, {"tkestack.io/gpu-pool", "blue,red"}}), "1");
  EXPECT_EQ(allowed({{"gaia.tencent.com/gpu-pool", "blue"}}), "");
}

TEST(selector, the_policy_of_the_pod_counts_on_nodes_of_hami) {
  const auto wanted = selector::of(pairs{{"hami.io/gpu-scheduler-policy", "spread"}});
  EXPECT_TRUE(wanted.nothing());
  node_inventory node;
  EXPECT_EQ(wanted.on(node, policy::binpack), policy::binpack);
  node.serves.modes = static_cast<std::uint16_t>(mode::slots);
  node.placement = policy::binpack;
  EXPECT_EQ(wanted.on(node, policy::binpack), policy::spread);
}

TEST(selector, what_is_not_understood_is_said_in_one_line_and_passed_over) {
  selector selector;
  EXPECT_FALSE(selector.read("hami.io/gpu-scheduler-policy", "tightest"));
  EXPECT_THAT(selector.problem(),
              words::has_in_order({"hami.io/gpu-scheduler-policy is tightest; ", "binpack, spread or topology-aware"}));
  EXPECT_FALSE(selector.read("aliyun.accelerator/nvidia_mem", "16Gi"));
  EXPECT_FALSE(selector.read("app", "web"));
  EXPECT_TRUE(selector.nothing());
}

TEST(selector, placement_filter_and_explain_go_by_it) {
  ledger book;
  node_inventory node{.name = "n", .serves = {}, .cards = {v100, a100}, .counts = {}, .placement = {}};
  node.serves.modes = static_cast<std::uint16_t>(mode::slots);
  book.put(node);
  const std::vector<amount> amounts{{"nvidia.com/gpumem", 4096}};
  const std::vector<limits> pod{amounts};
  const auto a = selector::of(pairs{{"nvidia.com/use-gputype", "A100"}});
  const auto h = selector::of(pairs{{"nvidia.com/use-gputype", "H100"}});
  const std::vector<node_view> nodes{*book.view("n")};
  demand demand;
  placement placement;
  ASSERT_FALSE(read(pod, node.serves, demand));
  ASSERT_TRUE(place(demand, nodes[0], {.only = &a}, placement).fits());
  EXPECT_EQ(placement.all()[0].card, 1);
  EXPECT_EQ(facts_of(place(demand, nodes[0], {.only = &h}, placement)), "not_selected 1 > 0");
  std::vector<shortfall> out(1);
  filter(pod, nodes, out, &h);
  EXPECT_EQ(out[0].code, reason::not_selected);
  const auto nowhere = explain(pod, nodes, &h);
  EXPECT_THAT(nowhere.causes, testing::ElementsAre(cause{reason::not_selected, 0, {}, 1}));
  EXPECT_EQ(nowhere.nearest, 0U);
  EXPECT_EQ(nowhere.smallest(), nullptr);
  ASSERT_EQ(book.assume("a", {.node = "n", .grants = {{.memory_mib = 40000, .card = "GPU-2"}}, .counts = {}}, 1),
            booked::done);
  const std::vector<node_view> fuller{*book.view("n")};
  const auto full = explain(pod, fuller, &a);
  EXPECT_THAT(full.causes, testing::ElementsAre(cause{reason::not_selected, 0, {}, 1}));
  EXPECT_EQ(full.nearest, 0U);
  EXPECT_EQ(facts_of(full.of_pod.value(), fuller), "lower 0 nvidia.com/gpumem 4096 -> 536, n GPU-2");
  EXPECT_EQ(facts_of(full.of_node.value(), fuller), "free_memory 3560, n GPU-2");
}

/// NVIDIA's plugin, and ACK's for whole cards, pick any free card of the node.
TEST(selector, a_wish_holds_where_the_plugin_picks_only_if_it_can_pick_no_other) {
  const auto two = selector::of(pairs{{"nvidia.com/use-gpuuuid", "GPU-1,GPU-2"}});
  const auto single = selector::of(pairs{{"nvidia.com/use-gpuuuid", "GPU-2"}});
  const auto none = selector::of(pairs{{"nvidia.com/use-gpuuuid", "GPU-9"}});
  const auto judge = [&](mode mode, const char* key, const selector& only, bool first_is_healthy = true) {
    node_inventory node{.name = "n", .serves = {}, .cards = {v100, a100}, .counts = {}, .placement = {}};
    node.serves.modes = static_cast<std::uint16_t>(mode);
    node.cards[0].healthy = first_is_healthy;
    ledger book;
    book.put(node);
    const std::vector<amount> amounts{{key, 1}};
    const std::vector<limits> pod{amounts};
    demand demand;
    EXPECT_FALSE(read(pod, node.serves, demand));
    placement placement;
    const auto placed = place(demand, *book.view("n"), {.only = &only}, placement).code;
    EXPECT_EQ(fit(demand, *book.view("n"), {.only = &only}).code, placed);
    return placed;
  };
  EXPECT_EQ(judge(mode::pgpu, "nvidia.com/gpu", two), reason::fits);
  EXPECT_EQ(judge(mode::pgpu, "nvidia.com/gpu", single), reason::not_steered);
  EXPECT_EQ(judge(mode::share, "nvidia.com/gpu", single), reason::not_steered);
  EXPECT_EQ(judge(mode::topology, "aliyun.com/gpu", single), reason::not_steered);
  EXPECT_EQ(judge(mode::slots, "nvidia.com/gpu", single), reason::fits) << "HAMi's plugin gets the card";
  EXPECT_EQ(judge(mode::pgpu, "nvidia.com/gpu", single, false), reason::fits) << "the other is given to no one";
  EXPECT_EQ(judge(mode::pgpu, "nvidia.com/gpu", none), reason::not_selected);
}

}  // namespace
}  // namespace quota
