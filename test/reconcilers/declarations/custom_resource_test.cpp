#include "reconcilers/declarations/custom_resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using declarations::config_map_text;
using declarations::sound;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// kube-public with its ConfigMaps as JSON: applies JSON patches as the API server does and hands the result to the
/// stores, as watches would.
class api_server {
 public:
  struct config_map {
    config_map_text text;
    json metadata;
  };

  custom_resource::config_maps alauda, cpaas, devices;
  controller::store<api::compiled_rules> compiled;
  recording_transport transport;
  kube::client client{transport};
  recording_recorder recorder;
  custom_resource judge{{&alauda, &cpaas, &devices}, client, recorder, {}, nullptr, &compiled};
  std::map<std::string, config_map> objects;
  std::uint64_t version = 100;
  bool watches_lag = false;  ///< changes are not handed to the stores until catch_up()

  api_server() {
    for (auto* store : {&alauda, &cpaas, &devices}) {
      store->begin();
      store->commit();
    }
    compiled.begin();
    compiled.commit();
    transport.answer = [this](const kube::request& request) { return patch(request); };
  }

  /// The ResourceRules object has a rule of each of these.
  std::vector<kube::object_key> compile(const std::vector<config_map_text>& config_map_texts) {
    declarations::registry all;
    for (const auto& config_map_text : config_map_texts) all.put(config_map_text.view());
    const auto* now = compiled.find(api::compiled_rules::only());
    const auto before = now ? std::optional(*now) : std::nullopt;
    api::compiled_rules after;
    after.key = api::compiled_rules::only();
    after.resource_version = ++version;
    after.spec = declarations::spec_of(all.compile()).dump();
    compiled.put(after);
    return judge.affected_by(before ? &*before : nullptr, &after);
  }

  void put(const config_map_text& text, const json& annotations = json::object()) {
    auto& object = objects[text.key.name];
    const auto number = std::to_string(10'000 + objects.size());
    if (object.metadata.is_null()) object.metadata["uid"] = "00000000-0000-4000-8000-0000000" + number;
    object.text = text;
    if (!annotations.empty()) object.metadata["annotations"] = annotations;
    changed(object);
  }
  void erase(const std::string& name) {
    const auto last = projection(objects.at(name));
    objects.erase(name);
    for (auto* store : {&alauda, &cpaas, &devices}) store->erase(last);
  }
  /// The watch of a label sends DELETED when the label goes away.
  void unlabel(const std::string& name) {
    auto& object = objects.at(name);
    const auto last = projection(object);
    object.text.labels.clear();
    object.metadata["resourceVersion"] = std::to_string(++version);
    for (auto* store : {&alauda, &cpaas, &devices}) store->erase(last);
  }
  void catch_up() {
    watches_lag = false;
    for (auto& [name, object] : objects) hand_out(object);
  }
  json annotations(const std::string& name) const { return objects.at(name).metadata.value("annotations", json()); }
  std::string verdict(const std::string& name) const {
    const auto all = annotations(name);
    return all.is_object() && all.contains("quartermaster.io/verdict")
               ? json::parse(std::string(all["quartermaster.io/verdict"]))["verdict"]
               : "none";
  }
  kube::result<controller::action> reconcile(const config_map_text& config_map_text) {
    return run(judge.reconcile(config_map_text.key));
  }
  std::size_t writes() const { return transport.sent.size(); }

 private:
  static kube::config_map projection(const config_map& source) {
    kube::config_map out;
    out.key = source.text.key;
    out.id = kube::uid::parse(source.metadata["uid"].get<std::string>());
    out.resource_version = std::stoull(source.metadata["resourceVersion"].get<std::string>());
    out.created = source.text.created;
    out.labels = packed(source.text.labels);
    out.data = packed(source.text.data);
    std::map<std::string, std::string> kept;
    for (const auto& [name, value] : source.metadata.value("annotations", json::object()).items()) {
      if (name.starts_with("quartermaster.io/")) kept[name] = value;
    }
    out.annotations = packed(kept);
    return out;
  }
  void changed(config_map& object) {
    object.metadata["resourceVersion"] = std::to_string(++version);
    if (!watches_lag) hand_out(object);
  }
  void hand_out(const config_map& object) {
    const auto is = [&](const char* label, const char* value) {
      const auto match = object.text.labels.find(label);
      return match != object.text.labels.end() && match->second == value;
    };
    if (is("features.alauda.io/type", "CustomResourceLimitation")) alauda.put(projection(object));
    if (is("features.cpaas.io/type", "CustomResourceLimitation")) cpaas.put(projection(object));
    if (is("device-plugin.cpaas.io/config", "true")) devices.put(projection(object));
  }

  kube::result<kube::response> patch(const kube::request& request) {
    EXPECT_EQ(request.verb, kube::method::patch);
    EXPECT_EQ(request.content_type, "application/json-patch+json");
    const std::string prefix = "/api/v1/namespaces/kube-public/configmaps/";
    EXPECT_TRUE(request.target.starts_with(prefix)) << request.target;
    const auto name = request.target.substr(prefix.size(), request.target.find('?') - prefix.size());
    const auto match = objects.find(name);
    if (match == objects.end()) return recording_transport::refused(404, "NotFound");
    json document{{"metadata", match->second.metadata}};
    try {
      document = document.patch(null_tests_resolved(json::parse(request.body), document));
    } catch (const json::exception& wrong) {
      return recording_transport::refused(422, "Invalid", wrong.what());
    }
    match->second.metadata = document["metadata"];
    changed(match->second);
    return recording_transport::answered(200, document);
  }
  /// evanphx/json-patch: a test for null holds where the member is absent. RFC 6902 and nlohmann say it fails.
  static json null_tests_resolved(const json& patch, const json& document) {
    json out = json::array();
    for (const auto& operation : patch) {
      const bool null_test = operation["op"] == "test" && operation["value"].is_null();
      if (!null_test || document.contains(json::json_pointer(operation["path"].get<std::string>())))
        out.push_back(operation);
    }
    return out;
  }
};

TEST(custom_resource, S23_writes_the_verdict_and_one_event_and_then_nothing_more) {
  api_server server;
  const auto bad = sound().with("limits", "requried");
  server.put(bad, {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(server.writes(), 1U);
  EXPECT_EQ(server.verdict(bad.key.name), "refused");
  EXPECT_EQ(server.annotations(bad.key.name)["team"], "lab");
  ASSERT_EQ(server.recorder.events.size(), 1U);
  const auto& event = server.recorder.events[0];
  EXPECT_EQ(event.type, controller::event_type::warning);
  EXPECT_EQ(event.reason, "Refused");
  EXPECT_EQ(event.about.kind, "ConfigMap");
  EXPECT_EQ(event.about.key, bad.key);
  EXPECT_FALSE(event.about.uid.empty());
  for (const auto* part : {"data.limits", "requried", "disabled, required, optional"}) {
    EXPECT_THAT(event.note, HasSubstr(part));
  }
  EXPECT_THAT(event.note,
              HasSubstr(words::english("declaration.not_in_vocabulary.remedy_with_hint", {{"hint", "required"}})));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(server.writes(), 1U);
  EXPECT_EQ(server.recorder.events.size(), 1U);
}

TEST(custom_resource, F36_a_refused_one_says_whether_what_was_accepted_last_stays_in_force) {
  api_server server;
  const auto good = sound(), bad = sound().with("limits", "requried");
  const auto read_meanwhile = [&] {
    return json::parse(std::string(server.annotations(good.key.name)["quartermaster.io/verdict"]))
        .value("meanwhile", "");
  };
  server.put(good);
  EXPECT_THAT(server.compile({good}), ElementsAre(good.key));
  ASSERT_TRUE(server.reconcile(good));
  EXPECT_EQ(read_meanwhile(), "");
  server.put(bad);
  ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(server.verdict(bad.key.name), "refused");
  EXPECT_EQ(read_meanwhile(), words::english("declaration_note.kept"));
  EXPECT_THAT(server.recorder.events.back().note, HasSubstr(words::english("declaration_note.kept")));
  EXPECT_THAT(server.compile({}), ElementsAre(good.key)) << "the policy was deleted";
  ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(read_meanwhile(), "") << "nothing is in force any more";
  server.compile({good});
  server.put(bad.labelled("features.cpaas.io/enabled", "false"));
  ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(read_meanwhile(), "") << "switched off: the rule is about to go";
  EXPECT_THAT(server.compile({good}), IsEmpty()) << "the same rules";
}

TEST(custom_resource, creates_the_annotations_of_an_object_that_has_none) {
  api_server server;
  server.put(sound());
  const auto done = server.reconcile(sound());
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->again_in);
  EXPECT_EQ(server.writes(), 2U) << "the first is refused because the parent is missing";
  EXPECT_EQ(server.verdict(sound().key.name), "accepted");
  EXPECT_EQ(server.recorder.events.at(0).reason, "Accepted");
  EXPECT_EQ(server.recorder.events.at(0).type, controller::event_type::normal);
}

TEST(custom_resource, never_wipes_annotations_that_came_in_between) {
  api_server server;
  server.put(sound());
  server.watches_lag = true;
  server.put(sound(), {{"team", "lab"}});
  const auto lost = server.reconcile(sound());
  EXPECT_FALSE(lost.has_value() && !lost->again_in) << "it must come again";
  EXPECT_EQ(server.annotations(sound().key.name), (json{{"team", "lab"}}));
  server.catch_up();
  ASSERT_TRUE(server.reconcile(sound()));
  EXPECT_EQ(server.annotations(sound().key.name)["team"], "lab");
  EXPECT_EQ(server.verdict(sound().key.name), "accepted");
}

TEST(custom_resource, looks_again_when_the_object_changed_under_it) {
  api_server server;
  const auto bad = sound().with("limits", "requried");
  server.put(bad, {{"team", "lab"}});
  const auto patch = server.transport.answer;
  bool mended = false;
  server.transport.answer = [&](const kube::request& request) {
    if (!std::exchange(mended, true)) server.put(sound(), {{"team", "lab"}});  // between our look and our write
    return patch(request);
  };
  const auto first = server.reconcile(bad);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->again_in);
  EXPECT_THAT(server.recorder.events, IsEmpty()) << "nothing was refused";
  ASSERT_TRUE(server.reconcile(bad));
  EXPECT_EQ(server.verdict(bad.key.name), "accepted");
}

TEST(custom_resource, answers_of_the_server_decide_what_comes_next) {
  const auto outcome = [](int status, const char* reason) {
    api_server server;
    server.put(sound(), {{"quartermaster.io/note", "x"}});
    server.transport.answer = [&](const kube::request&) { return recording_transport::refused(status, reason); };
    auto out = server.reconcile(sound());
    EXPECT_EQ(server.writes(), 1U);
    EXPECT_THAT(server.recorder.events, IsEmpty());
    return out;
  };
  EXPECT_FALSE(outcome(404, "NotFound")->again_in) << "gone";
  EXPECT_TRUE(outcome(409, "Conflict")->again_in);
  EXPECT_EQ(outcome(422, "Invalid").error().code, kube::errc::invalid) << "no one was faster: someone must hear of it";
  EXPECT_EQ(outcome(403, "Forbidden").error().code, kube::errc::forbidden);
}

TEST(custom_resource, tells_people_only_when_the_words_change) {
  api_server server;
  server.put(sound(), {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(sound()));
  const auto edited = sound().with("descriptionEn", "Boards");
  server.put(edited);
  ASSERT_TRUE(server.reconcile(edited));
  EXPECT_EQ(server.writes(), 2U) << "the annotation tells which content was judged";
  EXPECT_EQ(server.recorder.events.size(), 1U);
  const auto odd = sound().with("colour", "red");
  server.put(odd);
  ASSERT_TRUE(server.reconcile(odd));
  ASSERT_EQ(server.recorder.events.size(), 2U);
  EXPECT_EQ(server.recorder.events[1].reason, "Questionable");
}

/// As the operator writes them, one after the other: each names the other.
config_map_text published(const std::string& key, const std::string& related, std::chrono::seconds ago = {}) {
  auto out =
      sound(key, "vgpu").labelled("app.kubernetes.io/managed-by", "quartermaster").with("relatedResources", related);
  const auto made = std::chrono::system_clock::now() - ago;
  out.created = std::chrono::duration_cast<std::chrono::seconds>(made.time_since_epoch()).count();
  return out;
}

TEST(custom_resource, judges_declarations_of_a_module_once_all_of_them_are_there) {
  api_server server;
  const auto cores = published("tencent.com/vcuda-core", "tencent.com/vcuda-memory"),
             memory = published("tencent.com/vcuda-memory", "tencent.com/vcuda-core");
  server.put(cores, {{"team", "lab"}});
  const auto early = server.reconcile(cores);
  ASSERT_TRUE(early);
  EXPECT_TRUE(early->again_in);
  EXPECT_EQ(server.verdict(cores.key.name), "none");
  server.put(memory, {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(memory));
  ASSERT_TRUE(server.reconcile(cores));
  EXPECT_EQ(server.verdict(cores.key.name), "accepted");
  EXPECT_EQ(server.verdict(memory.key.name), "accepted");
  for (const auto& event : server.recorder.events) EXPECT_EQ(event.type, controller::event_type::normal) << event.note;
}

TEST(custom_resource, a_partner_that_never_comes_is_said_all_the_same) {
  api_server server;
  const auto cores = published("tencent.com/vcuda-core", "tencent.com/vcuda-memory", std::chrono::minutes(1));
  server.put(cores, {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(cores));
  EXPECT_EQ(server.verdict(cores.key.name), "warning");
  EXPECT_EQ(server.recorder.events.size(), 1U);
}

TEST(custom_resource, a_persons_declaration_is_judged_at_once) {
  api_server server;
  const auto foreign = published("example.com/cores", "example.com/memory").unlabelled("app.kubernetes.io/managed-by");
  server.put(foreign, {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(foreign));
  EXPECT_EQ(server.verdict(foreign.key.name), "warning");
}

TEST(custom_resource, puts_its_verdict_back_when_someone_edits_it) {
  api_server server;
  server.put(sound(), {{"quartermaster.io/verdict", "{\"verdict\":\"accepted\"}"}});
  ASSERT_TRUE(server.reconcile(sound()));
  EXPECT_EQ(server.writes(), 1U);
  EXPECT_EQ(server.annotations(sound().key.name)["quartermaster.io/verdict"],
            declarations::annotation_of(server.judge.judge(sound().key)));
}

TEST(custom_resource, S22_an_object_with_both_labels_is_judged_once) {
  api_server server;
  auto both = sound();
  for (const auto& [name, value] : sound("example.com/fpga", "lab", "features.alauda.io/").labels)
    both.labels[name] = value;
  server.put(both, {{"team", "lab"}});
  EXPECT_EQ(server.alauda.size() + server.cpaas.size(), 2U);
  ASSERT_TRUE(server.reconcile(both));
  ASSERT_TRUE(server.reconcile(both));
  EXPECT_EQ(server.writes(), 1U);
  EXPECT_EQ(server.judge.registry().compile().rules.size(), 1U);
  // One label goes: still ours, through the other watch.
  server.alauda.erase(*server.alauda.find(both.key));
  EXPECT_EQ(server.judge.registry().compile().rules.size(), 1U);
  ASSERT_TRUE(server.reconcile(both));
  EXPECT_EQ(server.verdict(both.key.name), "accepted");
}

TEST(custom_resource, takes_its_verdict_back_when_the_label_goes) {
  api_server server;
  server.put(sound(), {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(sound()));
  server.unlabel(sound().key.name);
  EXPECT_THAT(server.judge.registry().compile().rules, IsEmpty());
  ASSERT_TRUE(server.reconcile(sound()));
  EXPECT_EQ(server.annotations(sound().key.name), (json{{"team", "lab"}}));
  const auto writes = server.writes();
  ASSERT_TRUE(server.reconcile(sound()));
  EXPECT_EQ(server.writes(), writes) << "once";
}

TEST(custom_resource, one_request_settles_a_deleted_declaration_and_none_one_without_verdict) {
  api_server server;
  server.put(sound(), {{"team", "lab"}});
  server.put(sound("example.com/b", "b"), {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(sound()));
  server.erase(sound().key.name);
  server.erase(sound("example.com/b", "b").key.name);
  const auto before = server.writes();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(server.reconcile(sound()));
  ASSERT_TRUE(server.reconcile(sound("example.com/b", "b")));
  EXPECT_EQ(server.writes(), before + 1);
}

TEST(custom_resource, writes_nothing_before_every_store_has_its_list) {
  recording_transport transport;
  kube::client client(transport);
  recording_recorder recorder;
  custom_resource::config_maps first, second;
  custom_resource judge({&first, &second}, client, recorder);
  first.begin();
  kube::config_map config_map;
  config_map.key = sound().key;
  config_map.labels = packed(sound().labels);
  config_map.data = packed(sound().data);
  first.put(config_map);
  first.commit();
  const auto waiting = run(judge.reconcile(config_map.key));
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(waiting->again_in);
  EXPECT_THAT(transport.sent, IsEmpty());
  second.begin();
  second.commit();
  ASSERT_TRUE(run(judge.reconcile(config_map.key)));
  EXPECT_EQ(transport.sent.size(), 1U);
}

TEST(custom_resource, S25_a_change_brings_its_neighbours_back) {
  api_server server;
  std::vector<kube::object_key> affected;
  for (auto* store : {&server.alauda, &server.cpaas, &server.devices}) {
    store->observe([&](const auto* before, const auto* after) { affected = server.judge.affected_by(before, after); });
  }
  const auto a = sound("example.com/a", "a").with("relatedResources", "example.com/b");
  const auto b = sound("example.com/b", "b");
  const auto c = sound("example.com/c", "c");
  server.put(c, {{"team", "lab"}});
  server.put(a, {{"team", "lab"}});
  ASSERT_TRUE(server.reconcile(a));
  EXPECT_EQ(server.verdict(a.key.name), "warning") << "b is not declared yet";
  server.put(b, {{"team", "lab"}});
  EXPECT_THAT(affected, ElementsAre(a.key, b.key));
  const auto queued = affected;
  for (const auto& key : queued) ASSERT_TRUE(run(server.judge.reconcile(key)));
  EXPECT_EQ(server.verdict(a.key.name), "accepted");
  EXPECT_THAT(affected, ElementsAre(queued.back())) << "our own annotation concerns no one else";
  server.erase(b.key.name);
  EXPECT_THAT(affected, ElementsAre(a.key, b.key));
}

TEST(custom_resource, offers_the_rules_and_the_device_labels) {
  api_server server;
  server.put(sound());
  server.put(declarations::device());
  ASSERT_EQ(server.judge.registry().compile().rules.size(), 1U);
  ASSERT_EQ(server.judge.devices().size(), 1U);
  EXPECT_EQ(server.judge.devices()[0].label_key, "gpu");
  server.erase(sound().key.name);
  EXPECT_THAT(server.judge.registry().compile().rules, IsEmpty());
}

TEST(custom_resource, many_declarations_settle_with_one_write_each) {
  api_server server;
  const int count = test::rounds(500, 2'000);
  for (int i = 0; i < count; ++i) {
    const auto number = std::to_string(i);
    server.put(sound("example.com/r" + number, "g" + number), {{"team", "lab"}});
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& [name, object] : server.objects) ASSERT_TRUE(server.reconcile(object.text));
  }
  EXPECT_EQ(server.writes(), static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace reconcilers
