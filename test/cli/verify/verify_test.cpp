#include "cli/verify/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <sstream>
#include <thread>

#include "cli/cluster/fleet.hpp"
#include "cli/verbs.hpp"
#include "test/facts_in.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_server.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using nlohmann::json;
using reconcilers::recording_transport;
using reconcilers::verify::outcome;
using reconcilers::verify::stage_code;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using words::english;
using texts = std::map<std::string, std::string>;
using amounts = std::map<std::string, int>;

// --- the API server's protobuf, by field number
std::string message(const std::function<void(protozero::pbf_writer&)>& fill) {
  std::string out;
  protozero::pbf_writer writer(out);
  fill(writer);
  return out;
}
std::string pair(const std::string& key, const std::string& value) {
  return message([&](auto& writer) {
    writer.add_string(1, key);
    writer.add_string(2, value);
  });
}
std::string metadata(const std::string& ns, const std::string& name, const texts& labels) {
  return message([&](auto& writer) {
    writer.add_string(1, name);
    writer.add_string(3, ns);
    writer.add_string(6, "7");
    for (const auto& [key, value] : labels) writer.add_message(11, pair(key, value));
  });
}
void add_amounts(protozero::pbf_writer& pbf_writer, std::uint32_t field, const amounts& amounts) {
  for (const auto& [key, amount] : amounts) {
    const auto quantity = message([&](auto& q) { q.add_string(1, std::to_string(amount)); });
    pbf_writer.add_message(field, pair(key, quantity));
  }
}
std::string node(const std::string& name, const texts& labels, const amounts& has) {
  const auto status = message([&](auto& writer) {
    add_amounts(writer, 1, has);
    add_amounts(writer, 2, has);
    writer.add_message(4, pair("Ready", "True"));
    writer.add_message(5, pair("Hostname", name));
    writer.add_message(5, pair("InternalIP", "192.0.2.7"));
    writer.add_message(7, message([&](auto& info) {
                         info.add_string(6, "containerd://2.1.4");
                         info.add_string(7, "v1.36.3");
                         info.add_string(9, "linux");
                         info.add_string(10, "amd64");
                       }));
  });
  return message([&](auto& writer) {
    writer.add_message(1, metadata("", name, labels));
    writer.add_message(3, status);
  });
}
std::string pod(const std::string& ns, const std::string& name, const std::string& node_name, const texts& labels,
                const amounts& asks, bool ready) {
  const auto container = message([&](auto& writer) {
    writer.add_string(1, "main");
    writer.add_message(8, message([&](auto& resources) {
                         add_amounts(resources, 1, asks);
                         add_amounts(resources, 2, asks);
                       }));
  });
  return message([&](auto& writer) {
    writer.add_message(1, metadata(ns, name, labels));
    writer.add_message(2, message([&](auto& spec) {
                         spec.add_message(2, container);
                         spec.add_string(10, node_name);
                       }));
    writer.add_message(3, message([&](auto& status) {
                         status.add_string(1, "Running");
                         status.add_message(2, pair("Ready", ready ? "True" : "False"));
                       }));
  });
}
kube::response listed(const std::vector<std::string>& items) {
  kube::response out;
  out.status = 200;
  out.content_type = "application/vnd.kubernetes.protobuf";
  out.body = message([&](auto& writer) {
    writer.add_message(1, message([](auto& meta) { meta.add_string(2, "100"); }));
    for (const auto& item : items) writer.add_message(2, item);
  });
  return out;
}

/// A cluster with one good vgpu node, as the API server tells it.
struct cluster {
  recording_transport transport;
  bool types = true, sees_config_maps = true;
  std::string lease_holder = "quartermaster-1", phase = "Ready";
  std::vector<std::string> pods{
      pod("quartermaster", "gpu-manager-daemonset-x", "gpu-1", {{"quartermaster.io/module", "vgpu"}}, {}, true),
      pod("team", "infer", "gpu-1", {}, {{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 8}}, true)};
  json preflight = json::array();

  cluster() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      return answer(request.target);
    };
  }
  static kube::response items(const json& list) {
    return recording_transport::answered(200, {{"metadata", {{"resourceVersion", "9"}}}, {"items", list}});
  }
  kube::response answer(const std::string& target) const {
    if (target == "/apis/quartermaster.io/v1alpha1") {
      if (!types) return recording_transport::refused(404, "NotFound");
      return recording_transport::answered(200, {{"resources",
                                                  {{{"name", "acceleratorpolicies"}},
                                                   {{"name", "acceleratorpolicies/status"}},
                                                   {{"name", "acceleratornodes"}},
                                                   {{"name", "resourcerules"}}}}});
    }
    if (target.contains("/acceleratorpolicies")) {
      return items({{{"metadata", {{"name", "default"}, {"generation", 1}}},
                     {"spec", {{"modules", {{"vgpu", {{"enabled", true}}}}}}},
                     {"status",
                      {{"observedGeneration", 1},
                       {"summary", "vgpu 1/1"},
                       {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"reason", "RolledOut"}}}}}}},
                    {{"metadata", {{"name", "other"}}}}});
    }
    if (target.contains("/resourcerules")) return items(json::array());
    if (target.contains("/acceleratornodes")) {
      return items({{{"metadata", {{"name", "gpu-1"}}},
                     {"status",
                      {{"requestedMode", "vgpu"},
                       {"actualMode", "vgpu"},
                       {"phase", phase},
                       {"reason", "Enrolled"},
                       {"driver", {{"version", "550.144.03"}, {"cuda", "12.4"}}},
                       {"preflight", preflight},
                       {"cards", {{{"uuid", "GPU-1"}, {"index", 0}, {"health", "Healthy"}}}}}}}});
    }
    if (target.contains("/nodes")) {
      if (target.contains("metadata.name%3Dgone")) return listed({});
      auto all = std::vector{node("gpu-1", {{"nvidia-device-enable", "vGPU"}, {"quartermaster.io/module", "vgpu"}},
                                  {{"tencent.com/vcuda-core", 100}, {"tencent.com/vcuda-memory", 60}})};
      if (!target.contains("metadata.name%3D")) all.push_back(node("worker-1", {}, {}));
      return listed(all);
    }
    if (target.contains("/daemonsets")) {
      const auto status = message([](auto& writer) {
        for (const auto field : {1, 3, 4, 6, 7}) writer.add_int32(static_cast<std::uint32_t>(field), 1);
      });
      return listed({message([&](auto& writer) {
        writer.add_message(1,
                           metadata("quartermaster", "gpu-manager-daemonset", {{"quartermaster.io/module", "vgpu"}}));
        writer.add_message(3, status);
      })});
    }
    if (target.contains("/leases")) {
      const auto now =
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
      const auto spec = message([&](auto& writer) {
        writer.add_string(1, lease_holder);
        writer.add_int32(2, 15);
        writer.add_message(4, message([&](auto& time) { time.add_int64(1, now); }));
      });
      return listed({message([&](auto& writer) {
        writer.add_message(1, metadata("quartermaster", "quartermaster", {}));
        writer.add_message(2, spec);
      })});
    }
    if (target.contains("/pods")) return listed(pods);
    if (target.contains("/configmaps")) {
      if (!sees_config_maps) return recording_transport::refused(403, "Forbidden");
      return listed({message([](auto& writer) {
        writer.add_message(1, metadata("kube-public", "cards", {{"device-plugin.cpaas.io/config", "true"}}));
        writer.add_message(2, pair("deviceName", "vGPU"));
        writer.add_message(2, pair("nodeLabelKey", "cards"));
        writer.add_message(2, pair("nodeLabelValue", "yes"));
      })});
    }
    return recording_transport::refused(404, "NotFound");
  }
  std::unique_ptr<picture> read(const std::string& node_name = "") {
    auto out = std::make_unique<picture>();
    const auto done = reconcilers::run(read_picture(transport, parts(node_name), *out));
    EXPECT_TRUE(done) << done.error().message;
    return out;
  }
  static picture_request parts(const std::string& node_name) {
    return {{part::types, part::policies, part::accelerator_nodes, part::nodes, part::daemon_sets, part::pods},
            {part::device_labels, part::lease, part::quotas, part::old_quotas},
            {},
            node_name};
  }
  reconcilers::verify::report walked() {
    const auto picture = read();
    return walk(view_of(fleet(*picture), {}));
  }
};

std::string printed(const reconcilers::verify::report& report, const std::string& language,
                    const std::string& output = "table") {
  verify_options options;
  options.language = language;
  options.output = output;
  std::ostringstream out;
  print(report, options, out);
  return out.str();
}

TEST(fleet, reads_nodes_pods_policy_and_lease_and_writes_nothing) {
  cluster cluster;
  const auto picture = cluster.read();
  const fleet found(*picture);
  ASSERT_EQ(found.nodes.size(), 2U);
  EXPECT_EQ(found.nodes.front().get().address, "192.0.2.7");
  EXPECT_EQ(found.nodes.front().get().container_runtime, "containerd://2.1.4");
  EXPECT_EQ(picture->leader.ns, "quartermaster") << "where the lease is";
  ASSERT_TRUE(found.policy);
  EXPECT_TRUE(found.policy->enabled("vgpu"));
  EXPECT_EQ(view_of(found, {}).other_policies, std::vector<std::string>{"other"});
  EXPECT_EQ(found.pods.size(), 2U);
  EXPECT_EQ(found.accelerator("gpu-1")->cards.size(), 1U);
  EXPECT_EQ(facts_of(found, found.nodes.front()).driver, "550.144.03") << "as the agent says";
  for (const auto& request : cluster.transport.sent) EXPECT_EQ(request.verb, kube::method::get);
}

TEST(fleet, knows_the_labels_of_device_configurations_where_it_may_see_them) {
  cluster cluster;
  const auto picture = cluster.read();
  ASSERT_EQ(picture->declared.size(), 1U);
  EXPECT_EQ(picture->declared[0], (reconcilers::label_alias{"cards", "yes", "vgpu"}));
  EXPECT_EQ(view_of(fleet(*picture), {}).declared, picture->declared);
  cluster.sees_config_maps = false;
  const auto unseen = cluster.read();
  EXPECT_TRUE(unseen->declared.empty()) << "that they may not be seen is no reason to see nothing";
  EXPECT_TRUE(unseen->unseen.contains(part::device_labels));
  EXPECT_FALSE(view_of(fleet(*unseen), {}).old_quotas_unseen.empty());
}

TEST(fleet, one_node_and_its_pods_only) {
  cluster cluster;
  EXPECT_EQ(cluster.read("gpu-1")->nodes.size(), 1U);
  EXPECT_TRUE(std::ranges::any_of(cluster.transport.sent, [](const auto& request) {
    return request.target.contains("/pods?") && request.target.contains("spec.nodeName%3Dgpu-1");
  }));
  picture empty;
  const auto none = reconcilers::run(read_picture(cluster.transport, cluster.parts("gone"), empty));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "there is no node gone");
}

TEST(verify_verb, S4_golden_lines_of_a_healthy_cluster) {
  cluster cluster;
  const auto found = cluster.walked();
  EXPECT_EQ(printed(found, "en"), "cluster: nothing wrong\ngpu-1 (vgpu): nothing wrong, 2 not known (-o wide)\n");
  EXPECT_EQ(printed(found, "zh"), "集群：没有问题\ngpu-1 (vgpu)：没有问题，2 项无法判断（-o wide）\n");
  EXPECT_THAT(printed(found, "en", "wide"),
              HasSubstr("  ok      resources      allocatable of capacity: tencent.com/vcuda-core 100/100, "
                        "tencent.com/vcuda-memory 60/60\n  ok      pods           1 pod holds cards: team/infer\n"));
}

TEST(verify_verb, S4_what_is_wrong_comes_with_what_to_do) {
  cluster cluster;
  cluster.pods.front() =
      pod("quartermaster", "gpu-manager-daemonset-x", "gpu-1", {{"quartermaster.io/module", "vgpu"}}, {}, false);
  cluster.lease_holder.clear();
  // As the agent judged it: a driver that is there is loaded and not installed.
  cluster.preflight = {{{"check", "driver"}, {"state", "failed"}, {"found", "missing"}, {"remedy", "modprobe nvidia"}}};
  const auto all = json::parse(printed(cluster.walked(), "en", "json"));
  EXPECT_EQ(all.at("problems"), 2);
  EXPECT_EQ(all.at("nodes").at(0).at("problems"), 1);
  EXPECT_EQ(all.at("cluster").back().at("code"), "leader_missing");
  EXPECT_THAT(all.at("cluster").back().at("remedy").at("zh").get<std::string>(),
              words::chinese("verify.leader_missing.remedy"));
}

TEST(verify_verb, S4_golden_table_of_what_is_wrong) {
  cluster cluster;
  cluster.lease_holder.clear();
  // As the agent judged it: a driver that is there is loaded and not installed.
  cluster.preflight = {{{"check", "driver"}, {"state", "failed"}, {"found", "missing"}, {"remedy", "modprobe nvidia"}}};
  const auto text = printed(cluster.walked(), "en");
  EXPECT_THAT(text, HasSubstr("cluster: 1 problem\n  WRONG   leader         no operator leads"));
  EXPECT_THAT(text, HasSubstr("gpu-1 (vgpu): 1 problem\n"
                              "  WRONG   preflight      NVIDIA driver: missing\n"
                              "                         do: modprobe nvidia\n"));
  EXPECT_THAT(text, Not(HasSubstr("node is not")));
}

// "cluster: nothing wrong" above a node with a problem was read as an answer to what the node's line says.
TEST(verify_verb, S4_golden_heading_of_a_cluster_whose_node_has_a_problem) {
  cluster cluster;
  cluster.preflight = {{{"check", "driver"}, {"state", "failed"}, {"found", "missing"}, {"remedy", "modprobe nvidia"}}};
  const auto found = cluster.walked();
  EXPECT_THAT(printed(found, "en"),
              StartsWith("cluster: its own parts are in order; 1 node is not\ngpu-1 (vgpu): 1 problem\n"));
  EXPECT_THAT(printed(found, "zh"), StartsWith("集群：自身没有问题；1 个节点有问题\ngpu-1 (vgpu)："));
}

TEST(verify_verb, S1_golden_rows_are_as_the_agent_judged_them) {
  cluster cluster;
  cluster.preflight = {
      {{"check", "nouveau"}, {"state", "ok"}, {"found", "not loaded"}},
      {{"check", "cdi"}, {"state", "failed"}, {"found", "old\x1b[2J"}, {"remedy", "renew it"}},
      {{"check", "dev_char"}, {"state", "warning"}, {"found", "no link"}, {"remedy", "make links"}},
      {{"check", "kubelet_pod_resources"}, {"state", "unknown"}, {"found", "/var is not mounted"}},
      {{"check", "container_toolkit"}, {"state", "unknown"}, {"found", "/usr is not mounted"}},
      {{"check", "cgroup"}, {"state", "ok"}, {"found", "v1"}},
      {{"check", "rdma_ports"},
       {"state", "warning"},
       {"found", "its own text"},
       {"cause", "links_missing"},
       {"parameters", {{"links", "195:0\x1b[2J"}}}},
  };
  const auto found = cluster.walked();
  const auto text = printed(found, "en", "wide");
  EXPECT_THAT(text, HasSubstr("gpu-1 (vgpu): 1 problem\n"));
  EXPECT_THAT(text, HasSubstr("  WRONG   preflight      cdi: old\\u{1b}[2J\n                         do: renew it\n"));
  EXPECT_THAT(text, HasSubstr("preflight      dev_char: no link\n                         do: make links\n"));
  EXPECT_THAT(text, HasSubstr("  ok      preflight      nouveau: not loaded\n"));
  EXPECT_THAT(text, HasSubstr("preflight      kubelet_pod_resources: /var is not mounted\n"));
  EXPECT_THAT(text, HasSubstr("preflight      NVIDIA container toolkit is not reported: /usr is not mounted"));
  EXPECT_THAT(text, HasSubstr("  ok      preflight      cgroup: v1\n"));
  EXPECT_THAT(text, HasSubstr("preflight      rdma_ports: /dev/char has no link for 195:0\\u{1b}[2J\n"));
  EXPECT_THAT(printed(found, "zh", "wide"), HasSubstr("rdma_ports：/dev/char 中缺少 195:0\\u{1b}[2J 的链接\n"));
  const auto all = json::parse(printed(found, "en", "json"));
  std::map<std::string, std::string> outcomes;
  for (const auto& step : all.at("nodes").at(0).at("steps"))
    if (step.contains("check")) outcomes[step.at("check")] = step.at("outcome");
  EXPECT_EQ(outcomes.at("cdi"), "wrong");
  EXPECT_EQ(outcomes.at("dev_char"), "warning");
  EXPECT_EQ(outcomes.at("container_toolkit"), "unknown");
  EXPECT_EQ(outcomes.at("kubelet_pod_resources"), "unknown");
}

TEST(verify_verb, texts_of_the_cluster_neither_break_a_line_nor_reach_the_terminal) {
  reconcilers::verify::report found;
  found.cluster.push_back({reconcilers::verify::stage::scheduler,
                           outcome::wrong,
                           stage_code::control_plane_node_stopped,
                           "cp-1\x1b[2J",
                           "no\nquartermaster: all is well\x1b]0;x\x07",
                           {}});
  for (const auto* entry : {"en", "zh"}) {
    const auto text = printed(found, entry);
    EXPECT_THAT(text, HasSubstr("no quartermaster: all is well\\u{1b}]0;x\\u{7}"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "the remedy names the node too";
    EXPECT_EQ(std::ranges::count(text, '\n'), 4) << "the title, what is wrong, what to do, no node";
  }
}

TEST(verify_verb, a_namespace_that_can_be_none_is_wrong_usage) {
  for (const auto* ns : {"", "a/b", "a.b", "../x", "A", "-a", "a-", "a b"}) {
    CLI::App app;
    int rc = -1;
    add_verify(app, rc);
    std::vector<std::string> last_first{ns, "--allocate-namespace", "--scheduler", "verify"};
    EXPECT_THROW(app.parse(std::move(last_first)), CLI::ValidationError) << ns;
    EXPECT_EQ(rc, -1) << "nothing was asked";
  }
}

TEST(verify_verb, without_our_types_that_is_what_is_wrong) {
  cluster cluster;
  cluster.types = false;
  const auto text = printed(cluster.walked(), "en");
  EXPECT_THAT(text, HasSubstr(english("verify.types_missing.wrong",
                                      {{"value", "acceleratorpolicies, acceleratornodes, resourcerules"}})));
  EXPECT_THAT(text, Not(HasSubstr(english("verify.stage.leader.name"))));
}

// --- exit codes

/// The cluster behind a port, as the verb meets it. The server has a thread of its own, because the verb blocks.
class served_cluster {
 public:
  explicit served_cluster(cluster& cluster)
      : server_(loop_, ca_.issue(),
                [this, &cluster](const kube_test::seen_request& request) { return answer(cluster, request); }) {
    write("ca.crt", ca_.pem());
    write("kubeconfig",
          "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, "
          "user: u}}], users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: '" +
              server_.url() + "', certificate-authority: '" + folder_.path("ca.crt") + "'}}]}");
    thread_ = std::jthread([this] { loop_.run(); });
  }
  served_cluster(const served_cluster&) = delete;
  served_cluster& operator=(const served_cluster&) = delete;
  ~served_cluster() { loop_.stop(); }

  /// Paths that have it in them get 403, or 503.
  std::string forbidden, unavailable;

  /// The exit codes without and with --strict.
  std::pair<int, int> codes() {
    const auto plain = code({"verify"}), strict = code({"verify", "--strict"});
    return {plain, strict};
  }
  /// Of one node.
  int code_of(const std::string& node_name) { return code({"verify", node_name}); }
  std::string output;  ///< of the last of them

 private:
  void write(const std::string& name, const std::string& text) { folder_.write(name, text); }
  kube_test::reply answer(cluster& cluster, const kube_test::seen_request& request) const {
    const bool is_forbidden = !forbidden.empty() && request.target.contains(forbidden);
    const bool is_unavailable = !unavailable.empty() && request.target.contains(unavailable);
    const auto response = is_forbidden     ? recording_transport::refused(403, "Forbidden")
                          : is_unavailable ? recording_transport::refused(503, "ServiceUnavailable")
                                           : cluster.answer(request.target);
    auto out = kube_test::reply::of(response.status, response.body);
    out.headers = {"Content-Type: " + response.content_type};
    return out;
  }
  int code(std::vector<std::string> words) {
    CLI::App app;
    int rc = -1;
    add_verify(app, rc);
    words.insert(words.end(), {"-o", "wide", "--kubeconfig", folder_.path("kubeconfig")});
    std::ranges::reverse(words);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    app.parse(std::move(words));
    output = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    return rc;
  }

  kube_test::scratch_folder folder_;
  boost::asio::io_context loop_{1};
  kube_test::test_ca ca_;
  kube_test::test_server server_;
  std::jthread thread_;
};

/// What the agent reports of a node where everything was looked at and is good.
json every_check() {
  return {{{"check", "container_toolkit"}, {"state", "ok"}, {"found", "1.17.8"}},
          {{"check", "cgroup"}, {"state", "ok"}, {"found", "v1"}}};
}

/// Of a line of the table: how the outcome is marked.
std::string mark(const std::string& name) { return "  " + english("verify_table.outcome." + name) + " "; }

TEST(verify_strict, S4_is_0_only_where_all_was_looked_at_and_all_is_good) {
  cluster cluster;
  cluster.preflight = every_check();
  served_cluster served(cluster);
  EXPECT_EQ(served.codes(), std::pair(0, 0)) << served.output;
  EXPECT_THAT(served.output, Not(HasSubstr(mark("unknown"))));
}

TEST(verify_strict, S4_an_aggregated_API_that_does_not_answer_is_3) {
  cluster cluster;
  cluster.preflight = every_check();
  served_cluster served(cluster);
  served.unavailable = "/apis/view.quartermaster.io/";
  EXPECT_EQ(served.codes(), std::pair(3, 3)) << served.output;
  EXPECT_THAT(served.output, HasSubstr(words::english("verify.view_api_silent.remedy")));
}

TEST(verify_verb, one_node_is_judged_by_what_concerns_it_and_comes_first) {
  cluster cluster;
  cluster.preflight = every_check();
  served_cluster served(cluster);
  served.unavailable = "/apis/view.quartermaster.io/";
  EXPECT_EQ(served.code_of("gpu-1"), 0) << served.output;
  EXPECT_THAT(served.output, StartsWith(english("verify_table.title", {{"title", "gpu-1 (vgpu)"}})));
  EXPECT_THAT(served.output, Not(HasSubstr(english("verify.view_api_silent.remedy"))));
  EXPECT_THAT(served.output, HasSubstr(english("verify_table.other_findings.one", {{"number", "1"}})));
  EXPECT_THAT(served.output, Not(HasSubstr(english("verify_table.follows"))));
  cluster.lease_holder.clear();
  EXPECT_EQ(served.code_of("gpu-1"), 3) << "without a leader nothing is enrolled or repaired: " << served.output;
  EXPECT_THAT(served.output, HasSubstr(english("verify.leader_missing.remedy")));
}

TEST(verify_strict, S4_what_is_not_known_is_0_and_with_strict_3) {
  cluster cluster;
  served_cluster served(cluster);
  EXPECT_EQ(served.codes(), std::pair(0, 3)) << "no agent has reported two checks: " << served.output;
  EXPECT_THAT(served.output, HasSubstr(mark("unknown")));
}

TEST(verify_strict, S4_what_may_not_be_read_is_0_and_with_strict_3) {
  for (const auto* path : {"/leases", "/acceleratorquotas"}) {
    cluster cluster;
    cluster.preflight = every_check();
    served_cluster served(cluster);
    served.forbidden = path;
    EXPECT_EQ(served.codes(), std::pair(0, 3)) << path << "\n" << served.output;
    EXPECT_THAT(served.output, HasSubstr(mark("unknown"))) << path;
  }
}

TEST(verify_strict, S4_a_warning_is_0_and_with_strict_3) {
  cluster cluster;
  cluster.preflight = every_check();
  cluster.preflight.push_back({{"check", "dev_char"}, {"state", "warning"}, {"found", "no link"}});
  served_cluster served(cluster);
  EXPECT_EQ(served.codes(), std::pair(0, 3)) << served.output;
  EXPECT_THAT(served.output, HasSubstr(mark("warning")));
}

TEST(verify_strict, S4_a_change_of_mode_is_0_and_with_strict_3) {
  cluster cluster;
  cluster.preflight = every_check();
  cluster.phase = "Draining";
  served_cluster served(cluster);
  EXPECT_EQ(served.codes(), std::pair(0, 3)) << served.output;
  EXPECT_THAT(served.output, HasSubstr(mark("changing") + english("verify.stage.enrolment.name")));
}

TEST(verify_strict, S4_a_problem_is_3_either_way_and_a_cluster_that_cannot_be_read_1) {
  cluster cluster;
  cluster.preflight = every_check();
  cluster.preflight.front()["state"] = "failed";
  served_cluster served(cluster);
  EXPECT_EQ(served.codes(), std::pair(3, 3)) << served.output;
  served.forbidden = "/nodes";
  EXPECT_EQ(served.codes(), std::pair(1, 1)) << served.output;
}

// --- --allocate

/// An API server for one pod: what it is at each look, its log, and whether it was removed.
struct allocated_pod_server {
  recording_transport transport;
  std::vector<json> looks;  ///< the last one stays
  std::size_t looked = 0;
  kube::response log = recording_transport::answered(200, json("x")),
                 made = recording_transport::answered(201, {{"metadata", {{"name", "v-1"}, {"uid", "u-1"}}}});
  json created;  ///< null: not asked for yet
  bool removed = false;
  std::function<void()> at_look;

  allocated_pod_server() {
    log.body = "NVIDIA_VISIBLE_DEVICES=GPU-1f\nGPU 0: Tesla T4 (UUID: GPU-1f)\n";
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      if (request.verb == kube::method::post) {
        created = json::parse(request.body);
        return made;
      }
      if (request.verb == kube::method::del) {
        EXPECT_THAT(request.body, HasSubstr("u-1"));
        removed = true;
        return recording_transport::answered(200, json::object());
      }
      if (created.is_null()) return recording_transport::refused(404, "NotFound");
      if (request.target.contains("/log")) return log;
      if (at_look) at_look();
      if (looks.empty()) return recording_transport::refused(404, "NotFound");
      return recording_transport::answered(200, looks.at(std::min(looked++, looks.size() - 1)));
    };
  }
  static json in(const std::string& phase) { return {{"status", {{"phase", phase}}}}; }
  kube::result<reconcilers::verify::step> attempt(std::int64_t free = 100, std::chrono::milliseconds silent = {}) {
    reconcilers::verify::node_view node;
    node.node.key.name = "gpu-1";
    node.node.allocatable = {{"tencent.com/vcuda-core", free}, {"tencent.com/vcuda-memory", free}};
    node.claims = {{"team/a", {{"tencent.com/vcuda-core", 20}}}};
    allocate_options options;
    options.look_every = std::chrono::milliseconds(1);
    options.silent_run = silent;
    options.timeout_seconds = 1;
    return reconcilers::run(try_allocation(transport, node, reconcilers::modules::vgpu, options));
  }
  reconcilers::verify::step tried(std::int64_t free = 100) {
    auto out = attempt(free);
    EXPECT_TRUE(out) << out.error().message;
    return out ? std::move(*out) : reconcilers::verify::step();
  }
};

TEST(verify_allocate, S4_runs_a_pod_for_the_smallest_unit_reads_it_and_removes_it) {
  allocated_pod_server server;
  server.looks = {allocated_pod_server::in("Pending"), allocated_pod_server::in("Running"),
                  allocated_pod_server::in("Succeeded")};
  const auto step = server.tried();
  EXPECT_EQ(step.is, outcome::good);
  EXPECT_THAT(step.value, HasSubstr("Tesla T4 (UUID: GPU-1f)"));
  EXPECT_EQ(step.other, "tencent.com/vcuda-core 1, tencent.com/vcuda-memory 1");
  EXPECT_TRUE(server.removed);
  const auto& spec = server.created.at("spec");
  EXPECT_EQ(spec.at("/containers/0/resources/limits"_json_pointer),
            (json{{"tencent.com/vcuda-core", "1"}, {"tencent.com/vcuda-memory", "1"}}));
  EXPECT_EQ(spec.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
                    "matchFields/0"_json_pointer),
            (json{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"gpu-1"}}}));
  EXPECT_FALSE(spec.contains("nodeName")) << "the scheduler takes part";
  EXPECT_EQ(spec.at("activeDeadlineSeconds"), 1);
}

TEST(verify_allocate, S4_a_pod_that_no_kubelet_runs_has_nothing_to_read) {
  allocated_pod_server server;
  server.looks = {allocated_pod_server::in("Running")};
  server.log = recording_transport::refused(500, "InternalError");
  const auto step = server.tried();
  EXPECT_EQ(step.is, outcome::unknown) << "what is not seen is not good";
  EXPECT_TRUE(server.removed);
  reconcilers::verify::report report;
  report.nodes.push_back({"gpu-1", "vgpu", "vgpu", "vgpu", "vgpu", {step}});
  EXPECT_THAT(printed(report, "en"),
              HasSubstr(english("verify_table.pod_sees_unknown",
                                {{"key", "tencent.com/vcuda-core 1, tencent.com/vcuda-memory 1"}})));
}

TEST(verify_allocate, S4_a_pod_that_was_given_a_card_and_sees_none_is_a_finding) {
  allocated_pod_server server;
  server.looks = {allocated_pod_server::in("Succeeded")};
  server.log.body = "NVIDIA_VISIBLE_DEVICES=GPU-1f\nno card is visible\n";
  const auto step = server.tried();
  EXPECT_EQ(step.is, outcome::wrong);
  EXPECT_EQ(step.cause, stage_code::allocation_sees_nothing);
  EXPECT_TRUE(server.removed);
}

TEST(verify_allocate, says_why_a_pod_does_not_run) {
  const std::pair<json, const char*> table[] = {
      {{{"phase", "Pending"},
        {"conditions",
         {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", "0/1 nodes"}}}}},
       "verify.allocation.late_because{cause=Unschedulable: 0/1 nodes}"},
      {{{"phase", "Pending"},
        {"containerStatuses", {{{"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no"}}}}}}}}},
       "verify.allocation.late_because{cause=ImagePullBackOff: no}"},
      {{{"phase", "Failed"}, {"reason", "UnexpectedAdmissionError"}, {"message", "Allocate failed"}},
       "UnexpectedAdmissionError: Allocate failed"},
  };
  const auto remedy = english("verify.allocation_failed.remedy", {{"namespace", "default"}, {"pod", "|"}});
  for (const auto& [status, reason] : table) {
    allocated_pod_server server;
    server.looks = {{{"status", status}}};
    const auto step = server.tried();
    EXPECT_EQ(step.is, outcome::wrong);
    EXPECT_EQ(step.cause, stage_code::allocation_failed);
    const std::string_view late = reason;
    const auto begin = late.find("cause=");
    const std::string cause(begin == late.npos ? late : late.substr(begin + 6, late.size() - begin - 7));
    const auto quoted = english("list.quotation", {{"text", cause}});
    EXPECT_EQ(step.value, begin == late.npos ? quoted : english("verify.allocation.late_because", {{"cause", quoted}}));
    EXPECT_THAT(step.value_zh, HasSubstr(words::chinese("list.quotation", {{"text", cause}})));
    EXPECT_THAT(reconcilers::verify::remedy_of(step, "gpu-1", text::language::en),
                testing::StartsWith(remedy.substr(0, remedy.find('|'))));
    EXPECT_TRUE(server.removed);
  }
}

TEST(verify_allocate, a_pod_that_may_not_be_made_is_a_finding) {
  allocated_pod_server server;
  server.made = recording_transport::refused(422, "Invalid", "spec.containers[0].image: Required value");
  const auto step = server.tried();
  EXPECT_EQ(step.is, outcome::wrong);
  EXPECT_EQ(step.cause, stage_code::test_pod_refused) << "no events are of it";
  EXPECT_THAT(step.value, HasSubstr("Required value"));
  EXPECT_FALSE(server.removed);
}

TEST(verify_allocate, S4_a_full_node_is_not_asked_for_a_card) {
  allocated_pod_server server;
  const auto step = server.tried(20);
  EXPECT_EQ(step.is, outcome::skipped);
  EXPECT_TRUE(server.transport.sent.empty());
}

TEST(verify_allocate, removes_the_pod_on_control_c) {
  allocated_pod_server server;
  server.looks = {allocated_pod_server::in("Pending")};
  server.at_look = [&] {
    if (server.looked == 2) std::raise(SIGINT);
  };
  const auto step = server.attempt();
  ASSERT_FALSE(step) << "nothing is known of the node";
  EXPECT_EQ(step.error().message, english("verify.test_pod.stopped"));
  EXPECT_TRUE(server.removed);
}

TEST(verify_allocate, removes_the_pod_when_the_server_goes_away_and_names_it_when_it_cannot) {
  allocated_pod_server server;
  server.looks = {allocated_pod_server::in("Pending")};
  const auto usual = server.transport.answer;
  server.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (request.verb == kube::method::del) return recording_transport::refused(403, "Forbidden", "may not");
    return usual(request);
  };
  reconcilers::verify::node_view node;
  node.node.allocatable = {{"tencent.com/vcuda-core", 1}, {"tencent.com/vcuda-memory", 1}};
  allocate_options options;
  options.look_every = std::chrono::milliseconds(1);
  options.timeout_seconds = 1;
  const auto out = reconcilers::run(try_allocation(server.transport, node, reconcilers::modules::vgpu, options));
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, HasSubstr("kubectl delete pod -n default quartermaster-verify-"));
}

TEST(verify_allocate, its_pod_runs_as_pods_of_the_module_do) {
  allocate_options options;
  EXPECT_FALSE(allocation_pod("gpu-1", {{"nvidia.com/gpu", 1}}, options).at("spec").contains("runtimeClassName"));
  options.runtime_class = "nvidia";
  options.scheduler = "ours";
  const auto spec = allocation_pod("gpu-1", {{"nvidia.com/gpu", 1}}, options).at("spec");
  EXPECT_EQ(spec.value("runtimeClassName", ""), "nvidia");
  EXPECT_EQ(spec.value("schedulerName", ""), "ours");
}

TEST(verify_allocate, S4_the_smallest_unit_of_each_module) {
  EXPECT_EQ(smallest_unit(reconcilers::modules::pgpu), (kube::quantities{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(smallest_unit(reconcilers::modules::vgpu),
            (kube::quantities{{"tencent.com/vcuda-core", 1}, {"tencent.com/vcuda-memory", 1}}));
  EXPECT_EQ(smallest_unit(reconcilers::modules::mps),
            (kube::quantities{{"nvidia.com/mps-core", 1}, {"nvidia.com/mps-memory", 1}}));
}

}  // namespace
}  // namespace cli
