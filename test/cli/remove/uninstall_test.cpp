#include "cli/remove/uninstall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "cli/controller/policy_file.hpp"
#include "kube/client.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scripted_transport.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;

constexpr auto uid = "2083d912-a2b9-4844-b4ea-11be59386882";

kube::node node_with(std::initializer_list<kube::packed_map::entry> labels,
                     std::initializer_list<kube::packed_map::entry> annotations, std::vector<kube::taint> taints) {
  kube::node out;
  out.key.name = "gpu-1";
  out.id = kube::uid::parse(uid);
  out.labels = kube::packed_map::of(labels);
  out.annotations = kube::packed_map::of(annotations);
  out.taints = std::move(taints);
  return out;
}

kube::taint taint_named(std::string key) {
  kube::taint out;
  out.key = std::move(key);
  return out;
}

// A gateway before the API server may answer anything; a DELETE without a name would remove every object of the type.
TEST(uninstall, an_answer_without_name_or_uid_deletes_nothing) {
  boost::asio::io_context loop;
  kube_test::scripted_transport api;
  kube::client client(api);
  for (const auto& answer : {json::object(), json{{"metadata", {{"uid", "u-1"}}}}, json{{"metadata", {{"name", "x"}}}}})
    EXPECT_FALSE(kube_test::run(loop, remove_seen(client, kube::resources::daemon_sets, answer))) << answer;
  EXPECT_TRUE(api.seen().empty());
}

TEST(uninstall, golden_words_of_a_release_whose_namespace_is_gone) {
  const auto text = text_of_orphaned("cards", "gpu", text::language::en);
  EXPECT_THAT(text, words::has_in_order({"namespace gpu is gone", "helm", "release cards"}));
  EXPECT_THAT(text, testing::ContainsRegex("kubectl delete .*clusterrolebindings,clusterroles "
                                           "-l app.kubernetes.io/name=quartermaster,app.kubernetes.io/instance=cards"));
}

TEST(uninstall, a_node_without_anything_of_ours_is_left_alone) {
  const auto node = node_with({{"nvidia-device-enable", "pgpu"}, {"cuda-major-version", "12"}}, {},
                              {taint_named("example.com/reserved")});
  EXPECT_FALSE(enrolled(node));
  EXPECT_EQ(tidy_patch(node), json::array());
}

TEST(uninstall, O6_takes_from_a_node_what_we_wrote_and_tests_whose_it_is) {
  const auto node = node_with({{"quartermaster.io/module", "pgpu"},
                               {"quartermaster.io/taken-over", "true"},
                               {"cuda-major-version", "12"},
                               {"cuda-minor-version", "4"}},
                              {{"state.quartermaster.io/cuda-labels", "12.4"}},
                              {taint_named("example.com/reserved"), taint_named("quartermaster.io/switching")});
  EXPECT_TRUE(enrolled(node));
  EXPECT_EQ(tidy_patch(node), json::parse(R"([
    {"op":"test","path":"/metadata/uid","value":"2083d912-a2b9-4844-b4ea-11be59386882"},
    {"op":"remove","path":"/metadata/labels/quartermaster.io~1module"},
    {"op":"remove","path":"/metadata/labels/quartermaster.io~1taken-over"},
    {"op":"test","path":"/spec/taints/1/key","value":"quartermaster.io/switching"},
    {"op":"remove","path":"/spec/taints/1"},
    {"op":"remove","path":"/metadata/labels/cuda-major-version"},
    {"op":"remove","path":"/metadata/labels/cuda-minor-version"},
    {"op":"remove","path":"/metadata/annotations/state.quartermaster.io~1cuda-labels"}])"));
}

TEST(uninstall, takes_both_taints_of_ours_wherever_they_are) {
  const auto node = node_with({}, {},
                              {taint_named("quartermaster.io/accelerator"), taint_named("example.com/reserved"),
                               taint_named("quartermaster.io/switching")});
  EXPECT_EQ(tidy_patch(node), json::parse(R"([
    {"op":"test","path":"/metadata/uid","value":"2083d912-a2b9-4844-b4ea-11be59386882"},
    {"op":"test","path":"/spec/taints/2/key","value":"quartermaster.io/switching"},
    {"op":"remove","path":"/spec/taints/2"},
    {"op":"test","path":"/spec/taints/0/key","value":"quartermaster.io/accelerator"},
    {"op":"remove","path":"/spec/taints/0"}])"));
}

TEST(uninstall, cuda_labels_that_somebody_changed_since_are_theirs) {
  const auto node = node_with({{"cuda-major-version", "13"}, {"cuda-minor-version", "0"}},
                              {{"state.quartermaster.io/cuda-labels", "12.4"}}, {});
  const auto patch = tidy_patch(node);
  ASSERT_EQ(patch.size(), 2u);
  EXPECT_EQ(patch[1]["path"], "/metadata/annotations/state.quartermaster.io~1cuda-labels");
}

TEST(uninstall, cuda_labels_of_an_earlier_version_are_ours_too) {
  const auto node = node_with({{"cuda-major-version", "12"}, {"cuda-minor-version", "4"}},
                              {{"quartermaster.io/cuda-labels", "12.4"}}, {});
  const auto patch = tidy_patch(node);
  ASSERT_EQ(patch.size(), 4u);
  EXPECT_EQ(patch[3]["path"], "/metadata/annotations/quartermaster.io~1cuda-labels");
}

kube::task<void> read_into(kube::transport& transport, written_objects& written_objects) {
  auto found = co_await read_written(transport);
  if (!found) co_return std::unexpected(found.error());
  written_objects = std::move(*found);
  co_return kube::result<void>();
}

TEST(uninstall, golden_words_name_every_quota_by_namespace) {
  reconcilers::recording_transport server;
  server.answer = [](const kube::request& request) -> kube::result<kube::response> {
    const auto object = [](const char* ns, const char* name) -> json {
      return {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", uid}, {"resourceVersion", "1"}}},
              {"spec", json::object()}};
    };
    auto items = json::array({object("", "default")});
    if (request.target.contains("acceleratorquotas"))
      items = json::array({object("research", "team"), object("lab", "team"), object("lab", "batch")});
    return reconcilers::recording_transport::answered(
        200, {{"kind", "List"}, {"metadata", {{"resourceVersion", "9"}}}, {"items", std::move(items)}});
  };
  written_objects written;
  ASSERT_TRUE(reconcilers::run(read_into(server, written)));
  EXPECT_EQ(words_of(summary_of(written), text::language::en),
            "AcceleratorPolicy default and 3 AcceleratorQuotas in 2 namespaces");
  EXPECT_EQ(list_of_quotas(written, text::language::en), "  lab: batch, team\n  research: team\n");
}

TEST(uninstall, types_that_are_not_there_hold_nothing_of_people) {
  reconcilers::recording_transport server;
  server.answer = [](const kube::request&) -> kube::result<kube::response> {
    return reconcilers::recording_transport::refused(404, "NotFound");
  };
  written_objects written;
  ASSERT_TRUE(reconcilers::run(read_into(server, written)));
  EXPECT_TRUE(written.empty());
  EXPECT_TRUE(summary_of(written).empty());
}

TEST(uninstall, golden_words_of_a_long_list_of_quotas) {
  written_objects written;
  for (int i = 0; i < 25; ++i) written.quotas.push_back({"team-" + std::to_string(100 + i), "cards"});
  const auto list = list_of_quotas(written, text::language::en);
  EXPECT_TRUE(list.starts_with("  team-100: cards\n")) << list;
  EXPECT_TRUE(list.ends_with("  team-119: cards\n  and 5 more namespaces\n")) << list;
}

TEST(uninstall, golden_words_in_Chinese_have_no_English_sentence) {
  written_objects written{{"default"}, {{"lab", "batch"}, {"lab", "team"}}};
  for (int i = 0; i < 25; ++i) written.quotas.push_back({"team-" + std::to_string(100 + i), "cards"});
  const auto locale = text::language::zh;
  const std::vector<kube::object_key> waiting(12, {"lab", "debug"});
  for (const auto& answer : {text_of_orphaned("cards", "gpu", locale), words_of(summary_of(written), locale),
                             list_of_quotas(written, locale), note_of_waiting(waiting, locale)}) {
    EXPECT_TRUE(text::has_cjk(answer)) << answer;
    EXPECT_FALSE(words::has_english_sentence(answer)) << answer;
  }
}

kube::task<void> read_into(kube::transport& transport, std::vector<kube::object_key>& pods) {
  auto found = co_await read_waiting(transport);
  if (!found) co_return std::unexpected(found.error());
  pods = std::move(*found);
  co_return kube::result<void>();
}

TEST(uninstall, reads_pods_that_wait_for_the_scheduler_and_are_not_being_deleted) {
  const auto message = [](const std::function<void(protozero::pbf_writer&)>& fill) {
    std::string out;
    protozero::pbf_writer writer(out);
    fill(writer);
    return out;
  };
  const auto pod = [&](const char* name, bool deleting) {
    return message([&](auto& pod) {
      pod.add_message(1, message([&](auto& meta) {
                        meta.add_string(1, name);
                        meta.add_string(3, "lab");
                        meta.add_string(5, uid);
                        meta.add_string(6, "7");
                        if (deleting) meta.add_message(9, message([](auto& time) { time.add_int64(1, 1700000000); }));
                      }));
    });
  };
  reconcilers::recording_transport server;
  server.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    EXPECT_TRUE(request.target.contains("spec.schedulerName%3Dquartermaster%2Cspec.nodeName%3D%2Cstatus.phase%3DPend"))
        << request.target;
    kube::response out;
    out.status = 200;
    out.content_type = "application/vnd.kubernetes.protobuf";
    out.body = message([&](auto& list) {
      list.add_message(1, message([](auto& meta) { meta.add_string(2, "100"); }));
      list.add_message(2, pod("waits", false));
      list.add_message(2, pod("goes", true));
      list.add_message(2, pod("also", false));
    });
    return out;
  };
  std::vector<kube::object_key> pods;
  ASSERT_TRUE(reconcilers::run(read_into(server, pods)));
  EXPECT_EQ(pods, (std::vector<kube::object_key>{{"lab", "also"}, {"lab", "waits"}}));
}

TEST(uninstall, golden_words_of_pods_that_wait) {
  EXPECT_EQ(note_of_waiting({}, text::language::en), "");
  const std::string command =
      "kubectl get pods -A --field-selector spec.schedulerName=quartermaster,spec.nodeName=,status.phase=Pending\n";
  const auto note = note_of_waiting({{"lab", "debug"}}, text::language::en);
  EXPECT_THAT(note, words::has_in_order({"note: 1 pod waits", "scheduler quartermaster", ":\n  lab/debug\n", command}));
  std::vector<kube::object_key> pods;
  for (int i = 10; i < 22; ++i) pods.push_back({"lab", "pod-" + std::to_string(i)});
  const auto long_note = note_of_waiting(pods, text::language::en);
  EXPECT_TRUE(long_note.starts_with("note: 12 pods wait")) << long_note;
  EXPECT_TRUE(long_note.contains("  lab/pod-19\n  and 2 more\nall of them: " + command)) << long_note;
}

std::string said_of(const std::string& text) {
  const std::string file = testing::TempDir() + "policy.yaml";
  std::ofstream(file) << text;
  const auto read = read_policy_file(file);
  return read ? read->dump() : words::line_of(read.error().arguments.at(1).inner);
}

TEST(policy_file, is_one_policy_that_counts) {
  EXPECT_EQ(said_of("apiVersion: quartermaster.io/v1alpha1\nkind: AcceleratorPolicy\nmetadata: {name: default}\n"
                    "spec: {modules: {pgpu: {enabled: true}}}\n"),
            R"({"apiVersion":"quartermaster.io/v1alpha1","kind":"AcceleratorPolicy","metadata":{"name":"default"},)"
            R"("spec":{"modules":{"pgpu":{"enabled":true}}}})");
  EXPECT_EQ(said_of("kind: ConfigMap\n"),
            "usage.policy.kind{kind=AcceleratorPolicy,version=quartermaster.io/v1alpha1}");
  EXPECT_EQ(said_of("apiVersion: quartermaster.io/v1alpha1\nkind: AcceleratorPolicy\nmetadata: {name: other}\n"),
            "usage.policy.name{value=other,name=default}");
  EXPECT_EQ(said_of(""), "usage.policy.documents{number=0}");
  EXPECT_THAT(said_of("a: ["), testing::StartsWith("yaml.unreadable{"));
}

}  // namespace
}  // namespace cli
