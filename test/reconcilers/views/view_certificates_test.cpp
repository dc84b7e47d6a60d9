// The Secret and the APIService on a small API server whose watches feed the stores; the leader's steps.

#include "reconcilers/views/view_certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "controller/x509.hpp"
#include "kube/config.hpp"
#include "test/controller/rig.hpp"
#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

using controller::milliseconds;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string secret_path = "/api/v1/namespaces/quartermaster/secrets/quartermaster-views";
const std::string service_path = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.view.quartermaster.io";

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

std::string decoded(const json& data, const char* key) { return kube::base64_decode(data.value(key, "")).value_or(""); }

webhook_secret secret_of(const json& object) {
  auto out = head_of<webhook_secret>(object);
  const auto data = object.value("data", json::object());
  out.keys = {decoded(data, "ca.crt"), decoded(data, "ca.key"), {decoded(data, "tls.crt"), decoded(data, "tls.key")}};
  return out;
}

api_service service_of(const json& object) {
  auto out = head_of<api_service>(object);
  out.authorities = decoded(object["spec"], "caBundle");
  return out;
}

struct view_certificates_test : controller_test::rig {
  fake_server server;
  kube::client client{server.transport};
  controller::store<webhook_secret> secrets;
  controller::store<api_service> services;
  milliseconds now{1'000'000};
  std::int64_t wall = 1'800'000'000;
  view_certificates leader{
      {secrets, services}, client, {"quartermaster", [this] { return now; }, [this] { return wall; }}};

  view_certificates_test() {
    secrets.begin(), secrets.commit();
    services.begin(), services.commit();
    server.watch = [this](const std::string& path, const json& is, const json& was) {
      const auto feed = [&](auto& store, auto convert) {
        is.is_null() ? store.erase(convert(was)) : store.put(convert(is));
      };
      if (path == secret_path) feed(secrets, secret_of);
      if (path == service_path) feed(services, service_of);
    };
  }
  void install() {
    server.put(service_path, {{"metadata", {{"name", "v1alpha1.view.quartermaster.io"}}},
                              {"spec", {{"group", "view.quartermaster.io"}, {"version", "v1alpha1"}}}});
  }
  kube::result<controller::action> once() { return run(leader.reconcile({{}, "quartermaster-views"})); }
  /// Until it says that there is nothing to do for an hour.
  void settle() {
    for (int i = 0; i < 20; ++i) {
      const auto done = once();
      ASSERT_TRUE(done) << done.error().message;
      if (!done->again_in || *done->again_in >= std::chrono::hours(1)) return;
      now += *done->again_in;
    }
    ADD_FAILURE() << "it never settles";
  }
  std::string bundle() { return decoded(server.objects.at(service_path)["spec"], "caBundle"); }
};

TEST_F(view_certificates_test, without_an_api_service_nothing_is_made) {
  const auto done = once();
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->again_in);
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(view_certificates_test, stores_then_tells_then_signs) {
  install();
  settle();
  EXPECT_THAT(server.writes(), ElementsAre("apply " + secret_path, "patch " + service_path, "apply " + secret_path));
  const auto stored = secret_of(server.objects.at(secret_path)).keys;
  EXPECT_EQ(bundle(), stored.authorities);
  const auto leaf = controller::x509::read(stored.leaf.certificate).at(0);
  EXPECT_THAT(leaf.names, ElementsAre("quartermaster-views.quartermaster.svc",
                                      "quartermaster-views.quartermaster.svc.cluster.local"));
  EXPECT_TRUE(controller::x509::signed_by(leaf, controller::x509::read(bundle()).at(0)));
  EXPECT_THAT(not_listed(server.transport.sent, "quartermaster"), IsEmpty()) << "the rights of the chart are enough";
  server.forget();
  settle();
  EXPECT_THAT(server.transport.sent, IsEmpty()) << "a settled one writes nothing and asks nothing";
}

TEST_F(view_certificates_test, a_bundle_that_others_changed_is_put_back) {
  install();
  settle();
  const auto right = bundle();
  auto object = server.objects.at(service_path);
  object["spec"]["caBundle"] = kube::base64_encode("theirs");
  server.put(service_path, object);
  server.forget();
  now += milliseconds(10'000);
  ASSERT_TRUE(once());
  EXPECT_EQ(bundle(), right);
  EXPECT_THAT(server.writes(), ElementsAre("patch " + service_path));
}

TEST_F(view_certificates_test, a_secret_that_is_not_ours_is_left_alone) {
  server.put(secret_path, {{"metadata", {{"name", "quartermaster-views"}, {"namespace", "quartermaster"}}},
                           {"data", {{"tls.key", kube::base64_encode("precious")}}}});
  install();
  server.forget();
  settle();
  EXPECT_THAT(server.writes(), IsEmpty());
}

/// As kube-apiserver sends it.
TEST(api_service, has_its_bundle_by_the_number_of_the_field) {
  std::string metadata, spec, whole;
  {
    protozero::pbf_writer writer(metadata);
    writer.add_string(1, "v1alpha1.view.quartermaster.io");
  }
  {
    protozero::pbf_writer writer(spec);
    writer.add_string(2, "view.quartermaster.io");
    writer.add_bytes(5, "PEM");
    writer.add_int32(7, 100);
  }
  {
    protozero::pbf_writer writer(whole);
    writer.add_message(1, metadata);
    writer.add_message(2, spec);
  }
  const auto read = api_service::decode(whole);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->authorities, "PEM");
}

}  // namespace
}  // namespace reconcilers
