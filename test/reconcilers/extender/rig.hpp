#pragma once
// Nodes and pods as the extender's tests write them, and the stores they come into.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "controller/loop.hpp"
#include "reconcilers/extender/binder.hpp"
#include "reconcilers/extender/extender.hpp"
#include "reconcilers/extender/fence.hpp"
#include "reconcilers/extender/waiting.hpp"
#include "test/controller/rig.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/reconcilers/recording_transport.hpp"

namespace extender_test {

using nlohmann::json;
using amounts = std::vector<std::pair<std::string, std::int64_t>>;
using texts = std::vector<std::pair<std::string, std::string>>;
using role = kube::container::role;

/// The one resource that a ConfigMap declares.
inline bool is_fpga(std::string_view key) { return key == "example.com/fpga"; }

/// The write by which a leader keeps Bindings of an earlier one out.
inline bool is_seal(const kube::request& request) {
  return request.body.contains(reconcilers::extender::seal_annotation);
}

using reconcilers::packed;
inline kube::quantities quantities(amounts amounts) {
  std::ranges::sort(amounts);
  return amounts;
}

inline kube::node node(const std::string& name, const texts& labels, const amounts& allocatable,
                       const texts& annotations = {}) {
  kube::node out;
  out.key.name = name;
  out.id = kube::uid::parse("node-" + name);
  out.resource_version = 1;
  out.labels = packed(labels);
  out.annotations = packed(annotations);
  out.allocatable = out.capacity = quantities(allocatable);
  return out;
}
/// `cards` of 16 GiB each, served by gpu-manager.
inline kube::node vgpu_node(const std::string& name, std::int64_t cards) {
  return node(name, {{"quartermaster.io/module", "vgpu"}},
              {{"tencent.com/vcuda-core", cards * 100}, {"tencent.com/vcuda-memory", cards * 64}});
}

/// As it is while its mode changes.
inline kube::node switching(kube::node node) {
  node.taints.push_back({"quartermaster.io/switching", "vgpu.pgpu", "NoSchedule"});
  return node;
}

inline std::uint64_t next_version() {
  static std::uint64_t last = 100;
  return ++last;
}
inline kube::container container(const std::string& name, const amounts& limits, role kind = role::main) {
  kube::container out;
  out.name = name;
  out.kind = kind;
  out.limits = quantities(limits);
  return out;
}
inline kube::pod pod(const std::string& name, std::vector<kube::container> containers,
                     const std::string& node_name = {}) {
  kube::pod out;
  out.key = {"lab", name};
  out.id = kube::uid::parse("pod-" + name);
  out.resource_version = next_version();
  out.containers = std::move(containers);
  out.node_name = node_name;
  out.phase = kube::pod_phase::pending;
  return out;
}
/// One container "main" with a share by gpu-manager.
inline kube::pod share(const std::string& name, std::int64_t cores, std::int64_t units,
                       const std::string& node_name = {}) {
  return pod(name, {container("main", {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", units}})},
             node_name);
}
inline kube::pod annotated(kube::pod pod, const json& annotations) {
  texts all;
  for (const auto [key, value] : pod.annotations) all.emplace_back(key, value);
  for (const auto& [key, value] : annotations.items()) all.emplace_back(key, value.get<std::string>());
  pod.annotations = packed(all);
  pod.resource_version = next_version();
  return pod;
}

/// A pod as the API server writes it.
inline json document(const kube::pod& pod) {
  json containers = json::array();
  for (const auto& container : pod.containers) {
    json limits = json::object();
    for (const auto& [key, amount] : container.limits) limits[key] = std::to_string(amount);
    containers.push_back({{"name", container.name}, {"resources", {{"limits", limits}, {"requests", limits}}}});
  }
  json annotations = json::object();
  for (const auto [key, value] : pod.annotations) annotations[std::string(key)] = value;
  json out{{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata",
            {{"name", pod.key.name},
             {"namespace", pod.key.ns},
             {"uid", pod.id.to_string()},
             {"resourceVersion", std::to_string(pod.resource_version)},
             {"annotations", annotations}}},
           {"spec", {{"containers", containers}}},
           {"status", {{"phase", "Pending"}}}};
  if (!pod.node_name.empty()) out["spec"]["nodeName"] = pod.node_name;
  if (pod.priority != 0) out["spec"]["priority"] = pod.priority;
  if (!pod.nominated_node.empty()) out["status"]["nominatedNodeName"] = pod.nominated_node.front();
  return out;
}

/// Cards as an agent reports them.
inline api::accelerator_node reported(const std::string& node, const json& cards) {
  const json document{{"metadata",
                       {{"name", node},
                        {"uid", "00000000-0000-4000-8000-000000000009"},
                        {"resourceVersion", std::to_string(next_version())}}},
                      {"status", {{"cards", cards}}}};
  return *api::accelerator_node::decode(document.dump());
}

/// An AcceleratorQuota as the API server has it.
inline api::accelerator_quota quota_of(const std::string& ns, const std::string& name, const json& spec,
                                       std::int64_t generation = 3) {
  const json written{{"apiVersion", "quartermaster.io/v1alpha1"},
                     {"kind", "AcceleratorQuota"},
                     {"metadata",
                      {{"name", name},
                       {"namespace", ns},
                       {"uid", kube::uid::parse("quota-" + ns + "/" + name).to_string()},
                       {"resourceVersion", std::to_string(next_version())},
                       {"generation", generation}}},
                     {"spec", spec}};
  return *api::accelerator_quota::decode(written.dump());
}
/// Limits of namespace "lab", where pods of these tests are; another generation each time.
inline api::accelerator_quota limits_of_lab(const json& hard) {
  return quota_of("lab", "q", {{"hard", hard}}, static_cast<std::int64_t>(next_version()));
}

struct stores {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<api::accelerator_quota> quotas;
  controller::store<kube::config_map> old_quotas;
  controller::store<api::accelerator_node> cards;

  stores() {
    auto sync = [](auto& store) { store.begin(), store.commit(); };
    sync(pods), sync(nodes), sync(policies), sync(rules), sync(quotas), sync(old_quotas), sync(cards);
  }
  void declare(const json& keys) {
    api::compiled_rules rules_now;
    rules_now.key = api::compiled_rules::only();
    rules_now.resource_version = next_version();
    rules_now.spec = json{{"keys", keys}}.dump();
    rules.put(rules_now);
  }
};

/// Another operator's view.
struct fresh {
  controller::registry metrics;
  stores known;
  reconcilers::extender::account book{
      {known.pods, known.nodes, known.policies, known.rules, known.quotas, known.old_quotas, known.cards}, metrics};

  quota::card_use used(const std::string& name, std::size_t card) const { return book.book().view(name)->used[card]; }
};

/// Stores, and the ledger that follows them.
struct rig : controller_test::rig {
  stores known;
  reconcilers::extender::account book{
      {known.pods, known.nodes, known.policies, known.rules, known.quotas, known.old_quotas, known.cards}, metrics};

  quota::card_use used(const std::string& name, std::size_t card) const { return book.book().view(name)->used[card]; }
};

}  // namespace extender_test
