// The exact request of every verb: what the API server will see is what stands here.

#include "kube/request.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace {

using namespace kube;
using nlohmann::json;
using namespace std::chrono_literals;

const object_key web{"shop", "web"};
const object_key control_plane_node{"", "control-plane-1"};

TEST(path_of, names_collections_objects_and_subresources) {
  struct row {
    const resource& type;
    std::string_view ns, name, sub, expected;
  };
  const row rows[] = {
      {resources::pods, "", "", "", "/api/v1/pods"},
      {resources::pods, "shop", "", "", "/api/v1/namespaces/shop/pods"},
      {resources::pods, "shop", "web", "", "/api/v1/namespaces/shop/pods/web"},
      {resources::pods, "shop", "web", "status", "/api/v1/namespaces/shop/pods/web/status"},
      {resources::nodes, "", "n", "", "/api/v1/nodes/n"},
      {resources::nodes, "ignored", "n", "", "/api/v1/nodes/n"},
      {resources::daemon_sets, "kube-system", "x", "", "/apis/apps/v1/namespaces/kube-system/daemonsets/x"},
      {resources::accelerator_nodes, "", "n", "status", "/apis/quartermaster.io/v1alpha1/acceleratornodes/n/status"},
      {resources::pods, "a/b", "c?d e%", "", "/api/v1/namespaces/a%2Fb/pods/c%3Fd%20e%25"},
      {resources::nodes, "", "system:node-\xc3\xa4.x_y~z", "", "/api/v1/nodes/system%3Anode-%C3%A4.x_y~z"},
  };
  for (const auto& [type, ns, name, sub, expected] : rows) EXPECT_EQ(path_of(type, ns, name, sub), expected);
}

TEST(request, get_asks_for_json_unless_told_otherwise) {
  const auto plain = get_request(resources::nodes, control_plane_node);
  EXPECT_EQ(plain.verb, method::get);
  EXPECT_EQ(plain.target, "/api/v1/nodes/control-plane-1");
  EXPECT_EQ(plain.accept, "application/json");
  EXPECT_EQ(plain.channel, lane::unary);
  EXPECT_TRUE(plain.body.empty() && plain.content_type.empty());
  EXPECT_EQ(get_request(resources::nodes, control_plane_node, encoding::protobuf).accept,
            "application/vnd.kubernetes.protobuf");
}

TEST(request, list_page_carries_limit_selectors_and_version) {
  list_options options;
  const auto plain = list_page(resources::pods, options);
  EXPECT_EQ(plain.verb, method::get);
  EXPECT_EQ(plain.target, "/api/v1/pods?limit=500");
  EXPECT_EQ(plain.accept, "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(plain.channel, lane::unary);
  options.ns = "kube-public";
  options.label_selector = "features.cpaas.io/type=CustomResourceLimitation,a!=b";
  options.field_selector = "status.phase!=Succeeded";
  options.limit = 0;
  options.resource_version = "42";
  options.resource_version_match = "NotOlderThan";
  options.accept = encoding::json;
  const auto full = list_page(resources::config_maps, options);
  EXPECT_EQ(
      full.target,
      "/api/v1/namespaces/kube-public/configmaps?labelSelector=features.cpaas.io%2Ftype%3DCustomResourceLimitation"
      "%2Ca%21%3Db&fieldSelector=status.phase%21%3DSucceeded&resourceVersion=42&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(full.accept, "application/json");
}

TEST(request, a_continued_page_carries_the_token_and_no_version) {
  list_options options;
  options.continue_token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ==";
  options.resource_version = "42";
  options.resource_version_match = "Exact";
  EXPECT_EQ(list_page(resources::pods, options).target,
            "/api/v1/pods?limit=500&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ%3D%3D");
}

TEST(request, watch_asks_for_bookmarks_on_the_watch_lane) {
  watch_options options;
  options.resource_version = "42";
  options.timeout = 321s;
  options.silence = 150s;
  const auto plain = watch_from(resources::pods, options);
  EXPECT_EQ(plain.target, "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=42&timeoutSeconds=321");
  EXPECT_EQ(plain.accept, "application/vnd.kubernetes.protobuf;stream=watch");
  EXPECT_EQ(plain.channel, lane::watch);
  EXPECT_EQ(plain.silence, 150s);
  EXPECT_EQ(plain.deadline, 0s);
}

TEST(request, watch_list_asks_for_the_initial_events) {
  watch_options options;
  options.send_initial_events = true;
  options.accept = encoding::json;
  options.label_selector = "a=b";
  const auto made = watch_from(resources::accelerator_nodes, options);
  EXPECT_EQ(made.target,
            "/apis/quartermaster.io/v1alpha1/acceleratornodes?watch=true&allowWatchBookmarks=true&labelSelector=a%3Db"
            "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true");
  EXPECT_EQ(made.accept, "application/json");
}

TEST(request, create_and_replace_send_json_with_strict_validation) {
  const json object{{"kind", "ConfigMap"}};
  const auto made = create_request(resources::config_maps, "shop", object);
  EXPECT_EQ(made.verb, method::post);
  EXPECT_EQ(made.target, "/api/v1/namespaces/shop/configmaps?fieldManager=quartermaster&fieldValidation=Strict");
  EXPECT_EQ(made.content_type, "application/json");
  EXPECT_EQ(json::parse(made.body), object);
  const auto replaced = replace_request(resources::config_maps, web, object);
  EXPECT_EQ(replaced.verb, method::put);
  EXPECT_EQ(replaced.target,
            "/api/v1/namespaces/shop/configmaps/web?fieldManager=quartermaster&fieldValidation=Strict");
}

TEST(request, apply_is_a_server_side_apply_and_forces_only_when_told) {
  const json object{{"kind", "DaemonSet"}};
  const auto gentle = apply_request(resources::daemon_sets, {"kube-system", "x"}, object);
  EXPECT_EQ(gentle.verb, method::patch);
  EXPECT_EQ(gentle.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(gentle.target,
            "/apis/apps/v1/namespaces/kube-system/daemonsets/x?fieldManager=quartermaster&fieldValidation=Strict");
  write_options options;
  options.force = options.dry_run = true;
  options.strict = false;
  options.field_manager = "quartermaster agent";
  EXPECT_EQ(apply_status_request(resources::accelerator_nodes, {"", "n"}, object, options).target,
            "/apis/quartermaster.io/v1alpha1/acceleratornodes/n/"
            "status?fieldManager=quartermaster%20agent&force=true&dryRun=All");
}

TEST(request, patch_names_its_kind_and_its_subresource_and_never_forces) {
  const auto patch = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", "u"}}});
  write_options options;
  options.force = true;  // the API server refuses force outside of apply
  const auto made = patch_request(resources::nodes, control_plane_node, patch_kind::json, patch, {}, options);
  EXPECT_EQ(made.verb, method::patch);
  EXPECT_EQ(made.content_type, "application/json-patch+json");
  EXPECT_EQ(made.target, "/api/v1/nodes/control-plane-1?fieldManager=quartermaster&fieldValidation=Strict");
  EXPECT_EQ(json::parse(made.body), patch);
  const auto merged = patch_request(resources::pods, web, patch_kind::merge, {{"a", 1}}, "status");
  EXPECT_EQ(merged.content_type, "application/merge-patch+json");
  EXPECT_EQ(merged.target, "/api/v1/namespaces/shop/pods/web/status?fieldManager=quartermaster&fieldValidation=Strict");
}

TEST(request, remove_carries_its_preconditions) {
  preconditions only_if;
  only_if.uid = "u-1";
  const auto made = remove_request(resources::pods, web, only_if, propagation::foreground, true);
  EXPECT_EQ(made.verb, method::del);
  EXPECT_EQ(made.target, "/api/v1/namespaces/shop/pods/web");
  EXPECT_EQ(json::parse(made.body), json::parse(R"({"apiVersion":"v1","kind":"DeleteOptions",
    "propagationPolicy":"Foreground","preconditions":{"uid":"u-1"},"dryRun":["All"]})"));
  EXPECT_EQ(json::parse(remove_request(resources::pods, web, {}, propagation::orphan).body),
            json::parse(R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Orphan"})"));
}

TEST(request, bind_is_one_write_with_uid_version_and_annotations) {
  preconditions only_if;
  only_if.uid = "u-1";
  only_if.resource_version = "42";
  const auto made = bind_request(web, "gpu-1", only_if, {{"quartermaster.io/placement", "{}"}});
  EXPECT_EQ(made.verb, method::post);
  EXPECT_EQ(made.target, "/api/v1/namespaces/shop/pods/web/binding");
  EXPECT_EQ(json::parse(made.body), json::parse(R"({"apiVersion":"v1","kind":"Binding",
    "metadata":{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"42",
      "annotations":{"quartermaster.io/placement":"{}"}},
    "target":{"apiVersion":"v1","kind":"Node","name":"gpu-1"}})"));
  EXPECT_EQ(json::parse(bind_request(web, "gpu-1", {}, nullptr).body)["metadata"],
            json::parse(R"({"name":"web","namespace":"shop"})"));
}

TEST(request, evict_goes_through_the_eviction_api) {
  preconditions only_if;
  only_if.uid = "u-1";
  const auto made = evict_request(web, only_if, 30s, true);
  EXPECT_EQ(made.verb, method::post);
  EXPECT_EQ(made.target, "/api/v1/namespaces/shop/pods/web/eviction");
  EXPECT_EQ(json::parse(made.body), json::parse(R"({"apiVersion":"policy/v1","kind":"Eviction",
    "metadata":{"name":"web","namespace":"shop"},
    "deleteOptions":{"preconditions":{"uid":"u-1"},"gracePeriodSeconds":30,"dryRun":["All"]}})"));
  EXPECT_FALSE(json::parse(evict_request(web, {}).body).contains("deleteOptions"));
}

TEST(request, a_lease_is_read_and_written_on_its_own_lane_and_watched_like_all) {
  const object_key key{"quartermaster", "quartermaster"};
  EXPECT_EQ(get_request(resources::leases, key).channel, lane::lease);
  EXPECT_EQ(create_request(resources::leases, key.ns, {}).channel, lane::lease);
  EXPECT_EQ(replace_request(resources::leases, key, {}).channel, lane::lease);
  EXPECT_EQ(list_page(resources::leases, {}).channel, lane::unary);
  EXPECT_EQ(watch_from(resources::leases, {}).channel, lane::watch);
}

TEST(request, F37_text_that_is_not_utf8_is_replaced_and_does_not_throw) {
  const auto made = create_request(resources::config_maps, "shop", {{"data", {{"k", "\xff\xfe"}}}});
  EXPECT_TRUE(json::accept(made.body));
}

}  // namespace
