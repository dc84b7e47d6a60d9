#include "reconcilers/nodes/restore.hpp"

#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/nodes/gpu_1.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;

class restoring : public testing::Test, public fake_cluster {
 public:
  controller::store<kube::node> nodes;
  controller::store<api::accelerator_node> reports;
  card_restore subject{nodes, reports, client, recorder};

  restoring() {
    sync(nodes, reports);
    server.watch = [this](const std::string& path, const json& now, const json&) {
      if (path == node_path) {
        kube::node node;
        read_metadata(now, node);
        nodes.put(node);
      } else {
        reports.put(*api::accelerator_node::decode(now.dump()));
      }
    };
    server.put(node_path, {{"metadata", {{"name", "gpu-1"}}}});
    report("XID 48");
  }
  /// Two cards; the first is in order.
  void report(const std::string& health) {
    auto object =
        server.objects.contains(object_path) ? server.objects.at(object_path) : json{{"metadata", {{"name", "gpu-1"}}}};
    object["status"]["cards"] = {{{"uuid", "GPU-a"}, {"health", "Healthy"}}, {{"uuid", "GPU-b"}, {"health", health}}};
    server.put(object_path, object);
  }
  void ask(const std::string& cards) {
    auto node = server.objects.at(node_path);
    node["metadata"]["annotations"]["quartermaster.io/restore"] = cards;
    server.put(node_path, node);
  }
  void turn() {
    const auto done = run(subject.reconcile({{}, "gpu-1"}));
    EXPECT_TRUE(done) << done.error().message;
  }
  json annotation() const {
    return server.objects.at(node_path).value("/metadata/annotations/quartermaster.io~1restore"_json_pointer, json());
  }
  json asked() const { return server.objects.at(object_path)["status"].value("restore", json()); }
};

TEST_F(restoring, goes_on_to_the_agent_and_is_over_when_the_agent_agrees) {
  ask("GPU-b");
  turn();
  EXPECT_EQ(asked(), json({"GPU-b"}));
  EXPECT_EQ(annotation(), "GPU-b") << "until the agent has answered";
  server.forget();
  turn();
  EXPECT_THAT(server.writes(), IsEmpty()) << "there is nothing to do meanwhile";
  report("Healthy");
  turn();
  EXPECT_EQ(asked(), json());
  EXPECT_EQ(annotation(), json());
  EXPECT_THAT(recorder.events, IsEmpty()) << "the agent reports its card itself";
  report("XID 48");
  turn();
  EXPECT_EQ(asked(), json()) << "a later XID counts again";
}

TEST_F(restoring, refuses_what_no_one_can_declare_over) {
  report("Lost");
  ask("GPU-b, GPU-c,GPU-a");
  turn();
  EXPECT_EQ(annotation(), json());
  EXPECT_EQ(asked(), json());
  ASSERT_EQ(recorder.events.size(), 2U);
  EXPECT_THAT(recorder.events[0].note, words::has_in_order({"card GPU-b cannot be restored: ", "Lost", "10 s"}));
  EXPECT_THAT(recorder.events[1].note, words::has_in_order({"card GPU-c cannot be restored: ", "GPU-a, GPU-b"}));
  report("MpsFailed");
  ask("GPU-b");
  turn();
  ASSERT_EQ(recorder.events.size(), 3U);
  EXPECT_THAT(recorder.events[2].note, words::has_in_order({"MpsFailed", "the last program"}));
}

TEST_F(restoring, keeps_the_names_that_wait_and_takes_the_others_out) {
  ask("GPU-x,GPU-b");
  turn();
  EXPECT_EQ(annotation(), "GPU-b");
  EXPECT_EQ(asked(), json({"GPU-b"}));
  ASSERT_EQ(recorder.events.size(), 1U);
}

TEST_F(restoring, without_an_agent_says_so) {
  const auto step = next_restore("GPU-b", nullptr);
  EXPECT_THAT(step.wanted, IsEmpty());
  EXPECT_THAT(step.refusals, ElementsAre(HasSubstr("no agent reports the cards")));
}

TEST_F(restoring, taken_back_by_the_person_is_taken_back_from_the_agent) {
  ask("GPU-b");
  turn();
  auto node = server.objects.at(node_path);
  node["metadata"].erase("annotations");
  server.put(node_path, node);
  turn();
  EXPECT_EQ(asked(), json());
}

TEST_F(restoring, looks_at_a_node_only_when_something_is_asked) {
  const auto* node = nodes.find({{}, "gpu-1"});
  const auto* object = reports.find({{}, "gpu-1"});
  EXPECT_THAT(subject.affected_by(nullptr, node), IsEmpty());
  EXPECT_THAT(subject.affected_by(nullptr, object), IsEmpty());
  const auto before = *node;
  ask("GPU-b");
  EXPECT_EQ(subject.affected_by(&before, nodes.find({{}, "gpu-1"})).size(), 1U);
  EXPECT_EQ(subject.affected_by(nullptr, reports.find({{}, "gpu-1"})).size(), 1U);
}

// Someone who may annotate a node has 256 KiB for it: neither the operator nor its events may drown.
TEST(restore, looks_at_no_more_names_than_a_node_has_cards) {
  std::string names;
  for (int i = 0; i < 40'000; ++i) names += std::to_string(i) + ",";
  EXPECT_EQ(next_restore(names, nullptr).refusals.size(), 64U);
}

}  // namespace
}  // namespace reconcilers
