#include "cli/explain/made_pods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli::made_pods_test {
namespace {

using nlohmann::json;
using reconcilers::recording_transport;

json failed_create(const char* kind, const char* name, const char* time, const char* message) {
  return {{"involvedObject", {{"kind", kind}, {"name", name}}},
          {"reason", "FailedCreate"},
          {"lastTimestamp", time},
          {"message", message}};
}

/// The reason why an object has no pods.
std::string refused(const pod_target& target, const json& object, const json& events) {
  recording_transport transport;
  transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (!request.target.contains("/events")) return recording_transport::answered(200, object);
    EXPECT_TRUE(request.target.contains("reason%3DFailedCreate") || request.target.contains("reason=FailedCreate"));
    return recording_transport::answered(200, {{"metadata", json::object()}, {"items", events}});
  };
  text::phrase out;
  EXPECT_TRUE(reconcilers::run(read_refused_pods(transport, target, out)));
  return words::line_of(out);
}

TEST(made_pods, the_condition_of_the_object_says_why_there_are_none) {
  const json object{
      {"status",
       {{"conditions",
         {{{"type", "Progressing"}, {"status", "True"}, {"message", "other"}},
          {{"type", "ReplicaFailure"}, {"status", "True"}, {"message", "pods \"d\" is forbidden: quota"}}}}}}};
  EXPECT_EQ(refused({{"lab", "d"}, "Deployment"}, object, json::array()), "pods \"d\" is forbidden: quota");
}

TEST(made_pods, the_newest_event_about_it_or_what_it_makes_says_why_there_are_none) {
  const auto events = json::array({failed_create("ReplicaSet", "d-1", "2026-01-01T00:00:02Z", "new"),
                                   failed_create("ReplicaSet", "d-0", "2026-01-01T00:00:01Z", "old"),
                                   failed_create("ReplicaSet", "d-2-1", "2026-01-01T00:00:03Z", "of d-2"),
                                   failed_create("Job", "d", "2026-01-01T00:00:04Z", "of the job")});
  EXPECT_EQ(refused({{"lab", "d"}, "Deployment"}, json::object(), events), "new");
  EXPECT_EQ(refused({{"lab", "d"}, "Job"}, json::object(), events), "of the job");
  EXPECT_EQ(refused({{"lab", "d"}, "StatefulSet"}, json::object(), events), "");
}

TEST(made_pods, where_it_may_not_be_read_there_is_no_reason) {
  recording_transport transport;
  transport.answer = [](const kube::request&) { return recording_transport::refused(403, "Forbidden"); };
  text::phrase out;
  EXPECT_TRUE(reconcilers::run(read_refused_pods(transport, {{"lab", "d"}, "Deployment"}, out)));
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(no_pods({{"lab", "d"}, "Deployment"}, out).key, "explain.no_pods_of");
  EXPECT_EQ(no_pods({{"lab", "d"}, "Deployment"}, {"why"}).key, "explain.pods_refused");
}

TEST(made_pods, the_namespace_where_it_is_is_named) {
  picture cluster;
  cluster.pods.begin();
  for (const auto* ns : {"blue", "lab"}) {
    auto pod = extender_test::share("p", 20, 4);
    pod.key.ns = ns;
    pod.id = kube::uid::parse(std::string("p-") + ns);
    pod.owners = {{"Job", "train", {}, true}};
    cluster.pods.put(pod);
  }
  cluster.pods.commit();
  EXPECT_EQ(words::line_of(meant_elsewhere(cluster, {{"default", "p"}, {}})),
            "explain.in_other_namespace{name=p,namespace=default,list=blue" + words::english("engine.comma") +
                "lab,command=quartermaster explain pod p -n blue}");
  EXPECT_EQ(words::line_of(meant_elsewhere(cluster, {{"blue", "train"}, "Job"})),
            "explain.in_other_namespace{name=job/train,namespace=blue,list=lab,"
            "command=quartermaster explain pod job/train -n lab}");
  EXPECT_TRUE(meant_elsewhere(cluster, {{"default", "q"}, {}}).empty());
}

}  // namespace
}  // namespace cli::made_pods_test
