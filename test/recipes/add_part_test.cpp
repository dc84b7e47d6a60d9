// The code of the recipes "How to add a reconciler" and "How to add a gauge read off the stores" in
// docs/architecture.md, as it stands there. CMake takes it out of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/parts.hpp"
#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "test/controller/rig.hpp"

namespace {

#include "gauge.inc"
#include "reconciler.inc"

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct recipe : controller_test::rig {
  controller::health health{metrics};
  controller::store<kube::node> nodes;
  controller::runner_metrics running{metrics};
  controller::manager manager{loop, health, metrics};
  controller::parts parts{loop, manager, metrics, running};
  label_part part{nodes};
  bool holds_lease = false;
  bool is_over = false;

  recipe() {
    manager.set_leadership(
        {[]() -> kube::task<void> { co_return kube::result<void>(); }, [this] { return holds_lease; }, {}});
    part.join(parts);
    add_node_gauge(parts, nodes);
    loop.spawn("manager", [](recipe& self) -> boost::asio::awaitable<void> {
      const auto outcome = co_await self.manager.run();
      EXPECT_TRUE(outcome);
      self.is_over = true;
    }(*this));
  }
  void lead() {
    holds_lease = true;
    ASSERT_TRUE(turn([&] { return manager.leading(); }));
  }
  void stop() {
    manager.stop();
    ASSERT_TRUE(turn([&] { return is_over; }));
  }
  void put(const std::string& name, const std::string& label) {
    kube::node node;
    node.key.name = name;
    if (!label.empty()) node.labels = kube::packed_map::of({{label, "a"}});
    nodes.put(node);
  }
};

TEST_F(recipe, a_reconciler_follows_its_store_while_it_leads) {
  put("found-at-the-start", "");
  settle();
  EXPECT_THAT(part.unlabeled.names, IsEmpty()) << "nothing is reconciled before we lead";
  lead();
  ASSERT_TRUE(turn([&] { return !part.unlabeled.names.empty(); }));
  put("later", "");
  put("labeled", "example.com/team");
  ASSERT_TRUE(turn([&] { return part.unlabeled.names.size() == 2; }));
  EXPECT_THAT(part.unlabeled.names, ElementsAre("found-at-the-start", "later"));
  put("later", "example.com/team");
  ASSERT_TRUE(turn([&] { return part.unlabeled.names.size() == 1; }));
  EXPECT_EQ(metric("quartermaster_reconcile_total{reconciler=\"unlabeled_nodes\",result=\"success\"}"), 4);
  stop();
}

TEST_F(recipe, a_gauge_has_samples_of_the_leader_alone) {
  put("a", "");
  put("b", "");
  EXPECT_THAT(metrics.text(), HasSubstr("# TYPE example_nodes gauge"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("\nexample_nodes ")));
  lead();
  EXPECT_EQ(metric("example_nodes"), 2);
  stop();
}

}  // namespace
