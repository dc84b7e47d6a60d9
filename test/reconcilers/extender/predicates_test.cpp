#include "reconcilers/extender/predicates.hpp"

#include <gmock/gmock.h>

#include "test/facts_in.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using reconcilers::recording_transport;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct predicates_test : rig {
  recording_transport transport;
  kube::client api{transport};
  fence earlier{{loop, api, known.pods, [this](const kube::pod& pod) { return asks(pod, book.keys()); }, "me", {}}};
  bool leading = true;
  int waiting = 0;
  predicates subject{
      {api, known.pods, book, earlier, [this] { return leading; }, [this](const kube::pod&) { ++waiting; }}, metrics};
  std::map<std::string, json> pods;  ///< GET by name
  bool refuse = false;

  explicit predicates_test(bool young = true) {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      const auto path = request.target.substr(0, request.target.find('?'));
      if (path == "/api/v1/pods")
        return recording_transport::answered(200,
                                             {{"metadata", {{"resourceVersion", "50"}}}, {"items", json::array()}});
      if (request.verb == kube::method::get) {
        const auto match = pods.find(path.substr(path.rfind('/') + 1));
        return match == pods.end() ? recording_transport::refused(404, "NotFound")
                                   : recording_transport::answered(200, match->second);
      }
      if (refuse) return recording_transport::refused(500, "InternalError");
      return recording_transport::answered(200, json::object());
    };
    known.nodes.put(vgpu_node("a", 1));
    known.nodes.put(vgpu_node("b", 1));
    kube_test::run(loop.context(), earlier.close());
    if (young) known.pods.reach(50);
    transport.sent.clear();
  }
  json ask(const kube::pod& pod, const json& names, int status = 200) {
    const auto got = kube_test::run(
        loop.context(), subject.decide(json{{"Pod", document(pod)}, {"Nodes", nullptr}, {"NodeNames", names}}.dump()));
    EXPECT_EQ(got.status, status) << got.body;
    return got.status == 200 ? json::parse(got.body) : json(got.body);
  }
  json written(std::size_t index = 0) const {
    return json::parse(transport.sent.at(index).body)["metadata"]["annotations"];
  }
};

TEST_F(predicates_test, the_decision_is_made_and_written_before_it_is_answered) {
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const auto got = ask(pod, {"a", "b"});
  EXPECT_THAT(got["NodeNames"], SizeIs(1));
  EXPECT_THAT(got["FailedNodes"], SizeIs(1));
  ASSERT_THAT(transport.sent, SizeIs(1));
  EXPECT_THAT(transport.sent[0].target, testing::ContainsRegex("/api/v1/namespaces/lab/pods/p([?]|$)"));
  EXPECT_EQ(written()["tencent.com/predicate-node"], got["NodeNames"][0]);
  EXPECT_EQ(used(got["NodeNames"][0], 0).cores, 20);
}

TEST_F(predicates_test, the_same_pod_gets_the_same_answer_while_its_node_is_named) {
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const auto first = ask(pod, {"a", "b"})["NodeNames"];
  transport.sent.clear();
  EXPECT_EQ(ask(pod, {"b", "a"})["NodeNames"], first);
  EXPECT_EQ(ask(pod, first)["NodeNames"], first);
  EXPECT_THAT(transport.sent, IsEmpty());
  const json other = first[0] == "a" ? json{"b"} : json{"a"};
  EXPECT_EQ(ask(pod, other)["NodeNames"], other) << "withdrawn and recreated";
  EXPECT_EQ(used(first[0], 0), quota::card_use{});
  EXPECT_EQ(used(other[0], 0).cores, 20);
}

TEST_F(predicates_test, S58_what_was_decided_for_a_node_that_changes_its_mode_is_decided_again) {
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const auto first = ask(pod, {"a", "b"})["NodeNames"][0].get<std::string>();
  auto changing = switching(vgpu_node(first, 1));
  changing.resource_version = next_version();
  known.nodes.put(changing);
  const auto answer = ask(pod, {"a", "b"});
  EXPECT_EQ(answer["NodeNames"], json({first == "a" ? "b" : "a"}));
  EXPECT_EQ(answer["FailedNodes"], (json{{first, "placed on another node"}}));
  EXPECT_EQ(used(first, 0), quota::card_use{});
  const auto other = share("q", 20, 8);
  known.pods.put(other);
  EXPECT_EQ(ask(other, {first})["FailedNodes"], (json{{first, words::english("engine.reason.changes_mode")}}));
}

TEST_F(predicates_test, a_decision_of_an_earlier_leader_is_found_on_the_pod) {
  auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const auto node = ask(pod, {"a", "b"})["NodeNames"][0].get<std::string>();
  fresh other;
  other.known.nodes.put(vgpu_node("a", 1));
  other.known.nodes.put(vgpu_node("b", 1));
  other.known.pods.put(annotated(pod, written()));
  EXPECT_EQ(other.used(node, 0).cores, 20);
}

TEST_F(predicates_test, nothing_is_believed_but_which_pod_it_is) {
  known.pods.put(share("p", 20, 1000));
  EXPECT_THAT(ask(share("p", 1, 1), {"a", "b"})["NodeNames"], IsEmpty());
  EXPECT_EQ(waiting, 1);
  ask(share("forged", 1, 1), {"a"}, 404);
  const auto real = share("real", 20, 8);
  pods["real"] = document(real);
  EXPECT_THAT(ask(real, {"a"})["NodeNames"], SizeIs(1));
  auto anew = real;
  anew.id = kube::uid::parse("anew");
  ask(anew, {"a"}, 404);
}

TEST_F(predicates_test, F43_what_could_not_be_written_is_not_held) {
  refuse = true;
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  ask(pod, {"a"}, 503);
  EXPECT_EQ(used("a", 0), quota::card_use{});
}

TEST_F(predicates_test, what_is_never_bound_is_given_back) {
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  ask(pod, {"a"});
  known.pods.put(annotated(pod, written()));
  transport.sent.clear();
  const auto now = controller::boot_now();
  EXPECT_TRUE(kube_test::run(loop.context(), subject.look_after(now + std::chrono::minutes(4))));
  EXPECT_EQ(used("a", 0).cores, 20);
  EXPECT_TRUE(kube_test::run(loop.context(), subject.look_after(now + std::chrono::minutes(6))));
  EXPECT_EQ(used("a", 0), quota::card_use{});
  EXPECT_EQ(written()["quartermaster.io/placement"], nullptr);
  EXPECT_EQ(written()["tencent.com/predicate-node"], nullptr);
}

TEST_F(predicates_test, what_is_bound_by_the_scheduler_is_confirmed) {
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  ask(pod, {"a"});
  auto bound = annotated(pod, written());
  bound.node_name = "a";
  known.pods.put(bound);
  EXPECT_TRUE(book.open().empty());
  EXPECT_EQ(used("a", 0).cores, 20);
  EXPECT_EQ(ask(pod, {"a", "b"})["NodeNames"], json({"a"}));
}

TEST_F(predicates_test, S14_beyond_its_quota_nothing_is_decided) {
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 30}}}));
  const auto first = share("p", 20, 8), two = share("q", 20, 8);
  known.pods.put(first);
  known.pods.put(two);
  EXPECT_THAT(ask(first, {"a", "b"})["NodeNames"], SizeIs(1));
  transport.sent.clear();
  const auto got = ask(two, {"a", "b"});
  EXPECT_THAT(got["NodeNames"], IsEmpty());
  for (const auto* name : {"a", "b"}) EXPECT_EQ(got["FailedNodes"][name], words::english("engine.limit.short.cores"));
  EXPECT_THAT(transport.sent, IsEmpty());
  EXPECT_EQ(waiting, 1);
}

/// No one here writes the lock that tells HAMi's plugin which pod it serves: two such pods would get each other's
/// cards.
TEST_F(predicates_test, S60_a_node_of_hami_is_given_only_by_those_who_bind) {
  known.nodes.put(
      node("h", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 10}},
           {{"hami.io/node-nvidia-register",
             R"([{"id":"GPU-0","count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true}])"}}));
  const auto card = pod("card", {container("main", {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 1000}})});
  known.pods.put(card);
  const auto got = ask(card, {"a", "h"});
  EXPECT_THAT(got["NodeNames"], IsEmpty());
  EXPECT_THAT(std::string(got["FailedNodes"]["h"]), words::has_in_order({"HAMi's plugin", "scheduler"}));
  EXPECT_THAT(transport.sent, IsEmpty());
  EXPECT_EQ(waiting, 1);
}

struct predicates_too_early : predicates_test {
  predicates_too_early() : predicates_test(false) {}
};

TEST_F(predicates_too_early, F27_nothing_is_decided_while_the_cache_is_older_than_the_list_of_who_waits) {
  const auto pod = share("p", 20, 8);
  pods["p"] = document(pod);
  ask(pod, {"a"}, 503);
  known.pods.put(pod);
  known.pods.reach(pod.resource_version);
  EXPECT_THAT(ask(pod, {"a"})["NodeNames"], SizeIs(1));
}

TEST_F(predicates_test, only_the_leader_decides) {
  leading = false;
  ask(share("p", 1, 1), {"a"}, 503);
}

}  // namespace
}  // namespace extender_test
