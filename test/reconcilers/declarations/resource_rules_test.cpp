#include "reconcilers/declarations/resource_rules.hpp"

#include "api/names.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/rights.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using declarations::config_map_text;
using declarations::sound;
using nlohmann::json;
using words::line_of;

constexpr auto path = "/apis/quartermaster.io/v1alpha1/resourcerules/default";

class resource_rules_test : public testing::Test, public fake_cluster {
 protected:
  controller::store<kube::config_map> declared;
  controller::store<api::owned_runtime_class> runtimes;
  controller::store<accelerator_policy> policies;
  controller::store<kube::node> nodes;
  controller::store<api::compiled_rules> rules;
  int reported = 0;
  bool filled_by_policies = true;
  std::optional<bool> sends;
  custom_resource judge{{&declared}, client, recorder, {}, &runtimes};
  resource_rules subject{{policies, nodes, rules},
                         judge,
                         client,
                         {.filled_by_policies = [this] { return filled_by_policies; },
                          .on_state = [this] { ++reported; },
                          .sends = [this] { return sends; },
                          .now = [this] { return now; }}};
  std::uint64_t version = 1;

  void SetUp() override {
    sync(declared, runtimes, policies, nodes, rules);
    server.watch = [this](const std::string& changed_path, const json& is, const json& was) {
      if (changed_path != path) return;
      if (is.is_null())
        rules.erase(*api::compiled_rules::decode(was.dump()));
      else
        rules.put(*api::compiled_rules::decode(is.dump()));
    };
    // Server-side apply takes away what its owner no longer sets.
    server.interfere = [this](const kube::request& request) -> std::optional<kube::response> {
      const auto match = server.objects.find(path);
      if (match != server.objects.end() && fake_server::verb_of(request) == "apply") match->second.erase("spec");
      const auto at_path = fake_server::path_of_target(request.target);
      if (at_path.find("policybindings/") != std::string::npos) return binding(at_path);
      if (at_path.find("webhookconfigurations/") != std::string::npos)
        return webhook_object.is_null() ? recording_transport::refused(404, "NotFound")
                                        : recording_transport::answered(200, webhook_object);
      const bool mutating = at_path.find("mutatingadmissionpolicies") != std::string::npos;
      if (!mutating && at_path.find("validatingadmissionpolicies") == std::string::npos) return std::nullopt;
      if (policies_missing || (mutating && filling_missing)) return recording_transport::refused(404, "NotFound");
      return recording_transport::answered(200, policy_object);
    };
  }
  void declare(const config_map_text& text) {
    kube::config_map out;
    out.key = text.key;
    out.resource_version = ++version;
    const auto packed = [](const std::map<std::string, std::string>& values) {
      std::vector<kube::packed_map::entry> entries(values.begin(), values.end());
      return kube::packed_map::of(entries);
    };
    out.labels = packed(text.labels);
    out.data = packed(text.data);
    declared.put(out);
  }
  void policy(std::string enforcement) {
    accelerator_policy out;
    out.key = {{}, "default"};
    out.resource_version = ++version;
    out.generation = static_cast<std::int64_t>(version);
    out.resources.enforcement = std::move(enforcement);
    policies.put(out);
  }
  void offer(const std::string& node, kube::quantities amounts) {
    kube::node out;
    out.key = {{}, node};
    out.resource_version = ++version;
    out.allocatable = std::move(amounts);
    nodes.put(out);
  }
  controller::action settle() {
    now += 5s;
    const auto done = run(subject.reconcile({{}, "default"}));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done.value_or(controller::action::await_change());
  }
  /// As the chart has it, or changed, or not there.
  kube::response binding(std::string_view at_path) {
    const std::string name(at_path.substr(at_path.rfind('/') + 1));
    asked_bindings.insert(name);
    if (missing_bindings.contains(name)) return recording_transport::refused(404, "NotFound");
    auto policy_name = name, action = std::string("Warn");
    for (const auto* mode : {"-deny", "-warn"}) {
      const auto match = policy_name.find(mode);
      if (match == std::string::npos) continue;
      policy_name.erase(match, 5);
      if (std::string_view(mode) == "-deny") action = "Deny";
    }
    json spec = {{"policyName", policy_name}, {"validationActions", {action}}, {"paramRef", json::object()}};
    spec.update(binding_change);
    return recording_transport::answered(200, json{{"spec", spec}});
  }
  std::set<std::string> missing_bindings, asked_bindings;
  json binding_change = json::object();
  json webhook_object = {
      {"webhooks", {{{"name", "resource-defaults.quartermaster.io"}}, {{"name", "resource-rules.quartermaster.io"}}}}};
  json object() const { return server.objects.contains(path) ? server.objects.at(path) : json(); }

  bool policies_missing = false, filling_missing = false;
  json policy_object = {{"metadata", {{"name", "x"}}}};
};

TEST_F(resource_rules_test, S24_writes_the_accepted_declarations_once_and_then_nothing) {
  declare(sound().with("limits", "required"));
  policy("Deny");
  settle();
  EXPECT_THAT(server.writes(), ElementsAre(std::string("apply ") + path));
  EXPECT_EQ(object()["metadata"]["labels"][api::names::enforcement_label], "Deny");
  EXPECT_EQ(object()["spec"]["rules"]["example.com/fpga"]["fill"], "1");
  server.forget();
  settle(), settle();
  EXPECT_THAT(server.writes(), IsEmpty());
  EXPECT_THAT(server.reads(), IsEmpty()) << "the policies are looked at every ten minutes";
}

TEST_F(resource_rules_test, says_whether_pods_are_sent_to_our_scheduler_and_leaves_it_as_it_is_before_that_is_decided) {
  const auto label = [this] { return object()["metadata"]["labels"][api::names::scheduler_label]; };
  policy("Off");
  settle();
  EXPECT_EQ(label(), "None");
  sends = true;
  settle();
  EXPECT_EQ(label(), "Dedicated");
  sends = std::nullopt;
  server.forget();
  settle();
  EXPECT_THAT(server.writes(), IsEmpty()) << "an operator that has just started does not know";
  sends = false;
  settle();
  EXPECT_EQ(label(), "None");
  auto edited = object();
  edited["metadata"]["labels"][api::names::scheduler_label] = "Dedicated";  // by hand
  server.put(path, edited);
  settle();
  EXPECT_EQ(label(), "None");
}

TEST_F(resource_rules_test, follows_the_policy_and_goes_with_it) {
  declare(sound());
  settle();
  EXPECT_TRUE(object().is_null()) << "no one asked for anything";
  policy("Warn");
  settle();
  EXPECT_EQ(object()["metadata"]["labels"][api::names::enforcement_label], "Warn");
  policy("Off");
  settle();
  EXPECT_EQ(object()["metadata"]["labels"][api::names::enforcement_label], "Off");
  EXPECT_EQ(subject.state()->reason, "Off");
  policies.erase(*policies.find({{}, "default"}));
  settle();
  EXPECT_TRUE(object().is_null());
  EXPECT_FALSE(subject.state());
}

TEST_F(resource_rules_test, an_object_of_that_name_that_is_not_ours_is_not_deleted) {
  server.put(path, {{"metadata", {{"name", "default"}}}, {"spec", json::object()}});
  settle();
  EXPECT_FALSE(object().is_null());
}

TEST_F(resource_rules_test, an_edit_by_others_is_put_back) {
  declare(sound());
  policy("Deny");
  settle();
  auto edited = object();
  edited["spec"]["rules"]["example.com/fpga"]["forbidden"] = true;
  server.put(path, edited);
  settle();
  EXPECT_FALSE(object()["spec"]["rules"]["example.com/fpga"].contains("forbidden"));
}

TEST_F(resource_rules_test, F34_a_storm_is_written_once_a_second_at_most_and_the_last_value_wins) {
  policy("Deny");
  settle();
  server.forget();
  for (int i = 0; i < 200; ++i) {
    declare(sound().with("limits", "required").with("defaultValue", std::to_string(i + 1)));
    now += 5ms;
    ASSERT_TRUE(run(subject.reconcile({{}, "default"})));
  }
  EXPECT_LE(server.writes().size(), 2U);
  settle();
  EXPECT_EQ(object()["spec"]["rules"]["example.com/fpga"]["fill"], "200");
}

TEST_F(resource_rules_test, F36_the_last_good_rule_survives_an_error_and_a_restart) {
  declare(sound().with("limits", "required"));
  policy("Deny");
  settle();
  declare(sound().with("limits", "maybe"));
  settle();
  EXPECT_TRUE(object()["spec"]["rules"].contains("example.com/fpga"));
  EXPECT_THAT(line_of(subject.state()->message), HasSubstr("status.rules.kept.one{number=1}"));
  resource_rules fresh{{policies, nodes, rules}, judge, client, {.now = [this] { return now; }}};
  now += 5s;
  ASSERT_TRUE(run(fresh.reconcile({{}, "default"})));
  EXPECT_TRUE(object()["spec"]["rules"].contains("example.com/fpga"));
  declare(sound().with("limits", "optional"));
  settle();
  EXPECT_FALSE(object()["spec"]["rules"]["example.com/fpga"].contains("must"));
  EXPECT_EQ(line_of(subject.state()->message), "status.rules.keys.one{number=1}");
}

TEST_F(resource_rules_test, F36_the_last_good_rule_comes_back_when_a_hand_edits_or_deletes_the_object) {
  declare(sound().with("limits", "required"));
  policy("Deny");
  settle();
  declare(sound().with("limits", "maybe"));
  settle();
  const auto good = object()["spec"];
  auto edited = object();
  edited["spec"]["rules"]["example.com/fpga"]["forbidden"] = true;
  edited["spec"]["rules"]["example.com/forged"] = {{"source", "kube-public/cf-crl-lab-fpga"}, {"must", true}};
  server.put(path, edited);
  settle();
  EXPECT_EQ(object()["spec"], good);
  server.erase(path);
  settle();
  EXPECT_EQ(object()["spec"], good);
  EXPECT_THAT(line_of(subject.state()->message), HasSubstr("status.rules.kept.one{number=1}"));
  policies.erase(*policies.find({{}, "default"}));
  settle();
  policy("Deny");
  settle();
  EXPECT_THAT(object()["spec"]["rules"], IsEmpty()) << "with the policy everything was given up";
}

TEST_F(resource_rules_test, marks_what_no_node_offers) {
  declare(sound());
  offer("a", {{"example.com/other", 1}});
  policy("Deny");
  settle();
  EXPECT_EQ(object()["spec"]["rules"]["example.com/fpga"]["notOffered"], true);
  offer("b", {{"example.com/fpga", 4}});
  settle();
  EXPECT_FALSE(object()["spec"]["rules"]["example.com/fpga"].contains("notOffered"));
  offer("b", {{"example.com/fpga", 0}});
  settle();
  EXPECT_EQ(object()["spec"]["rules"]["example.com/fpga"]["notOffered"], true);
}

TEST_F(resource_rules_test, looks_again_at_a_node_only_when_what_it_offers_changes) {
  kube::node before, after;
  before.allocatable = {{"example.com/fpga", 4}};
  after.allocatable = {{"example.com/fpga", 3}};
  EXPECT_THAT(subject.affected_by(&before, &after), IsEmpty());
  after.allocatable = {{"example.com/fpga", 0}};
  EXPECT_THAT(subject.affected_by(&before, &after), testing::SizeIs(1));
  EXPECT_THAT(subject.affected_by(&before, nullptr), testing::SizeIs(1));
}

TEST_F(resource_rules_test, looks_again_at_a_declaration_only_when_its_content_changes) {
  kube::config_map before, after;
  after.resource_version = 2;
  std::vector<kube::packed_map::entry> verdict{{"quartermaster.io/verdict", "x"}}, key{{"key", "example.com/fpga"}};
  after.annotations = kube::packed_map::of(verdict);
  EXPECT_THAT(subject.affected_by(&before, &after), IsEmpty()) << "our own verdict";
  after.data = kube::packed_map::of(key);
  EXPECT_THAT(subject.affected_by(&before, &after), testing::SizeIs(1));
  EXPECT_THAT(subject.affected_by(&before, nullptr), testing::SizeIs(1));
}

TEST_F(resource_rules_test, compiles_no_more_than_once_a_second) {
  declare(sound());
  policy("Deny");
  settle();
  server.forget();
  declare(sound("example.com/other"));
  const auto early = run(subject.reconcile({{}, "default"}));
  ASSERT_TRUE(early);
  EXPECT_EQ(early->again_in, std::chrono::milliseconds(1s));
  EXPECT_THAT(server.writes(), IsEmpty());
  now += 1s;
  ASSERT_TRUE(run(subject.reconcile({{}, "default"})));
  EXPECT_THAT(server.writes(), testing::SizeIs(1));
}

TEST_F(resource_rules_test, lists_the_keys_of_exclusions) {
  declare(sound().with("excludeResources", "example.com/other,example.com/a"));
  policy("Deny");
  settle();
  EXPECT_EQ(object()["spec"]["exclusive"], json({"example.com/a", "example.com/fpga", "example.com/other"}));
}

TEST_F(resource_rules_test, says_when_the_policies_are_not_there_or_doubted) {
  declare(sound());
  policy("Deny");
  policies_missing = true;
  settle();
  EXPECT_EQ(subject.state()->status, "False");
  EXPECT_EQ(subject.state()->message.key, "status.rules.policy_missing");
  policies_missing = false;
  policy_object["status"]["typeChecking"]["expressionWarnings"] = {
      {{"fieldRef", "spec.validations[0]"}, {"warning", "undefined field"}}};
  now += 11min;
  settle();
  EXPECT_THAT(line_of(subject.state()->message), HasSubstr("field=spec.validations[0],warning=undefined field"));
  policy_object.erase("status");
  now += 11min;
  settle();
  EXPECT_EQ(subject.state()->status, "True");
  EXPECT_EQ(reported, 3);
}

TEST_F(resource_rules_test, says_when_nothing_fills_pods_in_although_the_server_could) {
  declare(sound());
  policy("Deny");
  filling_missing = true;
  settle();
  EXPECT_EQ(subject.state()->status, "False");
  EXPECT_EQ(line_of(subject.state()->message), "status.rules.policy_missing{name=resource-defaults.quartermaster.io}");
  filled_by_policies = false;  // the webhook does
  now += 11min;
  settle();
  EXPECT_EQ(subject.state()->status, "True");
}

TEST_F(resource_rules_test, a_policy_without_its_binding_is_not_enforced) {
  declare(sound());
  policy("Deny");
  settle();
  EXPECT_EQ(subject.state()->status, "True") << line_of(subject.state()->message);
  EXPECT_THAT(asked_bindings, ElementsAre("declarations-deny.quartermaster.io", "resource-advice.quartermaster.io",
                                          "resource-defaults.quartermaster.io", "resource-rules-deny.quartermaster.io",
                                          "resource-templates.quartermaster.io"));
  missing_bindings = {"resource-rules-deny.quartermaster.io"};
  now += 11min;
  settle();
  EXPECT_EQ(subject.state()->status, "False");
  EXPECT_THAT(line_of(subject.state()->message),
              HasSubstr("status.rules.binding_missing{name=resource-rules-deny.quartermaster.io"));
  policy("Warn");
  settle();
  EXPECT_EQ(subject.state()->status, "True") << "looked at again at once: the mode has another binding";
  missing_bindings.clear();
  for (const json& change : {json{{"policyName", "other"}}, json{{"validationActions", {"Audit"}}}}) {
    binding_change = change;
    now += 11min;
    settle();
    EXPECT_EQ(subject.state()->status, "False") << change;
    EXPECT_EQ(subject.state()->message.key, "status.rules.binding_changed");
  }
}

TEST_F(resource_rules_test, where_the_webhook_fills_it_must_be_there) {
  declare(sound());
  policy("Deny");
  filled_by_policies = false;
  for (const json& is : {json(), json{{"webhooks", {{{"name", "compatibility.quartermaster.io"}}}}}}) {
    webhook_object = is;
    now += 11min;
    settle();
    EXPECT_EQ(subject.state()->status, "False") << is;
    EXPECT_EQ(subject.state()->message.key, "status.rules.webhook_missing");
  }
  policy("Warn");
  settle();
  EXPECT_EQ(subject.state()->status, "True") << "nothing is to be filled in";
}

TEST_F(resource_rules_test, S24_what_the_webhook_fills_in_is_let_pass_without_it) {
  declare(sound().with("limits", "required"));
  filled_by_policies = false;
  policy("Deny");
  settle();
  EXPECT_EQ(object()["spec"]["rules"]["example.com/fpga"]["absentPasses"], true);
  policy("Warn");
  settle();
  EXPECT_FALSE(object()["spec"]["rules"]["example.com/fpga"].contains("absentPasses")) << "Warn says what is missing";
  policy("Deny");
  filled_by_policies = true;
  settle();
  EXPECT_FALSE(object()["spec"]["rules"]["example.com/fpga"].contains("absentPasses"));
}

TEST_F(resource_rules_test, asks_for_no_right_the_chart_does_not_give) {
  declare(sound());
  policy("Warn");
  settle();
  filled_by_policies = false;
  policy("Deny");
  settle();
  filled_by_policies = true;
  now += 11min;
  settle();
  policies.erase(*policies.find({{}, "default"}));
  settle();
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

}  // namespace
}  // namespace reconcilers
