#include "reconcilers/nodes/card_labeler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "test/reconcilers/nodes/gpu_1.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/reconcilers/recording_transport.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr auto node_uid = "00000000-0000-4000-8000-000000000001";
/// One Node, as the API server keeps it under server-side apply: who owns which label or annotation.
struct applied_node {
  std::map<std::string, std::string> labels, annotations;
  std::map<std::string, std::set<std::string>> owners;  ///< by ".metadata.labels.KEY"
  std::uint64_t version = 1;

  /// Another client's plain update.
  void set(const std::string& label, const std::string& value) {
    labels[label] = value;
    owners[".metadata.labels." + label] = {"kubectl-label"};
    ++version;
  }
  void remove(const std::string& label) {
    labels.erase(label);
    owners.erase(".metadata.labels." + label);
    ++version;
  }
  /// `kubectl annotate` of our record.
  void forge(const std::string& record) {
    annotations[std::string(card_labels_annotation)] = record;
    owners[".metadata.annotations." + std::string(card_labels_annotation)] = {"kubectl-annotate"};
    ++version;
  }
  kube::response apply(const std::string& owner, const json& metadata, bool force = false) {
    if (metadata.value("uid", "") != node_uid) return recording_transport::refused(409, "Conflict", "uid mismatch");
    if (metadata.value("resourceVersion", std::to_string(version)) != std::to_string(version))
      return recording_transport::refused(409, "Conflict", "the object has been modified");
    const auto before = std::pair(labels, annotations);
    std::string conflicts;
    for (const auto* part : {"labels", "annotations"})
      for (const auto& [name, value] : metadata.value(part, json::object()).items()) {
        const auto& held = part == std::string("labels") ? labels : annotations;
        const auto field = std::string(".metadata.") + part + "." + name;
        const auto match = held.find(name);
        const bool differs = match != held.end() && match->second != value.get<std::string>();
        if (differs && force) owners[field] = {owner};
        for (const auto& other : owners[field])
          if (differs && other != owner) conflicts += " " + field;
      }
    if (!conflicts.empty())
      return recording_transport::refused(409, "Conflict",
                                          "Apply failed: conflict with \"other\" using v1:" + conflicts);
    for (const auto* part : {"labels", "annotations"}) {
      auto& held = part == std::string("labels") ? labels : annotations;
      const auto wanted = metadata.value(part, json::object());
      for (auto entry = held.begin(); entry != held.end();) {
        auto& owning = owners[std::string(".metadata.") + part + "." + entry->first];
        const bool goes = !wanted.contains(entry->first) && owning.erase(owner) > 0 && owning.empty();
        entry = goes ? held.erase(entry) : std::next(entry);
      }
      for (const auto& [name, value] : wanted.items()) {
        held[name] = value;
        owners[std::string(".metadata.") + part + "." + name].insert(owner);
      }
    }
    if (before != std::pair(labels, annotations)) ++version;
    return recording_transport::answered(200, json::object());
  }
};

class labeling : public testing::Test {
 public:
  applied_node server;
  bool may_force = false;
  recording_transport transport;
  kube::client client{transport};
  controller::store<kube::node> nodes;
  controller::store<api::accelerator_node> reports;
  controller::store<accelerator_policy> policies;
  card_labeler subject{nodes, reports, policies, client};

  labeling() {
    nodes.begin(), nodes.commit(), reports.begin(), reports.commit(), policies.begin(), policies.commit();
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      EXPECT_TRUE(request.target.starts_with("/api/v1/nodes/gpu-1?")) << request.target;
      const bool force = request.target.contains("force=true");
      EXPECT_LE(force, may_force) << request.target;
      const std::string mark = "fieldManager=";
      auto owner = request.target.substr(request.target.find(mark) + mark.size());
      owner.resize(std::min(owner.find('&'), owner.size()));
      return server.apply(owner, json::parse(request.body)["metadata"], force);
    };
    ask({"GPUFeatureDiscovery"});
    report(2);
  }
  void ask(const std::vector<std::string>& families, bool removing = false) {
    accelerator_policy policy;
    policy.key.name = "default";
    policy.card_labels = families;
    policy.removing = removing;
    policies.put(std::move(policy));
  }
  void report(int number, const std::string& owner = node_uid) {
    json object = {
        {"metadata",
         {{"name", "gpu-1"},
          {"uid", node_uid},
          {"ownerReferences", {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "gpu-1"}, {"uid", owner}}}}}},
        {"status", {{"cards", json::array()}}}};
    for (int i = 0; i < number; ++i)
      object["status"]["cards"].push_back(
          {{"uuid", "GPU-" + std::to_string(i)}, {"index", i}, {"model", "Tesla T4"}, {"memoryMiB", 15360}});
    reports.put(*api::accelerator_node::decode(object.dump()));
  }
  void show(bool discovery = false) {
    kube::node node;
    read_metadata({{"metadata",
                    {{"name", "gpu-1"},
                     {"uid", node_uid},
                     {"resourceVersion", std::to_string(server.version)},
                     {"labels", server.labels},
                     {"annotations", server.annotations}}}},
                  node);
    node.has_gpu_discovery = discovery;
    nodes.put(node);
  }
  /// One look; the store is as the server is.
  void turn(bool discovery = false) {
    show(discovery);
    const auto done = run(subject.reconcile(node_key));
    EXPECT_TRUE(done) << done.error().message;
  }
  static constexpr auto product = "nvidia.com/gpu.product", count = "nvidia.com/gpu.count",
                        memory = "nvidia.com/gpu.memory";
};

TEST_F(labeling, writes_once_and_then_nothing) {
  turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "2"), Pair(memory, "15360"), Pair(product, "Tesla-T4")));
  ASSERT_THAT(transport.sent, SizeIs(1));
  EXPECT_TRUE(transport.sent[0].target.contains("fieldManager=quartermaster-card-labels"));
  for (int i = 0; i < 100; ++i) {
    ask({"GPUFeatureDiscovery"});  // a GitOps controller that renders again and again
    turn();
  }
  EXPECT_THAT(transport.sent, SizeIs(1));
}

TEST_F(labeling, a_label_with_another_owner_is_theirs_and_stays) {
  server.set(product, "chosen-by-hand");
  server.set("example.com/team", "a");
  turn();
  EXPECT_EQ(server.labels[product], "chosen-by-hand");
  EXPECT_EQ(server.labels[count], "2");
  ask({});
  turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair("example.com/team", "a"), Pair(product, "chosen-by-hand")));
  EXPECT_THAT(server.annotations, IsEmpty());
}

TEST_F(labeling, what_someone_did_just_now_is_not_undone) {
  turn();
  show();
  report(3);
  server.remove(memory);  // the store does not have either yet
  server.set(product, "just now");
  const auto done = run(subject.reconcile(node_key));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, kube::errc::conflict) << "so that it is tried again";
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "2"), Pair(product, "just now")));
  turn();
  const auto sent = transport.sent.size();
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "3"), Pair(product, "just now")));
  EXPECT_THAT(transport.sent, SizeIs(sent));
}

TEST_F(labeling, another_applier_of_the_same_value_keeps_it) {
  turn();
  server.apply("gitops", {{"uid", node_uid}, {"labels", {{count, "2"}}}});
  report(3);
  turn();
  EXPECT_EQ(server.labels[count], "2") << "changing it would be a conflict";
  const auto sent = transport.sent.size();
  turn();
  EXPECT_THAT(transport.sent, SizeIs(sent));
  ask({});
  turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "2")));
}

TEST_F(labeling, follows_the_cards_and_goes_with_the_report) {
  turn();
  report(1);
  turn();
  EXPECT_EQ(server.labels[count], "1");
  report(0);
  turn();
  EXPECT_THAT(server.labels, IsEmpty());
  EXPECT_THAT(server.annotations, IsEmpty());
  report(1);
  turn();
  EXPECT_THAT(server.labels, SizeIs(3));
  reports.erase(node_key);
  turn();
  EXPECT_THAT(server.labels, IsEmpty());
}

TEST_F(labeling, goes_with_the_policy_and_with_its_removal) {
  turn();
  ask({"GPUFeatureDiscovery"}, true);
  turn();
  EXPECT_THAT(server.labels, IsEmpty());
  ask({"GPUFeatureDiscovery"});
  turn();
  EXPECT_THAT(server.labels, SizeIs(3));
  policies.erase({{}, "default"});
  turn();
  EXPECT_THAT(server.labels, IsEmpty());
}

TEST_F(labeling, a_report_about_an_earlier_node_of_the_name_is_void) {
  report(2, "00000000-0000-4000-8000-00000000000f");
  turn();
  EXPECT_THAT(transport.sent, IsEmpty());
}

TEST_F(labeling, a_label_that_someone_removes_stays_away) {
  turn();
  server.remove(product);
  turn();
  const auto sent = transport.sent.size();
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_FALSE(server.labels.contains(product));
  EXPECT_THAT(transport.sent, SizeIs(sent));
  report(3);
  turn();
  EXPECT_EQ(server.labels[count], "3") << "the others follow the cards";
  EXPECT_FALSE(server.labels.contains(product));
}

/// It writes nothing where the value is right already, so the label would be gone for up to an hour.
TEST_F(labeling, node_feature_discovery_takes_over_without_a_gap) {
  turn();
  turn(true);
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "2"), Pair(memory, "15360"), Pair(product, "Tesla-T4")));
  EXPECT_THAT(server.annotations, IsEmpty());
  const auto sent = transport.sent.size();
  report(1);
  turn(true);
  ask({});
  turn(true);
  EXPECT_THAT(transport.sent, SizeIs(sent)) << "they are not ours any more";
  EXPECT_EQ(server.labels[count], "2");
  ask({"GPUFeatureDiscovery"});
  for (const auto* label : {count, memory, product}) server.remove(label);  // it was removed from the cluster
  turn();
  EXPECT_EQ(server.labels[count], "1") << "and ours come back";
}

TEST_F(labeling, what_cannot_be_written_is_an_error) {
  transport.answer = [](const kube::request&) -> kube::result<kube::response> {
    return recording_transport::refused(403, "Forbidden");
  };
  show();
  EXPECT_FALSE(run(subject.reconcile(node_key)));
  transport.answer = [](const kube::request&) -> kube::result<kube::response> {
    return recording_transport::refused(409, "Conflict",
                                        ".metadata.annotations." + std::string(card_labels_annotation));
  };
  const auto sent = transport.sent.size();
  EXPECT_FALSE(run(subject.reconcile(node_key)));
  EXPECT_THAT(transport.sent, SizeIs(sent + 2)) << "it is taken back once, not again and again";
}

TEST_F(labeling, takes_its_record_back_from_someone_who_wrote_it) {
  may_force = true;
  for (const auto* record : {"x", ",,=,=="}) {
    server.set(product, "chosen-by-hand");
    server.forge(record);
    for (int i = 0; i < 4; ++i) turn();
    EXPECT_THAT(server.labels, ElementsAre(Pair(count, "2"), Pair(memory, "15360"), Pair(product, "chosen-by-hand")))
        << record;
    EXPECT_EQ(server.annotations[std::string(card_labels_annotation)],
              "nvidia.com/gpu.count=2,nvidia.com/gpu.memory=15360");
    const auto sent = transport.sent.size();
    turn();
    EXPECT_THAT(transport.sent, SizeIs(sent));
  }
  may_force = false;
  ask({});
  turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(product, "chosen-by-hand")));
  EXPECT_THAT(server.annotations, IsEmpty());
}

/// A person who may write the record may remove the label, too.
TEST_F(labeling, a_label_that_a_wrong_record_names_counts_as_removed) {
  may_force = true;
  turn();
  server.set(product, "chosen-by-hand");
  server.forge("nvidia.com/gpu.count=7,nvidia.com/gpu.product=chosen-by-hand");
  for (int i = 0; i < 4; ++i) turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(memory, "15360"), Pair(product, "chosen-by-hand")));
}

TEST_F(labeling, takes_no_label_with_its_record) {
  may_force = true;
  turn();
  show();
  server.forge("x");
  server.set(product, "just now");  // the store does not have either yet
  report(3);
  EXPECT_FALSE(run(subject.reconcile(node_key))) << "the node has changed";
  EXPECT_EQ(server.labels[product], "just now");
  for (int i = 0; i < 4; ++i) turn();
  EXPECT_THAT(server.labels, ElementsAre(Pair(count, "3"), Pair(memory, "15360"), Pair(product, "just now")));
}

/// The words of Kubernetes 1.36.
TEST_F(labeling, a_node_that_has_gone_is_no_error) {
  show();
  for (const auto& [code, message] :
       {std::pair(404, "nodes \"gpu-1\" not found"),
        std::pair(409,
                  "Operation cannot be fulfilled on nodes \"gpu-1\": uid mismatch: the provided object specified "
                  "uid 1, and no existing object was found"),
        std::pair(422, "Node \"gpu-1\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable")}) {
    transport.answer = [&](const kube::request&) -> kube::result<kube::response> {
      return recording_transport::refused(code,
                                          code == 404   ? "NotFound"
                                          : code == 409 ? "Conflict"
                                                        : "Invalid",
                                          message);
    };
    EXPECT_TRUE(run(subject.reconcile(node_key))) << message;
  }
}

TEST_F(labeling, reads_the_conflicts_of_a_real_server) {
  show();
  int times = 0;
  transport.answer = [&](const kube::request&) -> kube::result<kube::response> {
    if (++times > 1) return recording_transport::answered(200, json::object());
    return recording_transport::refused(
        409, "Conflict",
        "Apply failed with 2 conflicts: conflicts with \"gitops\":\n- "
        ".metadata.labels.nvidia.com/gpu.count\n- .metadata.labels.nvidia.com/gpu.memory");
  };
  EXPECT_TRUE(run(subject.reconcile(node_key)));
  ASSERT_THAT(transport.sent, SizeIs(2));
  EXPECT_EQ(json::parse(transport.sent[1].body)["metadata"]["labels"], json({{product, "Tesla-T4"}}));
}

/// The name of a manager, or a label of others that begins like ours, may have the words of our field in it.
TEST_F(labeling, finds_its_field_in_a_conflict_behind_a_longer_one_that_begins_alike) {
  const std::string field = ".metadata.labels." + std::string(count);
  for (const auto& [message, is_named] :
       {std::pair(field + "-x\n- " + field, true), std::pair(field + "-x, " + field + ".y, " + field + ", z", true),
        std::pair(field + "-x " + field + ".y", false)}) {
    show();
    transport.sent.clear();
    transport.answer = [&](const kube::request&) -> kube::result<kube::response> {
      if (transport.sent.size() > 1) return recording_transport::answered(200, json::object());
      return recording_transport::refused(409, "Conflict", message);
    };
    EXPECT_EQ(run(subject.reconcile(node_key)).has_value(), is_named) << message;
    EXPECT_THAT(transport.sent, SizeIs(is_named ? 2 : 1)) << message;
    if (is_named) EXPECT_FALSE(json::parse(transport.sent.back().body)["metadata"]["labels"].contains(count));
  }
}

TEST_F(labeling, looks_at_a_node_again_only_where_something_of_it_changed) {
  show();
  auto before = *nodes.find(node_key), after = before;
  after.resource_version += 1;
  after.ready = kube::condition_status::yes;
  EXPECT_THAT(subject.affected_by(&before, &after), IsEmpty()) << "a heartbeat";
  after.has_gpu_discovery = true;
  EXPECT_THAT(subject.affected_by(&before, &after), ElementsAre(node_key));
  reports.erase(node_key);
  EXPECT_THAT(subject.affected_by(&before, &after), IsEmpty()) << "no agent, and no label that we wrote";
}

}  // namespace
}  // namespace reconcilers
