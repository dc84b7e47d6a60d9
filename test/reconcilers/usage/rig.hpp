#pragma once
// A small API server for AcceleratorUsages that can be cut off, and operators around it.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "controller/sleep.hpp"
#include "reconcilers/usage/keeper.hpp"
#include "test/kube/loop.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/reconcilers/fake_server.hpp"

namespace usage_test {

using namespace reconcilers::usage;
using extender_test::share, extender_test::next_version, extender_test::vgpu_node;
using nlohmann::json;
using quota::card_time, quota::seconds;

inline constexpr seconds november = 1793491200;  // 2026-11-01
inline constexpr seconds december = november + 30 * 86400;
inline constexpr std::string_view collection = "/apis/quartermaster.io/v1alpha1/acceleratorusages";

/// What all replicas share: the API server, and its time.
struct world {
  reconcilers::fake_server server;
  seconds now = november + 1000;
  int writes_left = -1;  ///< then the operator is dead: no write of it arrives; -1: it lives
  int answers_lost = 0;  ///< so many writes arrive, and their answers do not

  world() {
    auto serve = server.transport.answer;
    server.transport.answer = [this, serve](const kube::request& request) -> kube::result<kube::response> {
      if (request.verb == kube::method::get && reconcilers::fake_server::path_of_target(request.target) == collection)
        return list(request.target);
      if (request.verb == kube::method::get) return serve(request);
      if (writes_left == 0) return std::unexpected(kube::error{kube::errc::connect, 0, "no way to the server", {}});
      if (writes_left > 0) --writes_left;
      auto answer = serve(request);
      if (answers_lost == 0) return answer;
      --answers_lost;
      return std::unexpected(kube::error{kube::errc::timeout, 0, "no answer", {}});
    };
  }
  kube::response list(const std::string& target) const {
    auto items = json::array();
    for (const auto& [path, object] : server.objects) {
      const auto& labels = object.at("metadata").at("labels");
      const bool whole = target.contains("usage-cluster");
      const auto month = labels.at("quartermaster.io/usage-month").get<std::string>();
      if (whole ? labels.contains("quartermaster.io/usage-cluster") : target.contains(month)) items.push_back(object);
    }
    return reconcilers::recording_transport::answered(
        200, {{"kind", "AcceleratorUsageList"}, {"apiVersion", "quartermaster.io/v1alpha1"}, {"items", items}});
  }
  api::accelerator_usage object(const std::string& name) const {
    return *api::accelerator_usage::decode(server.objects.at(std::string(collection) + "/" + name).dump());
  }
  bool has(const std::string& name) const { return server.objects.contains(std::string(collection) + "/" + name); }
};

/// The way to the API server: an answer takes so long.
struct slow_transport final : kube::transport {
  world& around;
  std::chrono::milliseconds delay{0};

  explicit slow_transport(world& around) : around(around) {}
  kube::task<kube::response> send(kube::request request) override {
    if (delay.count() > 0) {
      const bool slept = co_await controller::sleep_for(delay);
      if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "cancelled", {}});
    }
    co_return co_await around.server.transport.send(std::move(request));
  }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override {
    return around.server.transport.stream(std::move(request), std::move(sink));
  }
};

/// One process: its stores, its ledger, its book of time and its keeper.
struct replica {
  world& around;
  extender_test::stores known;
  controller::store<kube::name_space> name_spaces;
  controller::registry metrics;
  reconcilers::extender::account account{
      {known.pods, known.nodes, known.policies, known.rules, known.quotas, known.old_quotas, known.cards}, metrics};
  controller::milliseconds steady{0};
  bool watching = true;
  recorder book{{known.pods, known.nodes, known.cards, name_spaces, known.policies, account,
                 [this] { return std::optional(around.now); }, [this] { return watching; }, [this] { return steady; }}};
  slow_transport line{around};
  kube::client client{line};
  keeper usage{client, book, metrics, {}};

  /// @param pods, nodes as the API server has them now
  replica(world& around, const std::vector<kube::pod>& pods, const std::vector<kube::node>& nodes) : around(around) {
    for (const auto& node : nodes) known.nodes.put(node);
    for (const auto& pod : pods) known.pods.put(pod);
    EXPECT_TRUE(book.begin());
  }
  bool run(kube::task<void> task) {
    boost::asio::io_context loop;
    return kube_test::run(loop, std::move(task)).has_value();
  }
  bool resume() { return run(usage.resume()); }
  bool checkpoint() { return run(usage.checkpoint(around.now)); }
};

inline kube::node ready(kube::node node) {
  node.ready = kube::condition_status::yes;
  return node;
}
inline kube::pod bound(const std::string& name, std::int64_t cores, seconds time) {
  auto out = share(name, cores, 4, "gpu-1");  // 1 GiB
  out.scheduled_at = time;
  return out;
}
inline kube::pod finished(kube::pod pod, seconds time) {
  pod.phase = kube::pod_phase::succeeded;
  pod.finished_at = time;
  pod.resource_version = next_version();
  return pod;
}
inline card_time sum(const quota::usage_rows& rows) {
  card_time out;
  for (const auto& [key, time] : rows) out += time;
  return out;
}
/// All namespaces' parts are the cluster's, and each row of it adds up.
inline void expect_sound(const world& around) {
  std::map<std::string, seconds> committed;
  std::map<std::string, card_time> cluster, parts;
  for (const auto& [path, object] : around.server.objects) {
    const auto usage = *api::accelerator_usage::decode(object.dump());
    if (!usage.name_space.empty()) continue;
    committed[usage.month] = usage.until;
    for (const auto& [model, row] : usage.models) {
      EXPECT_TRUE(row.adds_up()) << usage.month << " " << model;
      cluster[usage.month] += row.parts;
    }
  }
  for (const auto& [path, object] : around.server.objects) {
    const auto usage = *api::accelerator_usage::decode(object.dump());
    if (usage.name_space.empty() || !committed.contains(usage.month)) continue;
    if (const auto* rows = usage.rows_at(committed.at(usage.month))) parts[usage.month] += sum(*rows);
  }
  for (const auto& [month, time] : cluster) EXPECT_EQ(parts[month], time) << month;
}

}  // namespace usage_test
