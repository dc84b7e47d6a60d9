#include "cli/verify/verify_scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using reconcilers::recording_transport;
using reconcilers::verify::outcome;
using reconcilers::verify::step;
using testing::HasSubstr;
using testing::Not;
using text::language;

/// A test pod of which a scheduler has said this.
json pod_with(const std::string& reason, const std::string& message) {
  json pod = {{"metadata", {{"name", "v-1"}, {"uid", "u-1"}}}, {"spec", {{"schedulerName", "quartermaster"}}}};
  if (!reason.empty())
    pod["status"]["conditions"] = {
        {{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", message}}};
  return pod;
}
json event_by(const std::string& reporter, const std::string& note) {
  return {{"reason", "FailedScheduling"},
          {"note", note},
          {"reportingController", reporter},
          {"reportingInstance", reporter + "-host"}};
}
std::string code_of(const json& pod, bool late = true, const std::string& resource = "") {
  scheduler_test_options options;
  options.resource = resource;
  const auto found = judge_scheduling(pod, {}, options, 5s, late);
  if (!found) return "wait";
  return found->is == outcome::good ? "asked" : std::string(to_string(found->cause));
}

TEST(verify_scheduler, the_pod_passes_every_filter_but_the_extenders_and_never_runs) {
  scheduler_test_options options;
  auto pod = extender_pod(options);
  EXPECT_FALSE(pod.at("spec").contains("schedulerName")) << "as people write pods";
  EXPECT_FALSE(pod.at("/metadata/labels"_json_pointer).contains("quartermaster.io/scheduler")) << "it may be sent";
  const auto& container = pod.at("/spec/containers/0"_json_pointer);
  EXPECT_EQ(container.at("resources"), (json{{"limits", {{"nvidia.com/gpucores", "1"}}}}));
  EXPECT_EQ(container.at("imagePullPolicy"), "Never");
  EXPECT_EQ(pod.at("/spec/tolerations"_json_pointer), json::array({{{"operator", "Exists"}}}));
  EXPECT_TRUE(pod.at("/metadata/annotations"_json_pointer).contains("nvidia.com/use-gpuuuid"));
  options.name = "mine";
  options.resource = "nvidia.com/gpu";
  pod = extender_pod(options);
  EXPECT_EQ(pod.at("/spec/schedulerName"_json_pointer), "mine");
  EXPECT_EQ(pod.at("/metadata/labels/quartermaster.io~1scheduler"_json_pointer), "ignore")
      << "it is not sent elsewhere";
  EXPECT_EQ(pod.at("/spec/containers/0/resources/limits"_json_pointer), (json{{"nvidia.com/gpu", "1"}}));
}

TEST(verify_scheduler, tells_by_the_schedulers_words_who_was_asked) {
  struct row {
    std::string reason, message, late, early;
  };
  const row table[] = {
      {"", "", "scheduler_unseen", "wait"},
      {"Unschedulable",
       "0/3 nodes are available: 2 " + words::english("engine.reason.no_node") + ", 1 " +
           words::english("engine.reason.refused") + ".",
       "asked", "asked"},
      {"Unschedulable",
       "0/3 nodes are available: 1 Too many pods, 2 " + words::english("engine.reason.not_selected") + ".", "asked",
       "asked"},
      {"Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpucores.", "scheduler_looks_itself",
       "scheduler_looks_itself"},
      {"Unschedulable", "0/3 nodes are available: 3 Too many pods.", "scheduler_found_no_node",
       "scheduler_found_no_node"},
      {"SchedulerError", R"(Post "https://10.96.0.7/scheduler/filter": dial tcp 10.96.0.7:443: connect: refused)",
       "extender_unreachable", "wait"},
      {"SchedulerError", R"(Post "https://10.96.0.7/scheduler/filter": x509: certificate signed by unknown authority)",
       "extender_untrusted", "wait"},
      {"SchedulerError", R"(Post "https://10.96.0.7/scheduler/filter": remote error: tls: bad certificate)",
       "extender_untrusted", "wait"},
      {"SchedulerError",
       R"(Post "https://10.96.0.7/scheduler/filter": net/http: HTTP/1.x transport connection broken: write: broken pipe)",
       "extender_untrusted", "wait"},
      {"SchedulerError", "running PreFilter plugin NodeAffinity: no such thing", "scheduler_found_no_node", "wait"},
      {"Unschedulable", "no nodes available to schedule pods", "scheduler_found_no_node", "scheduler_found_no_node"},
      {"SchedulerError", "failed filter with extender at URL https://10.96.0.7/scheduler/filter, code 503",
       "extender_refuses", "wait"},
  };
  for (const auto& [reason, message, late, early] : table) {
    EXPECT_EQ(code_of(pod_with(reason, message), true), late) << message;
    EXPECT_EQ(code_of(pod_with(reason, message), false), early) << message;
    if (message.empty()) continue;
    const std::vector<json> events{event_by("quartermaster", message)};
    const auto found = judge_scheduling(pod_with("", ""), events, {}, 5s, true);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->is == outcome::good ? "asked" : to_string(found->cause), late)
        << "by the event alone: " << message;
  }
  const auto full = pod_with("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
  EXPECT_EQ(code_of(full, true, "nvidia.com/gpu"), "scheduler_found_no_node") << "nodes offer it, and are full";
}

TEST(verify_scheduler, a_pod_that_got_a_node_is_told_loudly_whatever_else_was_said) {
  auto pod = pod_with("Unschedulable", "0/1 nodes are available: 1 " + words::english("engine.reason.refused") + ".");
  pod["spec"]["nodeName"] = "gpu-1";
  const auto found = judge_scheduling(pod, {}, {}, 1s, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, reconcilers::verify::stage_code::scheduler_did_not_ask);
  EXPECT_EQ(found->value, "gpu-1");
}

TEST(verify_scheduler, says_who_asked_by_the_event_and_waits_for_it_a_little) {
  const auto message = "0/1 nodes are available: 1 " + words::english("engine.reason.no_cards") + ".";
  const auto pod = pod_with("Unschedulable", message);
  EXPECT_FALSE(judge_scheduling(pod, {}, {}, 500ms, false)) << "the event may come yet";
  const std::vector<json> events{event_by("quartermaster", message)};
  const auto found = judge_scheduling(pod, events, {}, 500ms, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, "quartermaster (quartermaster-host)");
  EXPECT_EQ(found->other, "0.5 s");
  EXPECT_TRUE(judge_scheduling(pod, {}, {}, 3s, false)) << "without the right to read events";
  EXPECT_TRUE(judge_scheduling(pod_with("", ""), events, {}, 500ms, false)) << "the event alone says it too";
}

TEST(verify_scheduler, every_outcome_has_words_and_a_remedy_in_both_languages) {
  using reconcilers::verify::stage_code;
  for (auto i = static_cast<std::size_t>(stage_code::scheduler_unseen); i < reconcilers::verify::code_count; ++i) {
    const step step{reconcilers::verify::stage::extender, outcome::wrong, static_cast<stage_code>(i), "v", "o", {}};
    for (const auto entry : {language::en, language::zh}) {
      EXPECT_NE(text_of(step, entry), "");
      EXPECT_NE(remedy_of(step, "", entry), "");
      // Of the catalogue's own {placeholders} none is left.
      for (const auto* name : {"{value}", "{other}", "{node}", "{pod}", "{namespace}"})
        EXPECT_THAT(text_of(step, entry) + remedy_of(step, "", entry), Not(HasSubstr(name)));
    }
  }
}

/// An API server for one pod, of which the scheduler says these things one after the other.
struct scheduled_pod_server {
  recording_transport transport;
  std::vector<json> looks;
  std::size_t looked = 0;
  kube::response made = recording_transport::answered(201, {{"metadata", {{"name", "v-1"}, {"uid", "u-1"}}}});
  bool created = false, removed = false, sees_events = true;
  std::function<void()> at_look = [] {};

  scheduled_pod_server() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      if (request.verb == kube::method::post) {
        created = true;
        return made;
      }
      if (!created) return recording_transport::refused(404, "NotFound");
      if (request.verb == kube::method::del) {
        EXPECT_THAT(request.body, HasSubstr("u-1"));
        removed = true;
        return recording_transport::answered(200, json::object());
      }
      if (request.target.contains("/events")) {
        EXPECT_THAT(request.target, HasSubstr("regarding.uid%3Du-1"));
        if (!sees_events) return recording_transport::refused(403, "Forbidden");
        return recording_transport::answered(200, {{"metadata", json::object()}, {"items", json::array()}});
      }
      at_look();
      if (looks.empty()) return recording_transport::refused(404, "NotFound");
      return recording_transport::answered(200, looks.at(std::min(looked++, looks.size() - 1)));
    };
  }
  kube::result<step> tested() {
    scheduler_test_options options;
    options.look_every = 1ms;
    options.patience = 1s;
    return reconcilers::run(test_scheduler(transport, options));
  }
};

TEST(verify_scheduler, looks_until_the_scheduler_has_spoken_and_removes_the_pod) {
  scheduled_pod_server server;
  server.looks = {pod_with("", ""), pod_with("SchedulerError", R"(Post "https://10.96.0.7": x509: no)"),
                  pod_with("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpucores.")};
  const auto found = server.tested();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(to_string(found->cause), "scheduler_looks_itself");
  EXPECT_TRUE(server.removed);
}

TEST(verify_scheduler, without_the_right_to_read_events_the_rest_is_told) {
  scheduled_pod_server server;
  server.sees_events = false;
  server.looks = {pod_with("SchedulerError", R"(Post "https://10.96.0.7": x509: no)")};
  const auto found = server.tested();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(to_string(found->cause), "extender_untrusted");
  EXPECT_TRUE(server.removed);
}

TEST(verify_scheduler, a_pod_that_may_not_be_made_is_a_finding) {
  scheduled_pod_server server;
  server.made = recording_transport::refused(
      403, "Forbidden", R"(admission webhook "w" denied the request: write schedulerName: quartermaster)");
  const auto found = server.tested();
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(found->cause), "test_pod_refused");
  EXPECT_THAT(found->value, HasSubstr("write schedulerName"));
}

TEST(verify_scheduler, a_signal_and_a_pod_that_is_taken_away_are_no_answer) {
  scheduled_pod_server stopped;
  stopped.looks = {pod_with("", "")};
  stopped.at_look = [&] {
    if (stopped.looked == 2) std::raise(SIGTERM);
  };
  auto found = stopped.tested();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr(words::english("verify.test_pod.stopped_before_answer")));
  EXPECT_TRUE(stopped.removed);
  scheduled_pod_server gone;
  found = gone.tested();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr(words::english("verify.test_pod.gone")));
}

}  // namespace
}  // namespace cli
