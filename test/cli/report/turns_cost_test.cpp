// Pods that take turns on a card (mode share) have no amounts of their own. What a query makes of the operator's
// metrics is what the bill says of them: both are made of one holding.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/chargeback/chargeback.hpp"
#include "reconcilers/usage/allocation_metrics.hpp"
#include "test/reconcilers/usage/rig.hpp"

namespace cli {
namespace {

constexpr std::int64_t card_hour = 2'500'000, card_mib = 15'360, hours = 7;

/// Two cards, of each of which the plugin offers so many turns.
kube::node node_of_turns(std::int64_t turns) {
  return usage_test::ready(extender_test::node("ts-1",
                                               {{"quartermaster.io/module", "share"},
                                                {"nvidia.com/gpu.count", "2"},
                                                {"nvidia.com/gpu.product", "Tesla-T4"},
                                                {"nvidia.com/gpu.memory", std::to_string(card_mib)}},
                                               {{"nvidia.com/gpu.shared", 2 * turns}}));
}

kube::pod pod_of_turns(const std::string& name, std::int64_t turns, quota::seconds time) {
  auto out = extender_test::pod(name, {extender_test::container("main", {{"nvidia.com/gpu.shared", turns}})}, "ts-1");
  out.scheduled_at = time;
  out.owners = {{"ReplicaSet", "of-" + name, {}, true}};
  return out;
}

/// The sum of a family's samples that have this part in their labels.
double sum_in(const std::string& page, const std::string& family, const std::string& label) {
  double out = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(family + "{") && line.contains(label)) out += std::stod(line.substr(line.rfind(' ')));
  return out;
}

struct turns_cost : testing::TestWithParam<std::int64_t> {
  usage_test::world around;
  reconcilers::chargeback_spec prices{"EUR", "", {{"Tesla-*", card_hour}}};

  /// By the queries of the dashboards: the larger part of a card, times its price.
  double sampled(const usage_test::replica& seen) const {
    controller::metric_text text;
    reconcilers::usage::write_allocation_metrics(
        true, seen.account, seen.known.pods, [](std::string_view) { return std::string(); }, &prices, text);
    const auto page = text.take();
    const auto cores = sum_in(page, "quartermaster_allocated_cores", "mode=\"share\"") / 100;
    const auto memory = sum_in(page, "quartermaster_allocated_memory_bytes", "mode=\"share\"") /
                        sum_in(page, "quartermaster_model_memory_bytes", "model=\"Tesla-T4\"");
    EXPECT_GT(cores, 0) << page;
    return std::max(cores, memory) * sum_in(page, "quartermaster_card_hour_price", "model=\"Tesla-T4\"");
  }
  chargeback billed() const {
    std::vector<api::accelerator_usage> objects;
    for (const auto& [path, object] : around.server.objects)
      if (path.starts_with(usage_test::collection)) objects.push_back(*api::accelerator_usage::decode(object.dump()));
    return chargeback_of("2026-11", objects, prices, "lab").value();
  }
};

TEST_P(turns_cost, by_the_metrics_is_that_of_the_bill) {
  usage_test::replica only(around, {}, {node_of_turns(GetParam())});
  ASSERT_TRUE(only.resume());
  only.known.pods.put(pod_of_turns("one", 1, around.now));
  only.known.pods.put(pod_of_turns("two", 1, around.now));
  const auto per_hour = sampled(only);
  around.now += hours * 3600;
  ASSERT_TRUE(only.checkpoint());
  const auto bill = billed();
  ASSERT_EQ(bill.rows.size(), 1u);
  EXPECT_EQ(bill.rows.front().key.mode, "share");
  EXPECT_TRUE(bill.discrepancy.empty());
  EXPECT_NEAR(static_cast<double>(bill.sum.millionths) / 1e6, per_hour * hours, 1e-6);
  // Two turns of so many are that part of a card, but for a MiB that does not divide.
  const auto part = 2.0 / static_cast<double>(GetParam());
  EXPECT_NEAR(per_hour, part * card_hour / 1e6, 2.0 * card_hour / 1e6 / card_mib);
}

INSTANTIATE_TEST_SUITE_P(of_a_card, turns_cost, testing::Values(2, 3, 7, 10, 48));

}  // namespace
}  // namespace cli
