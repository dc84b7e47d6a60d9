#include "reconcilers/usage/allocation_metrics.hpp"

#include <gmock/gmock.h>

#include "test/reconcilers/usage/rig.hpp"

namespace usage_test {
namespace {

using testing::HasSubstr, testing::Not;

/// Two models: gpu-1 has one card of 16 GiB, and agents report the two cards of t4-1, of which one has less memory.
struct allocation_metrics : testing::Test {
  world around;
  replica only{around, {}, {ready(vgpu_node("gpu-1", 1)), ready(vgpu_node("t4-1", 2))}};
  reconcilers::chargeback_spec prices{"EUR", {}, {{"Tesla-*", 2'500'000}, {"nvidia.com/mig-*", 300'000}}};

  allocation_metrics() {
    only.known.cards.put(extender_test::reported(
        "t4-1", {{{"uuid", "GPU-1"}, {"index", 0}, {"model", "Tesla-T4"}, {"memoryMiB", 16384}, {"healthy", true}},
                 {{"uuid", "GPU-2"}, {"index", 1}, {"model", "Tesla-T4"}, {"memoryMiB", 15360}, {"healthy", true}}}));
  }
  std::string page(bool is_leader = true, bool is_priced = true) {
    controller::metric_text text;
    write_allocation_metrics(
        is_leader, only.account, only.known.pods, [](std::string_view ns) { return "org-of-" + std::string(ns); },
        is_priced ? &prices : nullptr, text);
    return text.take();
  }
};

TEST_F(allocation_metrics, pods_of_one_owner_are_one_group) {
  auto first = bound("web-1", 30, around.now), second = bound("web-2", 20, around.now);
  for (auto* pod : {&first, &second}) {
    pod->owners = {{"ReplicaSet", "web", {}, true}};
    only.known.pods.put(*pod);
  }
  const std::string group =
      R"({namespace="lab",owner="ReplicaSet/web",mode="vGPU",model="",organization="org-of-lab"} )";
  const auto text = page();
  EXPECT_THAT(text, HasSubstr("quartermaster_allocated_cards" + group + "2\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_allocated_cores" + group + "50\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_allocated_memory_bytes" + group + "2147483648\n"));
  only.known.pods.put(finished(first, around.now));
  EXPECT_THAT(page(), HasSubstr("quartermaster_allocated_cores" + group + "20\n"));
}

TEST_F(allocation_metrics, each_model_that_has_a_price_shows_it_before_anyone_holds_a_card) {
  const auto text = page();
  EXPECT_THAT(text, HasSubstr(R"(quartermaster_card_hour_price{model="Tesla-T4",currency="EUR"} 2.5)"
                              "\n"));
  EXPECT_THAT(text, Not(HasSubstr(R"(quartermaster_card_hour_price{model="",)"))) << "no price fits an unknown model";
  EXPECT_THAT(text, HasSubstr("quartermaster_model_memory_bytes{model=\"Tesla-T4\"} " +
                              std::to_string((16384 + 15360) / 2 * (1LL << 20)) + "\n"));
}

TEST_F(allocation_metrics, without_prices_or_the_lease_there_are_the_families_alone) {
  EXPECT_THAT(page(true, false), Not(HasSubstr("quartermaster_card_hour_price{")));
  const auto text = page(false);
  EXPECT_THAT(text, HasSubstr("# TYPE quartermaster_card_hour_price gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("{")));
}

TEST_F(allocation_metrics, a_key_that_is_only_counted_has_a_price_and_no_size) {
  only.known.declare({"nvidia.com/mig-1g.5gb"});
  only.known.nodes.put(ready(extender_test::node("mig-1", {}, {{"nvidia.com/mig-1g.5gb", 7}})));
  const auto text = page();
  EXPECT_THAT(text, HasSubstr(R"(quartermaster_card_hour_price{model="nvidia.com/mig-1g.5gb",currency="EUR"} 0.3)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(quartermaster_model_memory_bytes{model="nvidia.com/mig-1g.5gb"})")));
}

TEST_F(allocation_metrics, models_beyond_the_bound_have_neither) {
  extender_test::amounts keys;
  auto names = json::array();
  for (std::size_t i = 0; i < max_priced_models + 5; ++i) {
    keys.emplace_back("nvidia.com/mig-" + std::to_string(i) + "g", 1);
    names.push_back(keys.back().first);
  }
  only.known.declare(names);
  only.known.nodes.put(ready(extender_test::node("odd", {}, keys)));
  const auto text = page();
  std::size_t series = 0;
  for (auto found = text.find("quartermaster_card_hour_price{"); found != text.npos;
       found = text.find("quartermaster_card_hour_price{", found + 1))
    ++series;
  EXPECT_LE(series, max_priced_models);
  EXPECT_GE(series, max_priced_models - 2);
}

}  // namespace
}  // namespace usage_test
