// What a person with the right `edit` in one namespace reads of a pod.
#include "cli/explain/own_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/cli/wire_objects.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli::own_view_test {
namespace {

using nlohmann::json;
using reconcilers::recording_transport;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not;
using words::begin_of;

json event(const std::string& reporter, const std::string& reason, const std::string& time,
           const std::string& message) {
  return {{"reportingComponent", reporter},
          {"reason", reason},
          {"eventTime", time},
          {"message", message},
          {"type", "Warning"}};
}

struct own_view_test : testing::Test {
  json object = extender_test::document(extender_test::share("p", 20, 4));
  json events = json::array();
  std::string pods_of_namespace = cli_test::list_body({}), pods_everywhere;  ///< empty: forbidden
  recording_transport transport;
  own_view view;

  own_view_test() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      const std::string_view target = request.target;
      const auto list = [](const json& items) {
        return recording_transport::answered(200, {{"metadata", {{"resourceVersion", "7"}}}, {"items", items}});
      };
      if (target.contains("/namespaces/lab/events")) return list(events);
      if (target.contains("/acceleratorquotas") || target.contains("/acceleratorpolicies")) return list(json::array());
      if (target.contains("/namespaces/lab/pods/p")) return recording_transport::answered(200, object);
      if (target.contains("/namespaces/lab/pods/")) return recording_transport::refused(404, "NotFound");
      if (target.contains("/namespaces/lab/pods")) return raw(pods_of_namespace);
      if (target.starts_with("/api/v1/pods") && !pods_everywhere.empty()) return raw(pods_everywhere);
      return recording_transport::refused(403, "Forbidden");
    };
  }
  static kube::response raw(const std::string& body) {
    kube::response out;
    out.status = 200;
    out.content_type = "application/vnd.kubernetes.protobuf";
    out.body = body;
    return out;
  }
  void read(const std::string& name = "p", const std::string& kind = {}) {
    view = {};
    EXPECT_TRUE(reconcilers::run(read_own_view(transport, {{"lab", name}, kind}, text::language::en, view)));
  }
  std::string text() {
    read();
    std::ostringstream out;
    explain_own_view(view, {"refused"}, {"text", "en"}, out);
    return out.str();
  }
  json data() {
    read();
    std::ostringstream out;
    explain_own_view(view, {"refused"}, {"json", "en"}, out);
    return json::parse(out.str());
  }
  std::vector<std::string> codes() {
    std::vector<std::string> out;
    for (const auto& obstacle : data()["obstacles"]) out.push_back(obstacle["code"]);
    return out;
  }
  void ask_for(const json& limits) {
    object["spec"]["containers"][0]["resources"] = {{"limits", limits}, {"requests", limits}};
  }
};

TEST_F(own_view_test, the_operators_events_come_before_the_schedulers_which_count_once) {
  const std::string own = "quartermaster.io/controller", scheduler = "default-scheduler";
  events = {event(own, "AcceleratorQuotaExceeded", "2026-01-01T00:00:00Z", "quota"),
            event(own, "NoAcceleratorFits", "2026-01-01T00:00:01Z", "before"),
            event(own, "NoAcceleratorFits", "2026-01-01T00:00:02Z", "fits nowhere")};
  for (int i = 10; i < 30; ++i)
    events.push_back(event(scheduler, "FailedScheduling", "2026-01-01T00:00:" + std::to_string(i) + "Z",
                           "try " + std::to_string(i)));
  events.push_back({{"source", {{"component", scheduler}}},
                    {"reason", "Preempted"},
                    {"lastTimestamp", "2026-01-01T00:00:05Z"},
                    {"message", "left"}});
  read();
  std::vector<std::string> messages;
  for (const auto& event : view.events) messages.push_back(event.message);
  EXPECT_THAT(messages, ElementsAre("fits nowhere", "quota", "try 29", "left"));
}

TEST_F(own_view_test, of_an_event_that_comes_again_the_last_time_counts) {
  auto again = event("a", "Again", "2026-01-01T00:00:00Z", "again");
  again["series"] = {{"count", 3}, {"lastObservedTime", "2026-01-01T09:00:00Z"}};
  events = {again, event("a", "Once", "2026-01-01T08:00:00Z", "once")};
  read();
  ASSERT_EQ(view.events.size(), 2u);
  EXPECT_EQ(view.events[0].reason, "Again");
  EXPECT_EQ(view.events[0].time, "2026-01-01T09:00:00Z");
}

TEST_F(own_view_test, events_of_an_earlier_pod_of_the_name_are_left_out) {
  auto earlier = event("a", "Once", "2026-01-01T09:00:00Z", "earlier"), own = earlier;
  earlier["involvedObject"] = {{"uid", "00000000-0000-4000-8000-0000000000ee"}};
  own["involvedObject"] = {{"uid", object["metadata"]["uid"]}};
  own["message"] = "own";
  events = {earlier, own};
  read();
  ASSERT_EQ(view.events.size(), 1u);
  EXPECT_EQ(view.events[0].message, "own");
}

TEST_F(own_view_test, only_of_a_pod_that_waits_what_would_help_is_not_seen) {
  const auto unseen = words::english("explain.own.unseen");
  EXPECT_THAT(text(), HasSubstr(unseen));
  EXPECT_EQ(data()["unseen"], "refused");
  object["spec"]["nodeName"] = "n";
  object["status"] = {{"phase", "Running"}};
  EXPECT_THAT(text(), Not(HasSubstr(unseen)));
  EXPECT_TRUE(data()["unseen"].is_null());
  object["status"] = {{"phase", "Failed"}};
  EXPECT_THAT(text(), Not(HasSubstr(unseen)));
}

TEST_F(own_view_test, a_pod_that_is_deleted_before_it_has_a_node_waits_for_nothing) {
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(text(), Not(HasSubstr(words::english("explain.own.unseen"))));
  EXPECT_EQ(data()["waits"], false);
  EXPECT_THAT(codes(), testing::Contains("deleted"));
}

TEST_F(own_view_test, what_no_node_takes_is_named_without_the_cluster) {
  EXPECT_THAT(codes(), Not(testing::Contains("amounts")));
  ask_for({{"nvidia.com/gpualloc", "1"}, {"nvidia.com/gpumem", "4Gi"}});
  EXPECT_THAT(
      text(),
      HasSubstr(words::english(
          "engine.refusal.unit",
          {{"wrong", words::english("engine.refusal.amount", {{"key", "nvidia.com/gpumem"}, {"amount", "4294967296"}})},
           {"unit", "MiB"},
           {"number", "4096"}})));
  ask_for({{"nvidia.com/gpumem", "4096"}});
  EXPECT_THAT(codes(), testing::Contains("amounts"));
  ask_for({{"nvidia.com/gpualloc", "1"}, {"tencent.com/vcuda-core", "200"}});
  EXPECT_THAT(codes(), testing::Contains("amounts"));
  object["spec"]["nodeName"] = "n";
  EXPECT_THAT(codes(), Not(testing::Contains("amounts"))) << "some node took it";
}

TEST_F(own_view_test, a_mistyped_key_is_named_with_the_one_that_is_near) {
  ask_for({{"nvidia.com/gpux", "1"}});
  EXPECT_THAT(text(), HasSubstr(words::english("explain.obstacle.unfamiliar_key",
                                               {{"key", "nvidia.com/gpux"}, {"hint", "nvidia.com/gpu"}})));
  for (const auto* key : {"example.com/fpga", "nvidia.com/mig-1g.10gb", "huawei.com/Ascend910", "nvidia.com/gpu"}) {
    ask_for({{key, "1"}});
    EXPECT_THAT(codes(), Not(testing::Contains("unfamiliar_key"))) << key;
  }
}

TEST_F(own_view_test, an_object_without_pods_says_why_it_has_none) {
  events = {{{"involvedObject", {{"kind", "ReplicaSet"}, {"name", "d-1"}}},
             {"reason", "FailedCreate"},
             {"lastTimestamp", "2026-01-01T00:00:00Z"},
             {"message", "denied"}}};
  read("d", "Deployment");
  EXPECT_FALSE(view.pod);
  EXPECT_EQ(view.absent.key, "explain.pods_refused");
  events = json::array();
  read("d", "Deployment");
  EXPECT_EQ(view.absent.key, "explain.no_pods_of");
}

TEST_F(own_view_test, a_pod_of_the_name_in_another_namespace_is_named_where_it_may_be_seen) {
  read("q");
  EXPECT_EQ(view.absent.key, "explain.no_pod");
  std::string item;
  protozero::pbf_writer(item).add_message(1, cli_test::metadata("blue", "q"));
  pods_everywhere = cli_test::list_body({item});
  read("q");
  EXPECT_EQ(words::line_of(view.absent),
            "explain.in_other_namespace{name=q,namespace=lab,list=blue,command=quartermaster explain pod q -n blue}");
}

}  // namespace
}  // namespace cli::own_view_test
