// The Secret and the two configurations on a small API server whose watches feed the stores; the leader's steps, and
// what a replica shows after each.

#include "reconcilers/admission/webhook_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "controller/x509.hpp"
#include "kube/config.hpp"
#include "reconcilers/admission/admission.hpp"
#include "test/controller/rig.hpp"
#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

using controller::milliseconds;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string secret_path = "/api/v1/namespaces/quartermaster/secrets/quartermaster-webhook";
const std::string group = "/apis/admissionregistration.k8s.io/v1/";
const std::string mutating_path = group + "mutatingwebhookconfigurations/quartermaster";

std::string decoded(const json& object) { return kube::base64_decode(object.get<std::string>()).value_or(""); }

template <class T>
T head_of(const json& object) {
  T out;
  const auto& metadata = object["metadata"];
  out.key = {metadata.value("namespace", ""), metadata["name"]};
  out.id = kube::uid::parse(metadata["uid"].get<std::string>());
  out.resource_version = std::stoull(metadata["resourceVersion"].get<std::string>());
  std::vector<kube::packed_map::entry> labels;
  const auto held = metadata.value("labels", std::map<std::string, std::string>());
  for (const auto& [key, value] : held) labels.emplace_back(key, value);
  out.labels = kube::packed_map::of(labels);
  return out;
}

webhook_secret secret_of(const json& object) {
  auto out = head_of<webhook_secret>(object);
  const auto data = object.value("data", std::map<std::string, std::string>());
  const auto value = [&](std::string_view name) {
    const auto match = data.find(std::string(name));
    return match == data.end() ? std::string() : kube::base64_decode(match->second).value_or("");
  };
  out.keys = {value("ca.crt"), value("ca.key"), {value("tls.crt"), value("tls.key")}};
  return out;
}

template <class T>
T configuration_of(const json& object) {
  auto out = head_of<T>(object);
  for (const auto& entry : object["webhooks"]) {
    const auto& client = entry["clientConfig"];
    out.webhooks.push_back(
        {entry["name"], kube::base64_decode(client.value("caBundle", "")).value_or(""), client.value("url", "")});
  }
  return out;
}

struct webhook_config_test : controller_test::rig {
  fake_server server;
  kube::client client{server.transport};
  controller::store<webhook_secret> secrets;
  controller::store<mutating_webhooks> mutating;
  milliseconds now{1'000'000};
  std::int64_t wall = 1'800'000'000;
  webhook_settings settings{"quartermaster", "", [this] { return now; }, [this] { return wall; }};
  std::unique_ptr<webhook_config> leader;
  controller::http_server_metrics serving{metrics};
  std::unique_ptr<controller::http_server> front;
  std::unique_ptr<webhook_certificate> replica;

  webhook_config_test() {
    wall =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    secrets.begin(), secrets.commit();
    mutating.begin(), mutating.commit();
    server.watch = [this](const std::string& path, const json& is, const json& was) { hand_out(path, is, was); };
    controller::http_server_options options;
    options.name = "webhook";
    options.address = "127.0.0.1:0";
    options.tls = controller::certificate_files();
    front = std::make_unique<controller::http_server>(loop, serving, options);
    make();
  }
  void make() {
    leader = std::make_unique<webhook_config>(webhook_stores{secrets, mutating}, client, settings);
    replica = std::make_unique<webhook_certificate>(webhook_stores{secrets, mutating}, settings, *front);
  }
  void hand_out(const std::string& path, const json& is, const json& was) {
    const auto feed = [&](auto& store, auto convert) {
      is.is_null() ? store.erase(convert(was)) : store.put(convert(is));
    };
    if (path == secret_path) feed(secrets, secret_of);
    if (path == mutating_path) feed(mutating, configuration_of<mutating_webhooks>);
  }
  void install() {
    const auto entry = [](const webhook_route& webhook_route) -> json {
      return {{"name", webhook_route.webhook},
              {"clientConfig",
               {{"service",
                 {{"name", "quartermaster-webhook"}, {"namespace", "quartermaster"}, {"path", webhook_route.path}}}}}};
    };
    server.put(mutating_path, {{"metadata", {{"name", "quartermaster"}}},
                               {"webhooks", {entry(mutate_pods_route), entry(compatibility_route)}}});
  }
  kube::result<controller::action> once() { return run(leader->reconcile({{}, "quartermaster-webhook"})); }
  /// Until it says that there is nothing to do for an hour.
  void settle_leader() {
    for (int i = 0; i < 20; ++i) {
      const auto done = once();
      ASSERT_TRUE(done) << done.error().message;
      if (!done->again_in || *done->again_in >= std::chrono::hours(1)) return;
      now += *done->again_in;
    }
    ADD_FAILURE() << "it never settles";
  }
  json client_config(const std::string& path, int index) {
    return server.objects.at(path)["webhooks"][index]["clientConfig"];
  }
  std::string bundle(const std::string& path, int index) {
    return decoded(client_config(path, index).value("caBundle", json("")));
  }
  controller::pem_pair stored_leaf() { return secret_of(server.objects.at(secret_path)).keys.leaf; }
  double rejected() const { return metric(R"(quartermaster_certificate_rejected{server="webhook"})"); }
  double taken() const { return metric(R"(quartermaster_certificate_reloads_total{server="webhook",result="ok"})"); }
};

TEST_F(webhook_config_test, without_a_configuration_nothing_is_made) {
  const auto done = once();
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->again_in);
  EXPECT_THAT(server.writes(), IsEmpty());
  EXPECT_EQ(replica->problem(), "");
}

TEST_F(webhook_config_test, F23_stores_then_tells_then_signs_then_shows) {
  install();
  EXPECT_THAT(replica->problem(), HasSubstr("no certificate"));
  settle_leader();
  EXPECT_THAT(server.writes(), ElementsAre("apply " + secret_path, "patch " + mutating_path, "apply " + secret_path));
  const auto authorities = decoded(server.objects.at(secret_path)["data"]["ca.crt"]);
  for (const auto& entry : {bundle(mutating_path, 0), bundle(mutating_path, 1)}) EXPECT_EQ(entry, authorities);
  EXPECT_TRUE(client_config(mutating_path, 0).contains("service"));
  const auto leaf = controller::x509::read(stored_leaf().certificate).at(0);
  EXPECT_THAT(leaf.names, ElementsAre("quartermaster-webhook.quartermaster.svc",
                                      "quartermaster-webhook.quartermaster.svc.cluster.local"));
  EXPECT_FALSE(front->serving());
  replica->look();
  EXPECT_TRUE(front->serving());
  EXPECT_EQ(replica->problem(), "");
  server.forget();
  settle_leader();
  EXPECT_THAT(server.transport.sent, IsEmpty()) << "a settled one writes nothing and asks nothing";
}

TEST_F(webhook_config_test, the_rights_of_the_chart_are_enough) {
  install();
  settle_leader();
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(webhook_config_test, outside_a_cluster_callers_are_given_a_url) {
  settings.url = "https://127.0.0.1:8443";
  make();
  install();
  settle_leader();
  EXPECT_EQ(client_config(mutating_path, 0)["url"], "https://127.0.0.1:8443/mutate/pods");
  EXPECT_FALSE(client_config(mutating_path, 0).contains("service"));
  EXPECT_EQ(client_config(mutating_path, 1)["url"], "https://127.0.0.1:8443/mutate/compatibility");
  EXPECT_THAT(controller::x509::read(stored_leaf().certificate).at(0).names, testing::Contains("127.0.0.1"));
}

TEST_F(webhook_config_test, F23_a_bundle_that_others_changed_is_put_back_but_not_in_a_race) {
  install();
  settle_leader();
  const auto right = bundle(mutating_path, 0);
  auto object = server.objects.at(mutating_path);
  object["webhooks"][0]["clientConfig"]["caBundle"] = kube::base64_encode("theirs");
  server.put(mutating_path, object);
  server.forget();
  now += milliseconds(10'000);
  ASSERT_TRUE(once());
  EXPECT_EQ(bundle(mutating_path, 0), right);
  EXPECT_THAT(server.writes(), ElementsAre("patch " + mutating_path));
  server.put(mutating_path, object);
  const auto again = once();
  ASSERT_TRUE(again);
  EXPECT_THAT(server.writes(), SizeIs(1)) << "at most twice a second, however often it comes";
  ASSERT_TRUE(again->again_in);
  now += *again->again_in;
  ASSERT_TRUE(once());
  EXPECT_EQ(bundle(mutating_path, 0), right);
}

TEST_F(webhook_config_test, F23_a_leaf_is_shown_only_after_its_authority_was_told_for_a_while) {
  install();
  settle_leader();
  replica->look();
  ASSERT_EQ(taken(), 1);
  // By hand, and at once: another authority and its leaf.
  const auto other = controller::x509::make_authority("by hand", {wall - 60, wall + 86'400 * 300});
  const std::vector<std::string> names{"quartermaster-webhook.quartermaster.svc",
                                       "quartermaster-webhook.quartermaster.svc.cluster.local"};
  const auto leaf = controller::x509::issue(other, "x", names, {wall - 60, wall + 86'400 * 90});
  auto object = server.objects.at(secret_path);
  object["data"] = {{"ca.crt", kube::base64_encode(other.certificate)},
                    {"ca.key", kube::base64_encode(other.key)},
                    {"tls.crt", kube::base64_encode(leaf->certificate)},
                    {"tls.key", kube::base64_encode(leaf->key)}};
  server.put(secret_path, object);
  replica->look();
  EXPECT_EQ(taken(), 1) << "the callers do not know it";
  const auto before = bundle(mutating_path, 0);
  settle_leader();
  EXPECT_THAT(bundle(mutating_path, 0), HasSubstr(other.certificate));
  EXPECT_THAT(bundle(mutating_path, 0), HasSubstr(before)) << "replicas still show a leaf of it";
  EXPECT_EQ(replica->look(), controller::leaf_gate::spread);
  EXPECT_EQ(taken(), 1);
  now += controller::leaf_gate::spread;
  replica->look();
  EXPECT_EQ(taken(), 2);
}

TEST_F(webhook_config_test, F22_a_bad_pair_is_refused_once_and_made_anew) {
  install();
  settle_leader();
  replica->look();
  auto object = server.objects.at(secret_path);
  object["data"]["tls.key"] = object["data"]["ca.key"];
  server.put(secret_path, object);
  replica->look();
  replica->look();
  EXPECT_EQ(rejected(), 1);
  EXPECT_EQ(metric(R"(quartermaster_certificate_reloads_total{server="webhook",result="rejected"})"), 1);
  EXPECT_TRUE(front->serving()) << "the old one";
  settle_leader();
  now += controller::leaf_gate::spread;
  replica->look();
  EXPECT_EQ(rejected(), 0);
  EXPECT_EQ(taken(), 2);
}

TEST_F(webhook_config_test, a_secret_that_is_not_ours_is_left_alone_and_said) {
  server.put(secret_path, {{"metadata", {{"name", "quartermaster-webhook"}, {"namespace", "quartermaster"}}},
                           {"data", {{"tls.key", kube::base64_encode("precious")}}}});
  install();
  server.forget();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(once());
  EXPECT_THAT(server.writes(), IsEmpty());
  EXPECT_TRUE(log.contains("is not ours"));
  EXPECT_FALSE(log.contains("precious"));
}

TEST_F(webhook_config_test, nothing_secret_is_logged) {
  install();
  settle_leader();
  replica->look();
  for (const auto& line : log.lines()) EXPECT_THAT(line, Not(HasSubstr("BEGIN")));
}

TEST_F(webhook_config_test, a_lagging_watch_makes_no_second_authority) {
  install();
  auto watch = std::exchange(server.watch, {});
  ASSERT_TRUE(once());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(once());
  EXPECT_THAT(server.writes(), ElementsAre("apply " + secret_path));
  server.watch = std::move(watch);
}

TEST(webhook_url, has_a_host_and_nothing_an_api_server_refuses) {
  EXPECT_EQ(host_of("https://127.0.0.1:8443"), "127.0.0.1");
  EXPECT_EQ(host_of("https://[::1]:8443/x"), "::1");
  EXPECT_EQ(host_of("https://host.example"), "host.example");
  for (const auto* bad :
       {"", "http://a", "https://", "https://:8443", "https://a?x", "https://a#x", "https://u@a", "https://["})
    EXPECT_EQ(host_of(bad), std::nullopt) << bad;
}

// Field numbers of k8s.io/api: Secret.data 2; WebhookConfiguration.webhooks 2, Webhook.name 1, clientConfig 2,
// WebhookClientConfig.caBundle 2, url 3.
TEST(webhook_objects, are_read_from_protobuf) {
  std::string metadata, entry, secret;
  protozero::pbf_writer(metadata).add_string(1, "quartermaster-webhook");
  protozero::pbf_writer writer(entry);
  writer.add_string(1, "tls.crt");
  writer.add_string(2, "certificate");
  protozero::pbf_writer whole(secret);
  whole.add_message(1, metadata);
  whole.add_message(2, entry);
  const auto read = webhook_secret::decode(secret);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->key.name, "quartermaster-webhook");
  EXPECT_EQ(read->keys.leaf.certificate, "certificate");

  std::string called, webhook, configuration;
  protozero::pbf_writer client_config(called);
  client_config.add_string(2, "bundle");
  client_config.add_string(3, "https://a/b");
  protozero::pbf_writer item(webhook);
  item.add_string(1, "a.example.com");
  item.add_message(2, called);
  protozero::pbf_writer all(configuration);
  all.add_message(1, metadata);
  all.add_message(2, webhook);
  const auto found = mutating_webhooks::decode(configuration);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->webhooks, ElementsAre(webhook_entry{"a.example.com", "bundle", "https://a/b"}));
  EXPECT_FALSE(mutating_webhooks::decode("\x0a\xff"));
  EXPECT_FALSE(webhook_secret::decode(""));
}

}  // namespace
}  // namespace reconcilers
