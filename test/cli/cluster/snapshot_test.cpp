#include "cli/cluster/snapshot.hpp"
#include "cli/cluster/declared_document.hpp"

#include "cli/cluster/fleet.hpp"
#include "cli/explain/explain_pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "kube/projections/from_json.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using extender_test::share;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string lacks(const char* list) { return words::english("snapshot.lacks", {{"name", list}}); }

json node_named(const std::string& name) {
  return {{"metadata",
           {{"name", name},
            {"uid", "00000000-0000-4000-8000-000000000001"},
            {"resourceVersion", "7"},
            {"labels", {{"quartermaster.io/module", "vgpu"}}},
            {"annotations", {{"quartermaster.io/cordon", ""}, {"secret.example.com/x", "hidden"}}}}},
          {"spec", {{"providerID", "hidden"}}},
          {"status",
           {{"allocatable", {{"cpu", "8"}, {"tencent.com/vcuda-core", "100"}, {"tencent.com/vcuda-memory", "64"}}},
            {"images", json::array({"hidden"})}}}};
}

struct snapshot_test : testing::Test {
  reconcilers::recording_transport transport;
  std::map<std::string, json> lists;
  nlohmann::ordered_json taken;

  snapshot_test() {
    auto there = extender_test::document(share("there", 60, 8, "a"));
    there["spec"]["containers"][0]["env"] = {{{"name", "TOKEN"}, {"value", "hidden"}}};
    there["spec"]["containers"][0]["image"] = "hidden";
    lists["/api/v1/nodes"] = json::array({node_named("a")});
    lists["/api/v1/pods"] = {there, extender_test::document(share("p", 60, 8))};
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      const auto path = request.target.substr(0, request.target.find('?'));
      using server = reconcilers::recording_transport;
      if (path.contains("resourcerules")) return server::refused(404, "NotFound");
      if (path.contains("kube-system") || request.target.contains("alauda")) return server::refused(403, "Forbidden");
      if (path == "/apis/quartermaster.io/v1alpha1")
        return server::answered(200, {{"kind", "APIResourceList"}, {"resources", json::array()}});
      const auto& items = lists[path];
      return server::answered(200, {{"kind", "List"},
                                    {"metadata", {{"resourceVersion", "9"}}},
                                    {"items", items.is_null() ? json::array() : items}});
    };
  }
  void take() {
    const auto done = reconcilers::run(take_snapshot(transport, taken));
    ASSERT_TRUE(done) << done.error().message;
  }
};

TEST_F(snapshot_test, what_is_saved_is_judged_as_the_cluster_was) {
  take();
  picture picture;
  const auto read = read_snapshot(taken.dump(), picture);
  ASSERT_TRUE(read) << read.error().key;
  std::ostringstream out, err;
  EXPECT_EQ(explain_pod(picture, {"lab", "p"}, {}, out, err), 3) << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr(words::english("engine.reason.cores")));
  EXPECT_EQ(explain_pod(picture, {"lab", "there"}, {}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr(words::english("explain.share", {{"cores", "60"}, {"memory", "2048"}})));
}

TEST_F(snapshot_test, what_a_pod_says_of_nodes_and_gates_is_saved_and_of_an_older_file_it_is_not_judged) {
  auto& waiting = lists["/api/v1/pods"][1];
  waiting["spec"]["schedulingGates"] = {{{"name", "example.com/quota"}}};
  waiting["spec"]["nodeSelector"] = {{"zone", "far"}};
  waiting["spec"]["containers"][0]["command"] = {"hidden"};
  lists["/api/v1/pods"].erase(0);
  take();
  EXPECT_THAT(taken.dump(), Not(HasSubstr("hidden")));
  const auto codes = [](const nlohmann::ordered_json& file) {
    picture picture;
    EXPECT_TRUE(read_snapshot(file.dump(), picture));
    const auto saved = picture.whole_pods.find({"lab", "p"});
    std::optional<kube::described_pod> whole;
    if (saved != picture.whole_pods.end()) whole = kube::from_json<kube::described_pod>(saved->second).value();
    std::ostringstream out, err;
    explain_pod(picture, {"lab", "p"}, {"json", "en"}, out, err, whole);
    std::string list;
    const auto answer = json::parse(out.str());
    for (const auto& entry : answer["obstacles"]) list += entry["code"].get<std::string>() + " ";
    return list + answer["closed"].dump();
  };
  EXPECT_THAT(codes(taken), HasSubstr("gated "));
  EXPECT_THAT(codes(taken), HasSubstr("zone"));
  taken.erase("podFields");
  EXPECT_EQ(codes(taken), "not_read {}");
}

TEST_F(snapshot_test, declarations_are_judged_again_and_where_there_are_none_that_is_said) {
  take();
  EXPECT_THAT(taken["unseen"]["declarations"].get<std::string>(), HasSubstr("Forbidden"));
  const auto read = [this] {
    picture out;
    EXPECT_TRUE(read_snapshot(taken.dump(), out));
    return std::pair(out.refused_declarations, out.declarations_unseen.empty());
  };
  EXPECT_THAT(read(), testing::Pair(testing::IsEmpty(), false));
  taken.erase("unseen");
  EXPECT_THAT(read(), testing::Pair(testing::IsEmpty(), false)) << "an older file";
  kube::config_map broken;
  broken.key = {"kube-public", "cf-crl-lab-fpga"};
  std::vector<kube::packed_map::entry> kinds{{"features.cpaas.io/type", "CustomResourceLimitation"},
                                             {"features.cpaas.io/group", "lab"},
                                             {"features.cpaas.io/enabled", "true"}};
  std::vector<kube::packed_map::entry> fields{{"key", "example.com/fpga"},
                                              {"group", "lab"},
                                              {"dataType", "integer"},
                                              {"limits", "optionl"},
                                              {"requests", "disabled"}};
  broken.labels = kube::packed_map::of(kinds);
  broken.data = kube::packed_map::of(fields);
  taken["declarations"] =
      nlohmann::ordered_json::parse(document_of({.config_maps = {broken}, .runtime_classes = {}}))["configMaps"];
  const auto [refused, known] = read();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].config_map, broken.key);
  EXPECT_TRUE(known);
  taken["declarations"] = "none";
  picture picture;
  EXPECT_FALSE(read_snapshot(taken.dump(), picture));
}

TEST_F(snapshot_test, nothing_is_saved_that_placements_do_not_need) {
  take();
  EXPECT_THAT(taken.dump(), Not(HasSubstr("hidden")));
}

TEST_F(snapshot_test, a_file_that_is_none_is_refused_with_the_place) {
  take();
  const auto read_error = [](const nlohmann::ordered_json& object) {
    picture picture;
    const auto read = read_snapshot(object.dump(), picture);
    return read ? std::string() : words_of(read.error(), text::language::en);
  };
  EXPECT_EQ(read_error("text"), words::english("snapshot.none", {{"version", "quartermaster.io/v1alpha1"}}));
  auto broken = taken;
  broken["nodes"] = 3;
  EXPECT_EQ(read_error(broken), words::english("snapshot.no_list", {{"name", "nodes"}}));
  broken = taken;
  broken["slices"] = nlohmann::ordered_json::array();
  EXPECT_THAT(read_error(broken), HasSubstr("slices"));
  broken = taken;
  broken["pods"].push_back(broken["pods"][0]);
  EXPECT_THAT(read_error(broken), HasSubstr("lab/there"));
  broken = taken;
  broken["pods"].push_back(nlohmann::ordered_json::object());
  EXPECT_EQ(read_error(broken),
            words::english("snapshot.item", {{"name", "pods"}, {"number", "2"}, {"problem", "Pod without a name"}}));
  broken = taken;
  broken["nodes"][0]["metadata"] = "odd";
  EXPECT_THAT(read_error(broken), HasSubstr("Node: "));
}

TEST_F(snapshot_test, a_file_that_ends_too_early_says_where) {
  take();
  const auto text = taken.dump(2);
  const auto error_of = [](const std::string& bytes) {
    picture picture;
    const auto read = read_snapshot(bytes, picture);
    return read ? text::phrase() : read.error();
  };
  for (std::size_t size = 1; size < text.size(); size += 7) {
    const auto part = text.substr(0, size);
    const auto line = std::to_string(1 + std::ranges::count(part, '\n'));
    const auto last = part.substr(part.size() - 1);
    const auto error = error_of(part);
    EXPECT_EQ(error.key, "snapshot.cut") << size;
    if (last != "\n")
      EXPECT_THAT(words_of(error, text::language::en),
                  words::english("snapshot.cut", {{"line", line}, {"byte", std::to_string(size)}}));
  }
  EXPECT_EQ(error_of("").key, "snapshot.empty");
  EXPECT_EQ(error_of(" \n").key, "snapshot.empty");
  EXPECT_EQ(error_of(text + "}").key, "snapshot.no_json");
  EXPECT_EQ(error_of("{\n\"a\": x}").key, "snapshot.no_json");
  EXPECT_EQ(words_of(error_of("{\n\"a\": x}"), text::language::en),
            words::english("snapshot.no_json", {{"line", "2"}, {"byte", "8"}}));
  EXPECT_EQ(error_of("apiVersion: v1\n").key, "snapshot.none");
}

TEST_F(snapshot_test, a_part_that_is_not_in_the_file_is_named_and_not_taken_for_empty) {
  take();
  EXPECT_THAT(taken["unseen"]["configmaps"].get<std::string>(), HasSubstr("403"));
  picture forbidden;
  ASSERT_TRUE(read_snapshot(taken.dump(), forbidden));
  EXPECT_EQ(forbidden.unseen.size(), 1u);
  EXPECT_THAT(words::line_of(forbidden.unseen[part::old_quotas]), HasSubstr("403"));
  taken.erase("leases");  // an older file
  picture old;
  ASSERT_TRUE(read_snapshot(taken.dump(), old));
  EXPECT_EQ(words_of(old.unseen[part::lease], text::language::en), lacks("leases"));
  EXPECT_EQ(words_of(view_of(fleet(old), {}).leader_unseen, text::language::en), lacks("leases"));
  for (const auto* list : {"daemonsets", "deviceConfigs"}) taken.erase(list);
  picture older;
  ASSERT_TRUE(read_snapshot(taken.dump(), older));
  const auto view = view_of(fleet(older), {});
  EXPECT_EQ(words_of(view.sets_unseen, text::language::en), lacks("daemonsets"));
  EXPECT_EQ(words_of(view.labels_unseen, text::language::en), lacks("deviceConfigs"));
}

}  // namespace
}  // namespace cli
