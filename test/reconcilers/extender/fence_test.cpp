// When does a new leader know what earlier leaders bound? Not while its cache is old, and soon where no pod changes.

#include "reconcilers/extender/fence.hpp"

#include <gmock/gmock.h>

#include <protozero/pbf_writer.hpp>

#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using reconcilers::recording_transport;

struct new_leader : rig {
  recording_transport transport;
  kube::client api{transport};
  kube::pod self = pod("operator", {}, "master");
  fence subject{{loop, api, known.pods, [](const kube::pod&) { return true; }, "term-1", self.key}};
  std::vector<kube::pod> bound;  ///< what the list of bound pods has
  int seals = 0, looks = 0;
  std::uint64_t sealed_version = 60;
  controller::spawned catching;

  new_leader() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      if (is_seal(request)) {
        ++seals;
        return recording_transport::answered(200,
                                             {{"metadata", {{"resourceVersion", std::to_string(sealed_version)}}}});
      }
      if (request.target.find("spec.nodeName%21%3D") != std::string::npos) return page_of_bound();
      return recording_transport::answered(200, {{"metadata", {{"resourceVersion", "50"}}}, {"items", json::array()}});
    };
    known.pods.reach(40);
  }
  /// A PartialObjectMetadataList in protobuf.
  kube::response page_of_bound() {
    ++looks;
    std::string list;
    protozero::pbf_writer writer(list);
    std::string meta;
    protozero::pbf_writer(meta).add_string(2, "50");
    writer.add_message(1, meta);
    for (const auto& pod : bound) {
      std::string metadata, item;
      protozero::pbf_writer fields(metadata);
      fields.add_string(1, pod.key.name);
      fields.add_string(3, pod.key.ns);
      fields.add_string(5, pod.id.to_string());
      fields.add_string(6, std::to_string(pod.resource_version));
      protozero::pbf_writer(item).add_message(1, metadata);
      writer.add_message(2, item);
    }
    kube::response out;
    out.status = 200;
    out.body = list;
    return out;
  }
  void lead() {
    kube_test::run(loop.context(), subject.close());
    catching = loop.spawn("catch_up", subject.catch_up());
  }
  ~new_leader() override {
    catching.cancel();
    turn([&] { return !catching.running(); });
  }
};

TEST_F(new_leader, in_a_quiet_cluster_writes_on_its_own_pod_and_waits_for_its_watch) {
  known.pods.put(self);
  lead();
  ASSERT_TRUE(turn([&] { return seals == 1; }));
  EXPECT_THAT(transport.sent.back().target, testing::ContainsRegex("/pods/operator([?]|$)"));
  known.pods.reach(59);
  EXPECT_FALSE(subject.closed()) << "the watch has not shown our write";
  known.pods.reach(60);
  EXPECT_TRUE(subject.closed());
  ASSERT_TRUE(turn([&] { return !catching.running(); }));
  EXPECT_EQ(looks, 0) << "nothing is listed";
}

TEST_F(new_leader, a_bookmark_as_young_as_the_list_is_enough) {
  bound = {share("behind", 1, 1, "a")};  // not in the cache
  lead();
  ASSERT_TRUE(turn([&] { return looks > 0; }));
  EXPECT_FALSE(subject.closed());
  known.pods.reach(50);
  EXPECT_TRUE(subject.closed());
}

TEST_F(new_leader, F27_outside_a_cluster_is_done_where_the_cache_has_every_bound_pod) {
  bound = {share("one", 1, 1, "a"), share("two", 1, 1, "a")};
  for (const auto& pod : bound) known.pods.put(pod);
  lead();
  ASSERT_TRUE(turn([&] { return subject.closed(); })) << "although no pod changes";
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(seals, 0) << "we run in no pod";
}

TEST_F(new_leader, F27_an_old_cache_is_not_taken_as_complete) {
  const auto waits = share("p", 60, 8);
  known.pods.put(waits);
  auto taken = waits;
  taken.node_name = "a";
  taken.resource_version = next_version();
  bound = {taken};
  lead();
  ASSERT_TRUE(turn([&] { return looks >= 2; })) << "it looks again";
  EXPECT_FALSE(subject.closed()) << "the cache has the pod without its node";
  auto other = taken;
  other.id = kube::uid::parse("another pod of this name");
  known.pods.put(other);
  const auto before = looks;
  ASSERT_TRUE(turn([&] { return looks > before; }));
  EXPECT_FALSE(subject.closed()) << "another pod of the same name";
  known.pods.erase(other.key);
  known.pods.put(taken);
  EXPECT_TRUE(turn([&] { return subject.closed(); }));
}

TEST_F(new_leader, F27_a_list_that_fails_closes_nothing) {
  transport.answer = [this, inner = transport.answer](const kube::request& request) -> kube::result<kube::response> {
    if (request.target.find("spec.nodeName%21%3D") == std::string::npos) return inner(request);
    ++looks;
    return recording_transport::refused(500, "InternalError");
  };
  lead();
  ASSERT_TRUE(turn([&] { return looks >= 2; }));
  EXPECT_FALSE(subject.closed());
  known.pods.reach(50);
  EXPECT_TRUE(subject.closed());
}

}  // namespace
}  // namespace extender_test
