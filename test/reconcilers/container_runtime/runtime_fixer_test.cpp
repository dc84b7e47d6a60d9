#include "reconcilers/container_runtime/runtime_fixer.hpp"

#include <set>

#include "controller/coded_message.hpp"
#include "reconcilers/container_runtime/pod.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/rights.hpp"
#include "test/words.hpp"

namespace reconcilers::container_runtime {
namespace {

using nlohmann::json;

const std::string pod_path = "/api/v1/namespaces/quartermaster/pods/quartermaster-fix-runtime";
const std::string reports_path = "/apis/quartermaster.io/v1alpha1/acceleratornodes/";

class fixing : public testing::Test, public fake_cluster {
 public:
  controller::store<accelerator_policy> policies;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<api::accelerator_node> reports;
  std::int64_t wall = 1'790'000'000;
  int news = 0;
  runtime_fixer subject{{policies, nodes, pods, reports},
                        client,
                        recorder,
                        {.ns = "quartermaster",
                         .own_image = "registry.example/quartermaster:1",
                         .wall = [this] { return controller::wall_time(std::chrono::seconds(wall)); },
                         .now = [this] { return now; },
                         .on_state = [this] { ++news; }}};

  fixing() {
    sync(policies, nodes, pods, reports);
    server.watch = [this](const std::string& path, const json& is, const json& last) { show(path, is, last); };
    for (const auto* name : {"gpu-1", "gpu-2"}) {
      node(name, "nvidia");
      report(name, "warning");
    }
    node("cpu-1", "");
    report("cpu-1", "warning");
    select({{"cards", "nvidia"}});
  }
  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    if (path.starts_with(reports_path)) {
      reports.put(*api::accelerator_node::decode(any.dump()));
    } else if (path == pod_path) {
      kube::pod pod;
      read_metadata(any, pod);
      pod.created = wall;
      pod.node_name = any["spec"]["nodeName"];
      const auto phase = any.value("/status/phase"_json_pointer, "Pending");
      pod.phase = phase == "Succeeded" ? kube::pod_phase::succeeded
                  : phase == "Failed"  ? kube::pod_phase::failed
                                       : kube::pod_phase::pending;
      is.is_null() ? pods.erase(pod) : pods.put(pod);
    }
  }
  void select(settings_map selector) {
    accelerator_policy out;
    out.key = {{}, "default"};
    out.resource_version = ++version_;
    out.generation = static_cast<std::int64_t>(version_);
    out.id = kube::uid::parse("6d1f0c1e-0000-4000-8000-000000000001");
    out.container_runtime.node_selector = std::move(selector);
    policies.put(out);
  }
  void node(const std::string& name, const std::string& cards) {
    kube::node out;
    out.key.name = name;
    out.resource_version = ++version_;
    out.id = kube::uid::parse("6d1f0c1e-0000-4000-8000-0000000000ff");
    out.labels = packed({{"cards", cards}});
    out.ready = kube::condition_status::yes;
    out.container_runtime = "containerd://2.1.4";
    nodes.put(out);
  }
  /// By the agent.
  void report(const std::string& node, const std::string& state) {
    const auto path = reports_path + node;
    auto object = server.objects.contains(path) ? server.objects.at(path) : json{{"metadata", {{"name", node}}}};
    object["status"]["preflight"] = {{{"check", "container_toolkit"}, {"state", "ok"}},
                                     {{"check", "default_runtime"}, {"found", "runc"}, {"state", state}}};
    server.put(path, object);
  }
  /// By the kubelet.
  void end_pod(const std::string& phase, const std::string& message) {
    auto pod = server.objects.at(pod_path);
    pod["status"] = {{"phase", phase},
                     {"containerStatuses", json::array({{{"state", {{"terminated", {{"message", message}}}}}}})}};
    server.put(pod_path, pod);
  }
  controller::action turn() {
    const auto done = run(subject.reconcile(runtime_fixer::only()));
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(controller::action());
  }
  void settle() {
    for (int i = 0; i < 5; ++i) turn();
  }
  std::string node_of_pod() const {
    return server.objects.contains(pod_path) ? server.objects.at(pod_path)["spec"]["nodeName"].get<std::string>() : "";
  }
  json fix_of(const std::string& node) const {
    return server.objects.at(reports_path + node)["status"].value("runtimeFix", json());
  }

 private:
  std::uint64_t version_ = 1;
};

TEST_F(fixing, S6_goes_node_by_node_and_tells_what_was_written) {
  settle();
  EXPECT_EQ(node_of_pod(), "gpu-1");
  EXPECT_THAT(server.writes(), ElementsAre("apply " + pod_path));
  EXPECT_EQ(subject.state()->reason, "Fixing");

  end_pod("Succeeded",
          "wrote /etc/containerd/conf.d/99-quartermaster.toml\nto take effect: systemctl restart containerd\n");
  settle();
  EXPECT_EQ(node_of_pod(), "gpu-1") << "until the agent has seen it";
  EXPECT_EQ(fix_of("gpu-1").value("result", ""), "Done");
  EXPECT_THAT(
      fix_of("gpu-1").value("message", ""),
      words::has_in_order({"wrote /etc/containerd/conf.d/99-quartermaster.toml; ", "systemctl restart containerd"}));
  EXPECT_EQ(fix_of("gpu-1").value("at", ""),
            controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(wall))));
  ASSERT_EQ(recorder.events.size(), 1U);
  EXPECT_EQ(recorder.events[0].reason, "ContainerRuntimeFixed");
  EXPECT_EQ(recorder.events[0].about.key.name, "gpu-1");

  report("gpu-1", "ok");
  turn();
  EXPECT_EQ(node_of_pod(), "");
  settle();
  EXPECT_EQ(node_of_pod(), "gpu-2");
  end_pod("Succeeded", "nothing to do: containerd is set up already");
  settle();
  report("gpu-2", "ok");
  settle();
  EXPECT_EQ(node_of_pod(), "");
  EXPECT_EQ(fix_of("cpu-1"), json()) << "the policy does not select it";
  EXPECT_EQ(subject.state()->status, "True");
  EXPECT_EQ(words::line_of(subject.state()->message), "status.runtimes.summary.many{number=2,left=0}");

  server.forget();
  news = 0;
  settle();
  EXPECT_THAT(server.writes(), IsEmpty());
  EXPECT_EQ(news, 0);
}

TEST_F(fixing, halts_on_a_failure_until_the_policy_changes) {
  turn();
  end_pod("Failed", "quartermaster: /etc/containerd/config.toml is not there");
  settle();
  EXPECT_EQ(node_of_pod(), "gpu-1");
  EXPECT_EQ(subject.state()->reason, "Halted");
  EXPECT_THAT(words::line_of(subject.state()->message),
              HasSubstr("node=gpu-1,text=quartermaster: /etc/containerd/config.toml is not there"));
  EXPECT_EQ(fix_of("gpu-1").value("result", ""), "Failed");
  ASSERT_EQ(recorder.events.size(), 1U);
  EXPECT_EQ(recorder.events[0].reason, "ContainerRuntimeNotFixed");
  EXPECT_EQ(recorder.events[0].type, controller::event_type::warning);

  node("gpu-1", "other");
  settle();
  EXPECT_EQ(node_of_pod(), "gpu-2") << "the policy does not select it any more";
}

TEST_F(fixing, without_the_field_takes_the_pod_away_and_says_nothing) {
  turn();
  end_pod("Succeeded", "wrote x");
  select({});
  settle();
  EXPECT_EQ(node_of_pod(), "");
  EXPECT_EQ(fix_of("gpu-1").value("result", ""), "Done") << "what happened is reported all the same";
  EXPECT_FALSE(subject.state());
}

TEST_F(fixing, says_on_the_policy_why_no_pod_can_be_made) {
  server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.starts_with(pod_path)) return std::nullopt;
    return recording_transport::refused(403, "Forbidden", "violates PodSecurity baseline");
  };
  EXPECT_EQ(turn().again_in, std::chrono::seconds(60));
  EXPECT_EQ(subject.state()->reason, "Halted");
  EXPECT_THAT(words::line_of(subject.state()->message), HasSubstr("violates PodSecurity baseline"));
  server.interfere = nullptr;
  turn();
  EXPECT_EQ(node_of_pod(), "gpu-1");
  EXPECT_EQ(subject.state()->reason, "Fixing");
}

TEST_F(fixing, makes_no_second_pod_before_the_watch_shows_the_first) {
  server.watch = nullptr;
  turn();
  turn();
  EXPECT_THAT(server.writes(), ElementsAre("apply " + pod_path));
}

TEST_F(fixing, the_answer_of_a_pod_is_harmless) {
  turn();
  end_pod("Failed", "\x1b[31mred\nline" + std::string(5000, 'x'));
  settle();
  const auto message = fix_of("gpu-1").value("message", "");
  EXPECT_LE(message.size(), 1100U);
  EXPECT_THAT(message, testing::StartsWith("\\u{1b}[31mred; linexxx"));
}

/// As `agent fix-runtime --in-pod` writes it.
std::string coded(const text::phrase& answer) {
  json object;
  controller::set_message(object, answer);
  return object.dump();
}

TEST_F(fixing, the_answer_of_a_pod_has_its_code) {
  turn();
  end_pod("Failed", coded({"fix_runtime.no_toolkit", {{"file", "/usr/bin/x"}}}));
  settle();
  const auto fix = fix_of("gpu-1");
  EXPECT_EQ(fix["message"], words::english("fix_runtime.no_toolkit", {{"file", "/usr/bin/x"}}));
  EXPECT_EQ(fix["cause"], "fix_runtime.no_toolkit");
  EXPECT_EQ(fix["parameters"], (json{{"file", "/usr/bin/x"}}));
  const auto chinese = words_of(subject.state()->message, text::language::zh);
  EXPECT_THAT(chinese, testing::HasSubstr(words::chinese("fix_runtime.no_toolkit", {{"file", "/usr/bin/x"}})));
  EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
}

TEST_F(fixing, asks_for_rights_that_the_chart_gives) {
  turn();
  end_pod("Succeeded", "wrote x");
  settle();
  report("gpu-1", "ok");
  settle();
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(fixing, looks_only_at_changes_that_matter) {
  const auto* node = nodes.find({{}, "gpu-1"});
  auto other = *node;
  other.capacity.emplace_back("nvidia.com/gpu", 8);
  EXPECT_THAT(subject.affected_by(node, &other), IsEmpty());
  other.ready = kube::condition_status::no;
  EXPECT_EQ(subject.affected_by(node, &other).size(), 1U);
  const auto* report = reports.find({{}, "gpu-1"});
  auto changed = *report;
  changed.driver = "550";
  EXPECT_THAT(subject.affected_by(report, &changed), IsEmpty());
  changed.default_runtime = api::check_state::ok;
  EXPECT_EQ(subject.affected_by(report, &changed).size(), 1U);
  select({});
  EXPECT_THAT(subject.affected_by(report, &changed), IsEmpty()) << "the policy asks for nothing";
}

TEST(fix_runtime_pod, has_no_more_rights_on_the_node_than_it_needs) {
  const auto pod = pod_for("gpu-1", "crio", {"qm", "image:1", "wish", "default", "uid"});
  const auto& spec = pod.at("spec");
  EXPECT_EQ(spec.at("nodeName"), "gpu-1");
  EXPECT_EQ(spec.at("automountServiceAccountToken"), false);
  for (const auto* name : {"hostPID", "hostNetwork", "hostIPC", "initContainers"}) EXPECT_FALSE(spec.contains(name));
  ASSERT_EQ(spec.at("containers").size(), 1U);
  const auto& container = spec.at("containers")[0];
  const auto& context = container.at("securityContext");
  EXPECT_FALSE(context.contains("privileged"));
  EXPECT_EQ(context.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(context.at("readOnlyRootFilesystem"), true);
  EXPECT_EQ(context.at("capabilities"), (json{{"drop", {"ALL"}}}));
  EXPECT_EQ(context.at("seccompProfile").at("type"), "RuntimeDefault");
  std::set<std::string> writable, read_only;
  for (const auto& mount : container.at("volumeMounts"))
    (mount.value("readOnly", false) ? read_only : writable).insert(mount.at("mountPath"));
  EXPECT_THAT(writable, ElementsAre("/etc/crio"));
  EXPECT_THAT(read_only, ElementsAre("/usr/bin"));
  std::set<std::string> folders;
  for (const auto& volume : spec.at("volumes")) folders.insert(volume.at("hostPath").at("path"));
  EXPECT_THAT(folders, ElementsAre("/etc/crio", "/usr/bin"));
}

TEST(fix_runtime_pod, without_an_answer_the_kubelet_has_the_word) {
  EXPECT_EQ(answer_of({{"status", {{"reason", "DeadlineExceeded"}, {"message", "Pod was active"}}}}).key,
            "Pod was active");
  EXPECT_EQ(
      answer_of({{"status",
                  {{"containerStatuses", json::array({{{"state", {{"terminated", {{"reason", "OOMKilled"}}}}}}})}}}})
          .key,
      "OOMKilled");
  EXPECT_EQ(answer_of(json::object()).key, "status.runtimes.no_answer");
}

}  // namespace
}  // namespace reconcilers::container_runtime
