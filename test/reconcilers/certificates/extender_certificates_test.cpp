// The three Secrets on a small API server whose watches feed the stores, a server that shows what is stored, and the
// leader's steps.

#include "reconcilers/certificates/extender_certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "api/hash.hpp"
#include "controller/http_server.hpp"
#include "controller/x509.hpp"
#include "kube/config.hpp"
#include "test/controller/rig.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/certificates/times.hpp"
#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::milliseconds;
using nlohmann::json;
namespace x509 = controller::x509;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string folder_path = "/api/v1/namespaces/quartermaster/secrets/";
const std::string server_path = folder_path + "quartermaster-extender",
                  client_path = folder_path + "quartermaster-extender-client",
                  authority_path = folder_path + "quartermaster-extender-authority";
const std::vector<std::string> server_names{"quartermaster-extender.quartermaster.svc",
                                            "quartermaster-extender.quartermaster.svc.cluster.local",
                                            "quartermaster-extender", "localhost"};

std::string decoded(const json& object, const char* key) {
  const auto data = object.value("data", json::object());
  return data.contains(key) ? kube::base64_decode(data[key].get<std::string>()).value_or("") : std::string();
}

extender_secret secret_of(const json& object) {
  extender_secret out;
  const auto& metadata = object["metadata"];
  out.key = {metadata["namespace"], metadata["name"]};
  out.id = kube::uid::parse(metadata["uid"].get<std::string>());
  out.resource_version = std::stoull(metadata["resourceVersion"].get<std::string>());
  out.labels = packed(metadata.value("labels", json::object()));
  out.annotations = packed(metadata.value("annotations", json::object()));
  out.authorities = decoded(object, "ca.crt");
  out.signer_key = decoded(object, "ca.key");
  out.older_key = decoded(object, "older.key");
  out.leaf = {decoded(object, "tls.crt"), decoded(object, "tls.key")};
  out.content = std::hash<std::string>{}(object.value("data", json::object()).dump());
  return out;
}

struct extender_certificates_test : controller_test::rig {
  fake_server server;
  kube::client client{server.transport};
  recording_recorder events;
  controller::store<extender_secret> authority, served, called;
  controller::store<accelerator_policy> policies;
  controller::store<kube::deployment> deployments;
  milliseconds now{1'000'000};
  std::int64_t wall = start;
  std::optional<std::vector<extender_scheduler>> control_plane_nodes = std::vector<extender_scheduler>();
  std::unique_ptr<extender_certificates> leader;
  int made = 0;
  std::vector<std::unique_ptr<controller::registry>> registries;

  extender_certificates_test() {
    authority.begin(), authority.commit();
    served.begin(), served.commit();
    called.begin(), called.commit();
    policies.begin(), policies.commit();
    deployments.begin(), deployments.commit();
    server.watch = [this](const std::string& path, const json& is, const json& was) {
      const auto feed = [&](auto& store) { is.is_null() ? store.erase(secret_of(was)) : store.put(secret_of(is)); };
      if (path == authority_path) feed(authority);
      if (path == server_path) feed(served);
      if (path == client_path) feed(called);
    };
    lead();
  }
  void lead() {
    registries.push_back(std::make_unique<controller::registry>());
    auto& registry = registries.size() == 1 ? metrics : *registries.back();
    leader = std::make_unique<extender_certificates>(
        extender_certificates::stores{{authority, served, called}, policies, deployments}, client, events, registry,
        extender_certificates::settings{.ns = "quartermaster",
                                        .control_plane_nodes = [this] { return control_plane_nodes; },
                                        .now = [this] { return now; },
                                        .wall = [this] { return wall; }});
  }
  void put(const std::string& path, const std::string& type, const json& data) {
    json object = {{"metadata",
                    {{"name", path.substr(folder_path.size())},
                     {"namespace", "quartermaster"},
                     {"labels", {{"app.kubernetes.io/managed-by", "Helm"}}}}},
                   {"type", type}};
    for (const auto& [key, value] : data.items()) object["data"][key] = kube::base64_encode(value.get<std::string>());
    server.put(path, object);
  }
  /// As an earlier chart did; without a key: as one did before that.
  void install(bool with_key = true) {
    const auto ca = x509::make_authority("helm", {wall, wall + 10 * year});
    const auto leaf = *x509::issue(ca, "s", server_names, {wall, wall + year});
    const auto caller = *x509::issue(ca, "kube-scheduler", {}, {wall, wall + year}, x509::usage::client);
    const auto pair = [&](const controller::pem_pair& pem_pair) {
      return json{{"ca.crt", ca.certificate}, {"tls.crt", pem_pair.certificate}, {"tls.key", pem_pair.key}};
    };
    put(server_path, "kubernetes.io/tls", pair(leaf));
    put(client_path, "kubernetes.io/tls", pair(caller));
    put(authority_path, "Opaque", with_key ? json{{"ca.crt", ca.certificate}, {"ca.key", ca.key}} : json::object());
    server.forget();
  }
  void govern(bool removing = false) {
    accelerator_policy policy;
    policy.key = {{}, "default"};
    policy.resource_version = static_cast<std::uint64_t>(++made);
    policy.removing = removing;
    policies.put(policy);
  }
  /// The Deployment runs with the present Secret.
  void roll() {
    kube::deployment out;
    out.key = {"quartermaster", "quartermaster-scheduler"};
    out.resource_version = ++made;
    out.desired = out.replicas = out.updated = out.available = 1;
    std::uint64_t content = called.find({"quartermaster", "quartermaster-extender-client"})->content;
    std::string hash(16, '0');
    for (auto digit = hash.rbegin(); digit != hash.rend(); ++digit, content >>= 4)
      *digit = "0123456789abcdef"[content & 15];
    out.annotations = packed({{"quartermaster.io/certificates", hash}});
    deployments.put(out);
  }
  kube::result<controller::action> once() { return run(leader->reconcile(extender_certificates::only())); }
  /// Until it waits for longer than its own writes.
  controller::action settle() {
    for (int i = 0; i < 30; ++i) {
      const auto done = once();
      EXPECT_TRUE(done) << (done ? "" : done.error().message);
      if (!done || !done->again_in || *done->again_in > 10s) return done.value_or(controller::action());
      pass(*done->again_in);
    }
    ADD_FAILURE() << "it never settles";
    return {};
  }
  void pass(milliseconds time) {
    now += time;
    wall += std::chrono::duration_cast<std::chrono::seconds>(time).count();
  }
  std::vector<std::string> reasons() const {
    std::vector<std::string> out;
    for (const auto& event : events.events) out.push_back(event.reason);
    return out;
  }
  double expiry(const std::string& name) const {
    return metric("quartermaster_extender_certificate_expiry_seconds{certificate=\"" + name + "\"}");
  }
};

TEST_F(extender_certificates_test, settled_it_writes_nothing_and_shows_when_what_ends) {
  install();
  const auto wait = settle();
  EXPECT_EQ(wait.again_in, milliseconds(1h));
  EXPECT_THAT(server.transport.sent, IsEmpty());
  EXPECT_EQ(expiry("authority"), static_cast<double>(wall + 10 * year));
  EXPECT_EQ(expiry("server"), static_cast<double>(wall + year));
  EXPECT_EQ(expiry("client"), static_cast<double>(wall + year));
}

TEST_F(extender_certificates_test, renews_leaves_and_keeps_what_is_of_the_chart) {
  install();
  wall += 250 * day;
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + server_path, "patch " + client_path));
  for (const auto& path : {server_path, client_path}) {
    const auto& is = server.objects.at(path);
    EXPECT_EQ(is["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    EXPECT_EQ(is["type"], "kubernetes.io/tls");
    EXPECT_EQ(x509::leaf_of({decoded(is, "tls.crt"), decoded(is, "tls.key")})->until, wall + year);
  }
  EXPECT_GE(expiry("client"), static_cast<double>(wall + year));
  EXPECT_THAT(reasons(), ElementsAre("CertificatesWritten", "CertificatesWritten", "CertificateRenewed"));
  EXPECT_THAT(events.events.back().note, words::has_in_order({"by hand", "ca.crt, tls.crt and tls.key"}));
  EXPECT_EQ(events.events.back().about.kind, "Secret") << "there is no policy";
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(extender_certificates_test, an_installation_without_the_key_gets_an_authority_and_its_scheduler_starts_first) {
  install(false);
  roll();
  const auto old_leaf = decoded(server.objects.at(server_path), "tls.crt");
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + authority_path, "patch " + server_path, "patch " + client_path));
  EXPECT_THAT(x509::read(decoded(server.objects.at(client_path), "ca.crt")), SizeIs(2));
  EXPECT_EQ(decoded(server.objects.at(server_path), "tls.crt"), old_leaf);
  EXPECT_TRUE(
      server.objects.at(client_path)["metadata"]["annotations"].contains("state.quartermaster.io/authorities-since"));
  server.forget();
  pass(1h);
  settle();
  EXPECT_THAT(server.writes(), IsEmpty()) << "the scheduler has not been restarted";
  EXPECT_THAT(events.events.back().note, HasSubstr("Deployment quartermaster/quartermaster-scheduler does not run"));
  roll();
  lead();  // another leader goes on
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + server_path, "patch " + client_path));
  EXPECT_NE(decoded(server.objects.at(server_path), "tls.crt"), old_leaf);
  roll();
  server.forget();
  pass(25h);
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + authority_path, "patch " + server_path, "patch " + client_path));
  EXPECT_THAT(x509::read(decoded(server.objects.at(client_path), "ca.crt")), SizeIs(1));
  EXPECT_FALSE(server.objects.at(authority_path)["data"].contains("older.key"));
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(extender_certificates_test, a_change_that_an_earlier_version_began_goes_on) {
  install(false);
  settle();
  for (const auto& path : {server_path, client_path}) {
    auto object = server.objects.at(path);
    auto& annotations = object["metadata"]["annotations"];
    for (const std::string name : {"authorities-since", "authorities-by-hand"}) {
      if (!annotations.contains("state.quartermaster.io/" + name)) continue;
      annotations["quartermaster.io/" + name] = annotations["state.quartermaster.io/" + name];
      annotations.erase("state.quartermaster.io/" + name);
    }
    server.put(path, object);
  }
  lead();
  server.forget();
  pass(1h);
  settle();
  EXPECT_THAT(server.writes(), IsEmpty()) << "everyone has been told, and the callers have their time";
  pass(40 * 24h);
  settle();
  EXPECT_THAT(server.writes(), Not(IsEmpty()));
  for (const auto& [key, value] : server.objects.at(client_path)["metadata"]["annotations"].items())
    EXPECT_TRUE(key.starts_with("state.")) << key;
}

TEST_F(extender_certificates_test, makes_all_of_them_where_there_is_a_policy) {
  for (int i = 0; i < 3; ++i, pass(1min)) ASSERT_TRUE(once());
  EXPECT_THAT(server.transport.sent, IsEmpty()) << "no one wants any yet";
  govern();
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("apply " + authority_path, "apply " + server_path, "apply " + client_path,
                                           "patch " + authority_path, "patch " + server_path, "patch " + client_path,
                                           "patch " + server_path, "patch " + client_path));
  for (const auto& path : {authority_path, server_path, client_path}) {
    const auto& is = server.objects.at(path);
    EXPECT_EQ(is["metadata"]["labels"]["app.kubernetes.io/managed-by"], "quartermaster") << "uninstall finds it";
    EXPECT_EQ(decoded(is, "ca.crt"), decoded(server.objects.at(authority_path), "ca.crt"));
  }
  for (const auto& request : server.transport.sent) {
    if (request.body.find("\"kind\"") != std::string::npos)
      EXPECT_FALSE(json::parse(request.body).contains("data")) << "no key where it could be written over";
  }
  const auto pair_of = [&](const std::string& path) {
    return controller::pem_pair{decoded(server.objects.at(path), "tls.crt"),
                                decoded(server.objects.at(path), "tls.key")};
  };
  const auto authority_is = x509::read(decoded(server.objects.at(authority_path), "ca.crt"));
  ASSERT_THAT(authority_is, SizeIs(1));
  const auto leaf = x509::leaf_of(pair_of(server_path)), caller = x509::leaf_of(pair_of(client_path));
  ASSERT_TRUE(leaf && caller);
  EXPECT_TRUE(leaf->server && x509::signed_by(*leaf, authority_is[0]));
  EXPECT_TRUE(caller->client && x509::signed_by(*caller, authority_is[0]));
  EXPECT_THAT(leaf->names, testing::UnorderedElementsAreArray(server_names));
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(extender_certificates_test, one_that_somebody_deleted_is_made_again_and_the_others_stay) {
  govern();
  settle();
  roll();
  for (const auto& path : {server_path, client_path, authority_path}) {
    const auto before = server.objects;
    server.erase(path);
    server.forget();
    settle();
    ASSERT_TRUE(server.objects.contains(path));
    EXPECT_NE(server.objects.at(path)["data"], before.at(path)["data"]) << path;
    if (path == authority_path) continue;  // both sides get another authority first
    EXPECT_EQ(server.objects.at(authority_path)["data"], before.at(authority_path)["data"]) << path;
    EXPECT_EQ(decoded(server.objects.at(path), "ca.crt"), decoded(server.objects.at(authority_path), "ca.crt"));
    const auto& other = path == server_path ? client_path : server_path;
    EXPECT_EQ(server.objects.at(other)["data"], before.at(other)["data"]) << path;
  }
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty());
}

TEST_F(extender_certificates_test, nothing_is_made_while_it_is_taken_away) {
  install();
  server.erase(authority_path);
  server.forget();
  for (int i = 0; i < 3; ++i, pass(1min)) ASSERT_TRUE(once());
  EXPECT_THAT(server.transport.sent, IsEmpty()) << "there is no policy";
  govern(true);
  for (int i = 0; i < 3; ++i, pass(1min)) ASSERT_TRUE(once());
  EXPECT_THAT(server.transport.sent, IsEmpty()) << "it is being removed";
}

/// A replica's server, which shows what is stored.
struct shown_certificates_test : extender_certificates_test {
  controller::http_server_metrics serving{metrics};
  std::unique_ptr<controller::http_server> replica;
  std::unique_ptr<extender_certificate> shows;

  void start() {
    controller::http_server_options options;
    options.name = "extender";
    options.address = "127.0.0.1:0";
    options.tls = controller::certificate_files();
    options.certificate_period = 1h;  // what is stored counts, at once
    replica = std::make_unique<controller::http_server>(loop, serving, options);
    shows = std::make_unique<extender_certificate>(served, *replica);
    ASSERT_TRUE(replica->start());
  }
  bool rejected() const { return metric("quartermaster_certificate_rejected{server=\"extender\"}") == 1; }
};

TEST_F(shown_certificates_test, S7_starts_with_none_and_shows_the_one_that_is_made) {
  start();
  EXPECT_FALSE(replica->serving());
  govern();
  settle();
  EXPECT_TRUE(replica->serving());
  EXPECT_FALSE(rejected());
}

struct damage {
  std::string name;
  std::function<void(json& data)> done = [](json&) {};
  std::int64_t age = 0;  ///< of the certificates, in seconds
};
void PrintTo(const damage& damage, std::ostream* out) { *out << damage.name; }

struct damaged_certificates_test : shown_certificates_test, testing::WithParamInterface<damage> {};

TEST_P(damaged_certificates_test, F22_are_not_shown_at_the_start_and_the_leader_replaces_them) {
  const auto present = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  wall = present - GetParam().age;
  install();
  wall = present;
  auto object = server.objects.at(server_path);
  GetParam().done(object["data"]);
  server.erase(server_path);
  start();
  server.put(server_path, object);
  EXPECT_FALSE(replica->serving());
  govern();
  settle();
  EXPECT_TRUE(replica->serving());
  EXPECT_FALSE(rejected());
  const auto& is = server.objects.at(server_path);
  EXPECT_GT(x509::leaf_of({decoded(is, "tls.crt"), decoded(is, "tls.key")})->until, present + 300 * day);
  EXPECT_EQ(decoded(is, "ca.crt"), decoded(server.objects.at(authority_path), "ca.crt"));
}

INSTANTIATE_TEST_SUITE_P(
    all, damaged_certificates_test,
    testing::Values(damage{"expired", [](json&) {}, 400 * day},
                    damage{"no_data", [](json& data) { data = json::object(); }},
                    damage{"empty_certificate", [](json& data) { data["tls.crt"] = ""; }},
                    damage{"another_key", [](json& data) { data["tls.crt"] = data["ca.crt"]; }},
                    damage{"damaged_key", [](json& data) { data["tls.key"] = kube::base64_encode("damaged"); }},
                    damage{"no_authority", [](json& data) { data["ca.crt"] = ""; }},
                    damage{"half_an_authority",
                           [](json& data) { data["ca.crt"] = kube::base64_encode("-----BEGIN CERTIFICATE-----\n"); }}),
    [](const auto& info) { return info.param.name; });

TEST_F(extender_certificates_test, an_authority_of_somebody_else_is_taken_out_and_the_event_names_it) {
  install();
  settle();
  const auto own_ca = decoded(server.objects.at(client_path), "ca.crt");
  const auto other = x509::make_authority("corporate root", {wall, wall + year});
  json object = server.objects.at(client_path);
  object["data"]["ca.crt"] = kube::base64_encode(other.certificate + own_ca);
  server.put(client_path, object);
  server.forget();
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + client_path));
  EXPECT_EQ(decoded(server.objects.at(client_path), "ca.crt"), own_ca);
  ASSERT_THAT(reasons(), ElementsAre("CertificatesWritten"));
  EXPECT_THAT(events.events.back().note, HasSubstr("Secret quartermaster/quartermaster-extender-client: "));
  EXPECT_THAT(events.events.back().note, words::has_in_order({"taken out, ", "Secret quartermaster-extender-authority ",
                                                              ": 'corporate root' (until 20"}));
}

TEST_F(extender_certificates_test, whoever_was_faster_wins) {
  install();
  wall += 250 * day;
  auto watch = std::exchange(server.watch, {});
  ASSERT_TRUE(once());
  const auto first = server.objects.at(server_path);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(once());
  EXPECT_EQ(server.objects.at(server_path), first) << "what we see is old";
}

TEST_F(extender_certificates_test, control_plane_nodes_are_waited_for_and_while_they_are_not_known_nothing_is_done) {
  install(false);
  control_plane_nodes.reset();
  once();
  EXPECT_THAT(server.writes(), IsEmpty());
  control_plane_nodes = std::vector<extender_scheduler>{{"m1", "Applied", "of before"}};
  settle();
  server.forget();
  pass(40 * 24h);
  settle();
  EXPECT_THAT(server.writes(), IsEmpty());
  EXPECT_THAT(events.events.back().note, HasSubstr("control-plane node m1"));
  const auto& is = server.objects.at(client_path);
  control_plane_nodes->at(0).certificates = api::certificates_of(decoded(is, "ca.crt"), decoded(is, "tls.crt"));
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("patch " + server_path, "patch " + client_path));
}

TEST_F(extender_certificates_test, people_are_told_every_day_and_no_key_is_in_the_log) {
  install(false);
  settle();
  settle();
  const auto before = events.events.size();
  for (int hours = 0; hours < 72; ++hours, pass(1h)) once();
  EXPECT_EQ(events.events.size(), before + 2);
  EXPECT_THAT(events.events.back().note, HasSubstr("restarted before"));
  for (const auto& line : log.lines()) EXPECT_THAT(line, Not(HasSubstr("BEGIN")));
  for (const auto& event : events.events) EXPECT_THAT(event.note, Not(HasSubstr("BEGIN")));
}

// Field numbers of k8s.io/api: Secret.data 2.
TEST(extender_secret, is_read_from_protobuf) {
  std::string metadata, entry, secret;
  protozero::pbf_writer(metadata).add_string(1, "quartermaster-extender-authority");
  protozero::pbf_writer writer(entry);
  writer.add_string(1, "older.key");
  writer.add_string(2, "a key");
  protozero::pbf_writer whole(secret);
  whole.add_message(1, metadata);
  whole.add_message(2, entry);
  const auto read = extender_secret::decode(secret);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->key.name, "quartermaster-extender-authority");
  EXPECT_EQ(read->older_key, "a key");
  EXPECT_NE(read->content, 0U);
  EXPECT_FALSE(extender_secret::decode(""));
  EXPECT_FALSE(extender_secret::decode("\x0a\xff"));
}

}  // namespace
}  // namespace reconcilers
