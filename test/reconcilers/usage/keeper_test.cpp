// The keeper against a small API server: kills between two writes, answers that are lost, changes of leader, months'
// ends.
#include "reconcilers/usage/keeper.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdlib>
#include <random>

#include "test/kube/loop.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/reconcilers/fake_server.hpp"

namespace {

using namespace reconcilers::usage;
using extender_test::share, extender_test::next_version, extender_test::vgpu_node;
using nlohmann::json;
using quota::card_time, quota::seconds;

constexpr seconds november = 1793491200;  // 2026-11-01
constexpr seconds december = november + 30 * 86400;
constexpr std::string_view collection = "/apis/quartermaster.io/v1alpha1/acceleratorusages";

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

/// One process: its stores, its ledger, its book of time and its keeper.
struct replica {
  world& around;
  extender_test::stores known;
  controller::store<kube::name_space> name_spaces;
  controller::registry metrics;
  reconcilers::extender::account account{
      {known.pods, known.nodes, known.policies, known.rules, known.quotas, known.old_quotas, known.cards}, metrics};
  controller::milliseconds steady{0};
  recorder book{{known.pods, known.nodes, known.cards, name_spaces, known.policies, account,
                 [this] { return std::optional(around.now); }, [this] { return steady; }}};
  kube::client client{around.server.transport};
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
  bool checkpoint() { return run(usage.checkpoint()); }
};

kube::node ready(kube::node node) {
  node.ready = kube::condition_status::yes;
  return node;
}
kube::pod bound(const std::string& name, std::int64_t cores, seconds time) {
  auto out = share(name, cores, 4, "gpu-1");  // 1 GiB
  out.scheduled_at = time;
  return out;
}
kube::pod finished(kube::pod pod, seconds time) {
  pod.phase = kube::pod_phase::succeeded;
  pod.finished_at = time;
  pod.resource_version = next_version();
  return pod;
}
card_time sum(const quota::usage_rows& rows) {
  card_time out;
  for (const auto& [key, time] : rows) out += time;
  return out;
}
/// All namespaces' parts are the cluster's, and each row of it adds up.
void expect_sound(const world& around) {
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

struct usage_keeper : testing::Test {
  world around;
  std::vector<kube::node> nodes{ready(vgpu_node("gpu-1", 1))};
};

TEST_F(usage_keeper, writes_the_time_of_a_pod_and_the_rest_of_the_card) {
  replica only(around, {}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 10;
  only.known.pods.put(bound("p", 30, around.now));
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  const auto team = around.object("2026-11.lab");
  EXPECT_EQ(team.until, around.now);
  EXPECT_EQ(team.since, november + 1000);
  ASSERT_EQ(team.rows.size(), 1U);
  EXPECT_EQ(team.rows.begin()->first.mode, "vGPU");
  EXPECT_EQ(team.rows.begin()->second, (card_time{30 * 60, 1024 * 60}));
  const auto cluster = around.object("2026-11");
  const auto& row = cluster.models.begin()->second;
  EXPECT_EQ(row.capacity.core_seconds, 100 * 70);
  EXPECT_EQ(row.idle.core_seconds, 100 * 70 - 30 * 60);
  expect_sound(around);
  only.known.pods.put(finished(bound("p", 30, around.now - 60), around.now + 5));
  around.now += 10;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 60) << "it ended in the future: at once";
}

TEST_F(usage_keeper, what_a_status_says_is_counted_until_then) {
  replica only(around, {}, nodes);
  ASSERT_TRUE(only.resume());
  const auto pod = bound("p", 30, around.now);
  only.known.pods.put(pod);
  around.now += 60;
  only.known.pods.put(finished(pod, around.now - 7));
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 53);
  only.known.pods.erase(*only.known.pods.find(pod.key));
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 53);
}

TEST_F(usage_keeper, a_kill_between_two_writes_is_a_checkpoint_that_never_was) {
  const auto pod = bound("p", 30, around.now);
  {
    replica first(around, {pod}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
    around.now += 60;
    around.writes_left = 1;  // the namespace's, and not the cluster's
    EXPECT_FALSE(first.checkpoint());
  }
  EXPECT_EQ(around.object("2026-11.lab").until, around.now);
  EXPECT_EQ(around.object("2026-11").until, around.now - 60);
  expect_sound(around);
  around.writes_left = -1;
  around.now += 10;
  replica second(around, {pod}, nodes);
  ASSERT_TRUE(second.resume());
  around.now += 5;
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 135);
  EXPECT_EQ(around.object("2026-11").models.begin()->second.unattributed.core_seconds, 70 * 70);
  expect_sound(around);
}

TEST_F(usage_keeper, a_pod_that_vanished_with_the_operator_leaves_its_object_as_it_was_committed) {
  {
    replica first(around, {bound("p", 30, around.now)}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    around.writes_left = 1;
    EXPECT_FALSE(first.checkpoint());
  }
  ASSERT_TRUE(around.has("2026-11.lab"));
  around.writes_left = -1;
  // Nothing was ever committed: the second begins anew.
  replica second(around, {}, nodes);
  ASSERT_TRUE(second.resume());
  around.now += 5;
  ASSERT_TRUE(second.checkpoint());
  around.now += 5;
  ASSERT_TRUE(second.checkpoint());
  expect_sound(around);
}

TEST_F(usage_keeper, an_answer_that_is_lost_doubles_nothing) {
  replica only(around, {bound("p", 30, around.now)}, nodes);
  ASSERT_TRUE(only.resume());
  for (int lost = 1; lost < 4; ++lost) {
    around.now += 60;
    around.answers_lost = lost;
    EXPECT_FALSE(only.checkpoint());
    around.answers_lost = 0;
    expect_sound(around);
    around.now += 5;
    ASSERT_TRUE(only.checkpoint());
    EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * (65 * lost));
    expect_sound(around);
  }
}

TEST_F(usage_keeper, a_month_ends) {
  around.now = december - 30;
  replica only(around, {bound("p", 30, around.now)}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 90;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 30);
  EXPECT_EQ(around.object("2026-11.lab").until, december);
  EXPECT_EQ(around.object("2026-11").until, december);
  EXPECT_EQ(sum(around.object("2026-12.lab").rows).core_seconds, 30 * 60);
  EXPECT_EQ(around.object("2026-12").since, december);
  EXPECT_EQ(around.object("2026-12").until, december + 60);
  expect_sound(around);
}

TEST_F(usage_keeper, a_kill_in_the_first_checkpoint_of_a_month) {
  around.now = december - 30;
  const auto pod = bound("p", 30, around.now);
  {
    replica first(around, {pod}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 90;
    around.writes_left = 3;  // all of November, and the namespace's of December
    EXPECT_FALSE(first.checkpoint());
  }
  ASSERT_TRUE(around.has("2026-12.lab"));
  ASSERT_FALSE(around.has("2026-12"));
  around.writes_left = -1;
  replica second(around, {}, nodes);
  ASSERT_TRUE(second.resume());
  EXPECT_FALSE(around.has("2026-12.lab")) << "a checkpoint that never was";
  around.now += 40;
  ASSERT_TRUE(second.checkpoint());
  const auto row = around.object("2026-12").models.begin()->second;
  EXPECT_EQ(row.unattributed.core_seconds, 100 * 60) << "from the end of November to the start of the second";
  EXPECT_EQ(row.idle.core_seconds, 100 * 40);
  expect_sound(around);
}

TEST_F(usage_keeper, switched_off_for_a_year) {
  {
    replica first(around, {}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
  }
  around.now += 365 * 86400;
  replica second(around, {}, nodes);
  ASSERT_TRUE(second.resume());
  ASSERT_TRUE(second.checkpoint());
  const auto march = around.object("2027-03");
  EXPECT_EQ(march.until - march.since, 31 * 86400);
  EXPECT_EQ(march.models.begin()->second.unattributed, march.models.begin()->second.capacity);
  EXPECT_TRUE(around.has("2027-11"));
  expect_sound(around);
}

TEST_F(usage_keeper, a_replica_that_watched_loses_nothing_when_it_begins_to_lead) {
  const auto pod = bound("p", 30, around.now), other = bound("q", 10, around.now);
  replica waiting(around, {pod, other}, nodes);
  {
    replica leader(around, {pod, other}, nodes);
    ASSERT_TRUE(leader.resume());
    around.now += 60;
    ASSERT_TRUE(leader.checkpoint());
  }
  around.now += 20;
  waiting.known.pods.erase(pod);
  around.now += 20;
  ASSERT_TRUE(waiting.resume());
  ASSERT_TRUE(waiting.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 80 + 10 * 100);
  EXPECT_TRUE(around.object("2026-11").models.begin()->second.unattributed.zero());
  expect_sound(around);
}

TEST_F(usage_keeper, a_pod_that_is_missed_by_the_watch_is_attributed_until_its_break) {
  const auto pod = bound("p", 30, around.now);
  replica only(around, {pod}, nodes);
  ASSERT_TRUE(only.resume());
  only.steady += std::chrono::seconds(60);
  around.now += 60;
  only.book.begin_gap(only.steady - std::chrono::seconds(25));
  only.known.pods.erase(pod);
  only.book.end_gap();
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 35);
  EXPECT_EQ(around.object("2026-11").models.begin()->second.unattributed.core_seconds, 30 * 25);
  expect_sound(around);
}

TEST_F(usage_keeper, a_pod_that_came_and_went_unseen_is_counted_by_its_status) {
  {
    replica first(around, {}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
  }
  const auto pod = finished(bound("p", 40, around.now + 5), around.now + 25);
  around.now += 40;
  replica second(around, {pod}, nodes);
  ASSERT_TRUE(second.resume());
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 40 * 20);
  EXPECT_EQ(around.object("2026-11").models.begin()->second.unattributed.core_seconds, 100 * 40 - 40 * 20);
  expect_sound(around);
}

/// As `kubectl get -o yaml`, another name, and `kubectl apply` make it.
TEST_F(usage_keeper, a_copy_under_another_name_is_left_alone) {
  const auto pod = bound("p", 30, around.now);
  {
    replica first(around, {pod}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
  }
  for (const std::string name : {"2026-11.lab", "2026-11"}) {
    auto copy = around.server.objects.at(std::string(collection) + "/" + name);
    copy["metadata"]["name"] = "zz-" + name;
    copy["usage"]["through"] = name == "2026-11" ? "2026-11-30T00:00:00Z" : "2026-11-01T00:00:01Z";
    copy["usage"]["rows"] = json::array();
    around.server.objects[std::string(collection) + "/zz-" + name] = copy;
  }
  const auto copies = around.server.objects;
  replica second(around, {pod}, nodes);
  ASSERT_TRUE(second.resume());
  around.now += 60;
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(around.object("2026-11").until, around.now);
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 120);
  for (const std::string name : {"/zz-2026-11.lab", "/zz-2026-11"})
    EXPECT_EQ(around.server.objects[std::string(collection) + name], copies.at(std::string(collection) + name));
}

TEST_F(usage_keeper, an_object_of_the_cluster_that_is_deleted_or_set_back_takes_no_bill_with_it) {
  for (const bool deleted : {true, false}) {
    around.server.objects.clear();
    const auto pod = bound("p", 30, around.now);
    const auto begin = around.now;
    {
      replica first(around, {pod}, nodes);
      ASSERT_TRUE(first.resume());
      for (int i = 0; i < 5; ++i) {
        around.now += 60;
        ASSERT_TRUE(first.checkpoint());
      }
    }
    const auto path = std::string(collection) + "/2026-11";
    if (deleted)
      around.server.objects.erase(path);
    else
      around.server.objects[path]["usage"]["through"] = "2026-11-01T00:00:01Z";
    replica second(around, {pod}, nodes);
    ASSERT_TRUE(second.resume());
    around.now += 60;
    ASSERT_TRUE(second.checkpoint());
    EXPECT_EQ(around.object("2026-11").until, around.now);
    EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 360) << deleted;
    EXPECT_EQ(around.object("2026-11.lab").since, begin);
  }
}

TEST_F(usage_keeper, the_object_of_a_month_that_just_began_may_be_deleted) {
  around.now = december - 60;
  const auto pod = bound("p", 30, around.now);
  {
    replica first(around, {pod}, nodes);
    ASSERT_TRUE(first.resume());
    for (int i = 0; i < 5; ++i) {
      around.now += 60;
      ASSERT_TRUE(first.checkpoint());
    }
  }
  around.server.objects.erase(std::string(collection) + "/2026-12");
  replica second(around, {pod}, nodes);
  ASSERT_TRUE(second.resume());
  around.now += 60;
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 60);
  EXPECT_EQ(sum(around.object("2026-12.lab").rows).core_seconds, 30 * 300);
}

/// What a replica takes for settled it never counts again.
TEST_F(usage_keeper, a_replica_that_waits_does_not_believe_the_future) {
  replica waiting(around, {bound("p", 30, around.now)}, nodes);
  controller::store<api::accelerator_usage> usages;
  api::accelerator_usage usage;
  usage.month = "2026-11";
  usage.key.name = "2026-11";
  usage.until = around.now + 86400;
  usage.id = kube::uid::parse("usage");
  usages.put(usage);
  boost::asio::io_context loop;
  boost::asio::co_spawn(loop, waiting.usage.watch(usages), boost::asio::detached);
  loop.run_for(std::chrono::milliseconds(100));
  EXPECT_LE(waiting.book.book().settled(), around.now);
}

TEST_F(usage_keeper, cards_that_an_agent_names_keep_their_pods) {
  const auto pod = bound("p", 30, around.now);
  replica only(around, {pod}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 10;
  only.known.cards.put(extender_test::reported(
      "gpu-1", {{{"index", 0}, {"uuid", "GPU-7"}, {"model", "T4"}, {"memoryMiB", 16384}, {"health", "Healthy"}}}));
  EXPECT_TRUE(only.book.take_renamed());
  around.now += 10;
  ASSERT_TRUE(only.checkpoint());
  const auto team = around.object("2026-11.lab");
  EXPECT_EQ(sum(team.rows).core_seconds, 30 * 20);
  expect_sound(around);
}

/// Pods come, end and vanish while operators are killed in the middle of checkpoints, follow each other, and lose
/// answers, across the ends of months. Of every pod it is known until when an operator can have seen it.
void run_schedule(unsigned long seed) {
  SCOPED_TRACE("QM_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  world around;
  around.now = december - below(600);
  const std::vector<kube::node> nodes{ready(vgpu_node("gpu-1", 4))};
  std::map<std::string, kube::pod> pods;  // that are there
  std::int64_t expected = 0;              // core-seconds
  int number = 0;
  std::unique_ptr<replica> leader = std::make_unique<replica>(around, std::vector<kube::pod>(), nodes), waiting;
  ASSERT_TRUE(leader->resume());
  seconds committed = around.now;
  const auto there = [&] {
    std::vector<kube::pod> out;
    for (const auto& [name, pod] : pods) out.push_back(pod);
    return out;
  };
  const auto tell = [&](const auto& change) {
    if (leader) change(leader->known.pods);
    if (waiting) change(waiting->known.pods);
  };
  /// A pod that has vanished, and who has seen it and has not written it yet.
  struct vanished {
    kube::pod pod;
    seconds end;
    bool by_leader, by_waiting;
  };
  std::vector<vanished> leaving;
  const auto cores = [](const kube::pod& pod) { return pod.containers.front().limits.front().second; };
  const auto count = [&](const vanished& entry, seconds end) {
    expected += cores(entry.pod) * std::max<seconds>(end - entry.pod.scheduled_at, 0);
  };
  /// Of a pod that nobody alive has seen go, the last checkpoint is the last that is known.
  const auto forget_unseen = [&] {
    std::erase_if(leaving, [&](const vanished& entry) {
      if (entry.by_leader || entry.by_waiting) return false;
      count(entry, committed);
      return true;
    });
  };
  const auto kill_leader = [&] {
    leader.reset();
    for (auto& entry : leaving) entry.by_leader = false;
    forget_unseen();
  };
  const auto commit = [&] {
    committed = around.now;
    std::erase_if(leaving, [&](const vanished& entry) {
      if (entry.by_leader) count(entry, entry.end);
      return entry.by_leader;
    });
  };
  for (int steps = 60; steps > 0; --steps) {
    around.now += below(40);
    const int roll = below(100);
    if (roll < 30) {
      const auto pod = bound("p" + std::to_string(++number), 1 + below(20), around.now);
      pods.emplace(pod.key.name, pod);
      tell([&](auto& store) { store.put(pod); });
    } else if (roll < 55 && !pods.empty()) {
      const auto match = std::next(pods.begin(), below(static_cast<int>(pods.size())));
      const auto pod = match->second;
      pods.erase(match);
      leaving.push_back({pod, around.now, leader != nullptr, waiting != nullptr});
      forget_unseen();
      tell([&](auto& store) { store.erase(*store.find(pod.key)); });
    } else if (roll < 80 && leader) {
      const int fault = below(6);
      if (fault == 0) around.answers_lost = 1 + below(3);
      if (fault == 1) around.writes_left = below(3);
      const bool done = leader->checkpoint();
      around.answers_lost = 0;
      around.writes_left = -1;
      if (done) commit();
      if (!done && fault == 1 && below(2)) {
        for (const auto& [path, object] : around.server.objects)  // it may have come to the end of a month
          if (const auto usage = *api::accelerator_usage::decode(object.dump()); usage.name_space.empty())
            committed = std::max(committed, usage.until);
        kill_leader();
      } else if (!done) {
        ASSERT_TRUE(leader->checkpoint());
        commit();
      }
    } else if (roll < 85) {
      kill_leader();
    } else if (roll < 90) {
      for (auto& entry : leaving) entry.by_waiting = false;
      waiting = std::make_unique<replica>(around, there(), nodes);
      forget_unseen();
    } else if (roll < 95) {
      for (auto& entry : leaving) entry.by_waiting = false;
      waiting.reset();
      forget_unseen();
    }
    if (!leader && below(3) == 0) {
      for (auto& entry : leaving) entry.by_leader = std::exchange(entry.by_waiting, false);
      leader = waiting ? std::move(waiting) : std::make_unique<replica>(around, there(), nodes);
      ASSERT_TRUE(leader->resume());
    }
  }
  if (!leader) {
    for (auto& entry : leaving) entry.by_waiting = false;
    forget_unseen();
    leader = std::make_unique<replica>(around, there(), nodes);
    ASSERT_TRUE(leader->resume());
  }
  around.now += 7;
  ASSERT_TRUE(leader->checkpoint());
  commit();
  for (const auto& [name, pod] : pods) expected += cores(pod) * (around.now - pod.scheduled_at);
  expect_sound(around);
  std::int64_t parts = 0;
  for (const auto& [path, object] : around.server.objects) {
    const auto usage = *api::accelerator_usage::decode(object.dump());
    if (!usage.name_space.empty()) parts += sum(usage.rows).core_seconds;
  }
  EXPECT_EQ(parts, expected);
}

TEST(usage_schedules, every_second_of_a_pod_is_counted_once) {
  const char* const seed = std::getenv("QM_SEED");
  if (seed) return run_schedule(std::strtoul(seed, nullptr, 10));
  const char* const schedules = std::getenv("QM_USAGE_SCHEDULES");
  const auto count = schedules ? std::strtoul(schedules, nullptr, 10) : 200UL;
  for (unsigned long i = 1; i <= count && !testing::Test::HasFailure(); ++i) run_schedule(i);
}

}  // namespace
