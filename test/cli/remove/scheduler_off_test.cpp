#include "cli/remove/scheduler_off.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "cli/remove/stranded.hpp"
#include "cli/verbs.hpp"
#include "test/reconcilers/recording_transport.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using reconcilers::recording_transport;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

json owned_by(const std::string& version, const std::string& kind, const std::string& name) {
  return json::array(
      {{{"apiVersion", version}, {"kind", kind}, {"name", name}, {"uid", "uid-" + name}, {"controller", true}}});
}
json object(const std::string& kind, const std::string& name, const json& owners = json::array()) {
  return {{"kind", kind},
          {"metadata",
           {{"namespace", "lab"},
            {"name", name},
            {"uid", "uid-" + name},
            {"resourceVersion", "1"},
            {"ownerReferences", owners}}}};
}
json pod(const std::string& name, const json& owners = json::array()) {
  auto out = object("Pod", name, owners);
  out["spec"] = {{"schedulerName", "quartermaster"}};
  out["status"] = {{"phase", "Pending"}};
  return out;
}
json with_template(json owner, const std::string& scheduler) {
  owner["spec"]["template"]["spec"]["schedulerName"] = scheduler;
  return owner;
}
std::string stays(const json& object, const std::vector<json>& owners, const std::string& unread = "") {
  return judge_stranded(object, owners, unread).stays;
}

TEST(stranded, a_pod_waits_that_names_our_scheduler_and_has_no_node) {
  auto candidate = pod("a");
  EXPECT_TRUE(waits(candidate));
  candidate["spec"]["nodeName"] = "gpu-1";
  EXPECT_FALSE(waits(candidate));
  candidate = pod("a");
  candidate["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_FALSE(waits(candidate));
  candidate = pod("a");
  candidate["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_FALSE(waits(candidate));
}

TEST(stranded, only_pods_whose_owner_makes_them_anew_for_another_scheduler_are_deleted) {
  const auto of_set = pod("p", owned_by("apps/v1", "ReplicaSet", "web-1"));
  const auto set = object("ReplicaSet", "web-1", owned_by("apps/v1", "Deployment", "web"));
  const auto deployment = object("Deployment", "web");
  EXPECT_EQ(stays(of_set, {set, deployment}), "");
  EXPECT_EQ(judge_stranded(of_set, {set, deployment}, "").owner, "Deployment lab/web");
  EXPECT_THAT(stays(pod("bare"), {}), HasSubstr("nothing would recreate it"));
  EXPECT_EQ(stays(of_set, {}, "its ReplicaSet is gone"), "its ReplicaSet is gone");
  auto going = set;
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(stays(of_set, {going, deployment}), HasSubstr("is being deleted"));
}

TEST(stranded, a_template_that_names_our_scheduler_is_told_and_its_pod_stays) {
  const auto of_set = pod("p", owned_by("apps/v1", "ReplicaSet", "web-1"));
  const auto set = with_template(object("ReplicaSet", "web-1"), "quartermaster");
  EXPECT_THAT(stays(of_set, {set, with_template(object("Deployment", "web"), "quartermaster")}),
              HasSubstr("template of Deployment lab/web names the scheduler"));
  EXPECT_THAT(stays(of_set, {set, object("Deployment", "web")}), HasSubstr("template of ReplicaSet lab/web-1"))
      << "edited already, and not rolled out yet";
  EXPECT_EQ(stays(of_set, {with_template(object("ReplicaSet", "web-1"), "default-scheduler")}), "");
  const auto of_job = pod("p", owned_by("batch/v1", "Job", "train-1"));
  auto cron = object("CronJob", "train");
  cron["spec"]["jobTemplate"] = with_template(json::object(), "quartermaster");
  const auto job = with_template(object("Job", "train-1"), "quartermaster");
  EXPECT_THAT(stays(of_job, {job}), HasSubstr("recreate the Job without"));
  EXPECT_THAT(stays(of_job, {job, cron}), HasSubstr("take spec.jobTemplate.spec.template.spec.schedulerName out"));
}

TEST(stranded, a_job_that_a_deletion_would_end_keeps_its_pod) {
  auto job = object("Job", "train");
  EXPECT_EQ(failures_left(job), 6) << "Kubernetes' default";
  job["spec"]["backoffLimit"] = 2;
  job["status"]["failed"] = 2;
  EXPECT_EQ(failures_left(job), 0);
  EXPECT_THAT(stays(pod("p", owned_by("batch/v1", "Job", "train")), {job}), HasSubstr("count as a failure"));
  job["status"]["failed"] = 1;
  EXPECT_EQ(stays(pod("p", owned_by("batch/v1", "Job", "train")), {job}), "");
  job["spec"]["podReplacementPolicy"] = "Failed";
  EXPECT_EQ(failures_left(job), 0) << "one that was deleted is not replaced at once";
  job["spec"].erase("podReplacementPolicy");
  job["spec"]["podFailurePolicy"] = {{"rules", json::array()}};
  EXPECT_EQ(failures_left(job), 0);
}

/// An API server with the policy, the rules, the lease, pods and their owners.
struct server {
  recording_transport transport;
  std::string mode = "Dedicated", label = "Dedicated";
  std::map<std::string, json> pods, owners;  ///< by name; by path
  std::vector<std::string> removed;
  json masters = json::array();  ///< rows of the status; an agent takes its own out
  bool operator_works = true;
  int renewals = 0, conflicts = 0;
  std::function<void()> at_conflict = [] {};

  server() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> { return answer(request); };
  }
  static std::string message(const std::function<void(protozero::pbf_writer&)>& fill) {
    std::string out;
    protozero::pbf_writer writer(out);
    fill(writer);
    return out;
  }
  kube::response lease() {
    const auto meta = message([](auto& writer) {
      writer.add_string(1, "quartermaster");
      writer.add_string(3, "system");
      writer.add_string(6, "7");
    });
    const auto spec = message([this](auto& writer) {
      writer.add_string(1, "one");
      writer.add_int32(2, 15);
      writer.add_message(4, message([this](auto& time) { time.add_int64(1, operator_works ? ++renewals : 1); }));
    });
    kube::response out;
    out.status = 200;
    out.content_type = "application/vnd.kubernetes.protobuf";
    out.body = message([&](auto& writer) {
      writer.add_message(1, message([](auto& list) { list.add_string(2, "100"); }));
      writer.add_message(2, message([&](auto& item) {
                           item.add_message(1, meta);
                           item.add_message(2, spec);
                         }));
    });
    return out;
  }
  /// What the operator makes of it at once.
  json policy() {
    if (mode == "None" && operator_works) label = "None";
    json out = {{"metadata", {{"generation", 2}}},
                {"spec", {{"scheduler", {{"mode", mode}}}}},
                {"status", {{"observedGeneration", 2}}}};
    out["status"]["schedulers"] = masters;
    if (mode != "None" || !pods.empty() || !masters.empty())
      out["status"]["conditions"] = {
          {{"type", "SchedulerReady"}, {"reason", mode == "None" ? "PodsWait" : "Dedicated"}, {"message", "so"}}};
    return out;
  }
  kube::response answer(const kube::request& request) {
    const auto& position = request.target;
    if (request.verb == kube::method::patch) {
      mode = json::parse(request.body).at("/spec/scheduler/mode"_json_pointer);
      return recording_transport::answered(200, policy());
    }
    if (position.contains("/acceleratorpolicies/")) return recording_transport::answered(200, policy());
    if (position.contains("/resourcerules/"))
      return recording_transport::answered(200, {{"metadata", {{"labels", {{"quartermaster.io/scheduler", label}}}}}});
    if (position.contains("/leases")) return lease();
    const auto name = position.substr(position.rfind('/') + 1);
    if (position.contains("/pods/")) {
      const auto found = pods.find(name);
      if (found == pods.end()) return recording_transport::refused(404, "NotFound");
      if (request.verb != kube::method::del) return recording_transport::answered(200, found->second);
      const auto only_if = json::parse(request.body).at("preconditions");
      EXPECT_EQ(only_if.at("uid"), "uid-" + name);
      if (conflicts-- > 0) {
        found->second["metadata"]["resourceVersion"] = "2";
        at_conflict();
      }
      if (only_if.at("resourceVersion") != found->second["metadata"]["resourceVersion"])
        return recording_transport::refused(409, "Conflict");
      removed.push_back(name);
      pods.erase(found);
      return recording_transport::answered(200, json::object());
    }
    if (position.contains("/pods")) {
      auto items = json::array();
      for (const auto& [key, pod] : pods) items.push_back(pod);
      return recording_transport::answered(200, {{"metadata", json::object()}, {"items", items}});
    }
    const auto found = owners.find(name);
    return found == owners.end() ? recording_transport::refused(404, "NotFound")
                                 : recording_transport::answered(200, found->second);
  }
  struct ended {
    int rc = 0;
    std::string out, error;
  };
  ended off(bool recreate, std::chrono::seconds timeout = 1s) {
    scheduler_off_options options;
    options.recreate_owned = recreate;
    options.yes = true;
    options.timeout = timeout;
    options.learn = 20ms;
    options.look_every = 5ms;
    options.lease_patience = 1s;
    ended out;
    std::ostringstream output;
    const auto done = reconcilers::run(switch_scheduler_off(transport, options, output, out.rc));
    out.out = output.str();
    if (!done) out.error = done.error().message;
    return out;
  }
};

TEST(scheduler_off, is_off_when_nobody_waits_and_says_so_when_called_again) {
  server server;
  auto result = server.off(false);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.rc, 0);
  EXPECT_EQ(server.mode, "None");
  EXPECT_THAT(result.out, HasSubstr("it is off: nothing of it is left"));
  result = server.off(true);
  EXPECT_EQ(result.rc, 0);
  EXPECT_THAT(result.out, HasSubstr("it is off: spec.scheduler.mode is None"));
}

TEST(scheduler_off, without_the_flag_pods_that_wait_are_listed_by_owner_and_left_alone) {
  server server;
  server.pods = {{"bare", pod("bare")}, {"w-1", pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"))}};
  server.owners["w"] = object("ReplicaSet", "w");
  const auto result = server.off(false);
  EXPECT_EQ(result.rc, 3);
  EXPECT_THAT(server.removed, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("  no owner: 1 pod (lab/bare): nothing would recreate it"));
  EXPECT_THAT(result.out,
              HasSubstr("  ReplicaSet lab/w: 1 pod (lab/w-1): --recreate-owned lets its owner recreate it"));
}

TEST(scheduler_off, with_the_flag_each_is_deleted_once_after_no_more_are_sent) {
  server server;
  server.pods = {{"bare", pod("bare")}, {"w-1", pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"))}};
  server.owners["w"] = object("ReplicaSet", "w");
  const auto usual = server.transport.answer;
  server.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (request.verb == kube::method::del) EXPECT_EQ(server.label, "None") << "the next pod would be sent there, too";
    auto answered = usual(request);
    // Someone writes our name into the next pod all the same: it is not deleted again and again.
    if (request.verb == kube::method::del) server.pods["w-2"] = pod("w-2", owned_by("apps/v1", "ReplicaSet", "w"));
    return answered;
  };
  const auto result = server.off(true);
  EXPECT_EQ(result.rc, 3);
  EXPECT_THAT(server.removed, ElementsAre("w-1"));
  EXPECT_THAT(result.out, HasSubstr("1 pod was deleted: its owner recreates it"));
  EXPECT_TRUE(server.pods.contains("bare"));
}

TEST(scheduler_off, a_pod_that_changed_is_looked_at_again_and_one_that_got_a_node_stays) {
  server changed;
  changed.pods["w-1"] = pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"));
  changed.owners["w"] = object("ReplicaSet", "w");
  changed.conflicts = 1;
  EXPECT_EQ(changed.off(true).rc, 0);
  EXPECT_THAT(changed.removed, ElementsAre("w-1"));

  server bound;
  bound.pods["w-1"] = pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"));
  bound.owners["w"] = object("ReplicaSet", "w");
  bound.conflicts = 1;
  bound.at_conflict = [&] { bound.pods["w-1"]["spec"]["nodeName"] = "gpu-1"; };
  const auto result = bound.off(true);
  EXPECT_THAT(bound.removed, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("it got a node meanwhile"));
}

TEST(scheduler_off, a_pod_that_may_not_be_deleted_does_not_keep_the_others) {
  server server;
  server.pods = {{"w-1", pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"))},
                 {"w-2", pod("w-2", owned_by("apps/v1", "ReplicaSet", "w"))}};
  server.owners["w"] = object("ReplicaSet", "w");
  const auto usual = server.transport.answer;
  server.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    const bool kept = request.verb == kube::method::del && request.target.contains("w-1");
    return kept ? recording_transport::refused(403, "Forbidden", "kept by a policy") : usual(request);
  };
  const auto result = server.off(true);
  EXPECT_THAT(server.removed, ElementsAre("w-2"));
  EXPECT_THAT(result.out, HasSubstr("(lab/w-1): it may not be deleted: "));
}

TEST(scheduler_off, a_job_loses_no_more_pods_than_it_may) {
  server server;
  for (const auto* name : {"a", "b", "c"}) server.pods[name] = pod(name, owned_by("batch/v1", "Job", "train"));
  server.owners["train"] = object("Job", "train");
  server.owners["train"]["spec"]["backoffLimit"] = 2;
  const auto result = server.off(true);
  EXPECT_THAT(server.removed, ElementsAre("a", "b"));
  EXPECT_THAT(result.out, HasSubstr("Job lab/train: 1 pod (lab/c): one more deletion would count as a failure"));
}

TEST(scheduler_off, owners_that_cannot_be_judged_keep_their_pods) {
  server server;
  server.pods = {{"gone", pod("gone", owned_by("apps/v1", "ReplicaSet", "away"))},
                 {"flow", pod("flow", owned_by("argoproj.io/v1alpha1", "Workflow", "steps"))}};
  const auto result = server.off(true);
  EXPECT_THAT(server.removed, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("ReplicaSet lab/away: 1 pod (lab/gone): its ReplicaSet is gone"));
  EXPECT_THAT(result.out,
              HasSubstr("Workflow lab/steps: 1 pod (lab/flow): whether a Workflow recreates it is not known"));
}

TEST(scheduler_off, says_which_masters_still_have_it_and_who_takes_it_out) {
  server server;
  server.mode = "StaticPod";
  server.masters = {{{"name", "cp-1"}, {"mode", "StaticPod"}, {"reason", "NoAgent"}, {"message", "no agent runs"}},
                    {{"name", "cp-2"}, {"mode", "StaticPod"}, {"reason", "Applied"}}};
  const auto result = server.off(false);
  EXPECT_EQ(result.rc, 3);
  EXPECT_THAT(result.out, Not(HasSubstr("0 pods wait still")));
  EXPECT_THAT(result.out, HasSubstr("still there: kube-scheduler cp-1 (StaticPod): NoAgent: no agent runs\n"));
  EXPECT_THAT(result.out, HasSubstr("still there: kube-scheduler cp-2 (StaticPod): Applied\n"));
  EXPECT_THAT(result.out, HasSubstr("DaemonSet quartermaster-static-pod"));
}

TEST(scheduler_off, several_pods_of_one_owner_are_told_of_each) {
  server server;
  for (const auto* name : {"w-1", "w-2"}) server.pods[name] = pod(name, owned_by("apps/v1", "ReplicaSet", "w"));
  server.owners["w"] = object("ReplicaSet", "w");
  EXPECT_THAT(server.off(true).out, HasSubstr("2 pods (lab/w-1, lab/w-2), each: it is deleted once no more are sent"));
}

TEST(scheduler_off, help_names_the_documents_of_schedulers) {
  CLI::App app;
  app.footer("of the whole program");
  int rc = 0;
  add_scheduler(app, rc);
  add_render(app, rc);
  EXPECT_THAT(app.get_subcommand("scheduler")->get_footer(), HasSubstr("docs/scheduling.md"));
  EXPECT_THAT(app.get_subcommand("render")->get_footer(), HasSubstr("docs/scheduler-config.md"));
}

TEST(scheduler_off, without_an_operator_nothing_is_switched_off_and_no_pod_deleted) {
  server server;
  server.operator_works = false;
  server.pods["w-1"] = pod("w-1", owned_by("apps/v1", "ReplicaSet", "w"));
  server.owners["w"] = object("ReplicaSet", "w");
  const auto result = server.off(true, 20s);
  EXPECT_THAT(result.error, HasSubstr("no operator renews the lease"));
  EXPECT_THAT(server.removed, IsEmpty());
}

}  // namespace
}  // namespace cli
