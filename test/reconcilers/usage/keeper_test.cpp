// The keeper against a small API server: kills between two writes, answers that are lost, changes of leader, months'
// ends.
#include "reconcilers/usage/keeper.hpp"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "test/reconcilers/usage/rig.hpp"

namespace usage_test {
namespace {

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

/// Its node serves nothing of the kind any more when its Binding is seen: what was decided for it is not what it has.
TEST_F(usage_keeper, a_pod_pays_for_no_card_that_it_was_only_meant_to_get) {
  replica only(around, {}, nodes);
  ASSERT_TRUE(only.resume());
  only.known.pods.put(share("p", 30, 4));
  const auto card = only.account.book().view("gpu-1")->inventory->cards.front().uuid;
  const quota::holding holding{
      .node = "gpu-1", .grants = {{.cores = 30, .memory_mib = 1024, .card = card}}, .counts = {}};
  ASSERT_EQ(only.account.assume(share("p", 30, 4), holding, controller::milliseconds(0)), quota::booked::done);
  only.known.nodes.put(ready(extender_test::node("gpu-1", {}, {})));
  only.known.pods.put(bound("p", 30, around.now));
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_FALSE(around.has("2026-11.lab"));
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
  // Nothing was ever committed: the second begins again.
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

TEST_F(usage_keeper, an_old_month_that_is_set_to_today_takes_no_bill_with_it) {
  const auto pod = bound("p", 30, around.now);
  const auto begin = around.now;
  {
    replica first(around, {pod}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
  }
  auto old = around.server.objects.at(std::string(collection) + "/2026-11");
  old["metadata"]["name"] = old["usage"]["month"] = old["metadata"]["labels"]["quartermaster.io/usage-month"] =
      "2025-01";
  old["usage"]["through"] = "2026-11-01T00:17:45Z";  // 5 s after the last checkpoint
  around.server.objects[std::string(collection) + "/2025-01"] = old;
  around.now += 30;
  replica second(around, {pod}, nodes);
  ASSERT_TRUE(second.resume());
  around.now += 30;
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(around.object("2026-11").since, begin);
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 120);
  EXPECT_EQ(around.server.objects.at(std::string(collection) + "/2025-01"), old) << "it is left alone";
  around.server.objects.erase(std::string(collection) + "/2025-01");
  expect_sound(around);
}

/// What a replica takes for settled it never counts again.
TEST_F(usage_keeper, a_replica_that_waits_does_not_believe_an_old_month_that_is_set_to_today) {
  replica waiting(around, {bound("p", 30, around.now)}, nodes);
  controller::store<api::accelerator_usage> usages;
  api::accelerator_usage usage;
  usage.month = usage.key.name = "2025-01";
  usage.until = around.now;
  usage.id = kube::uid::parse("usage");
  usages.put(usage);
  around.now += 10;
  boost::asio::io_context loop;
  boost::asio::co_spawn(loop, waiting.usage.watch(usages), boost::asio::detached);
  loop.run_for(std::chrono::milliseconds(100));
  EXPECT_LT(waiting.book.book().settled(), around.now - 10);
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

TEST_F(usage_keeper, a_checkpoint_is_due_at_the_start_and_every_five_minutes) {
  replica only(around, {bound("p", 30, around.now)}, nodes);
  ASSERT_TRUE(only.resume());
  EXPECT_FALSE(only.usage.due(around.now)) << "nothing has passed";
  around.now += 1;
  EXPECT_TRUE(only.usage.due(around.now)) << "from the start there is something to read";
  ASSERT_TRUE(only.checkpoint());
  const auto last = around.now;
  EXPECT_FALSE(only.usage.due(last - 10)) << "what is settled is settled";
  EXPECT_FALSE(only.usage.due(last + 299));
  EXPECT_TRUE(only.usage.due(last + 300));
  only.watching = false;
  EXPECT_FALSE(only.usage.due(last + 300)) << "what has happened is not known yet";
}

TEST_F(usage_keeper, a_checkpoint_is_due_when_the_month_is_over) {
  around.now = december - 20;
  replica only(around, {}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 5;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_FALSE(only.usage.due(december - 1));
  EXPECT_TRUE(only.usage.due(december));
}

TEST_F(usage_keeper, a_checkpoint_is_due_ten_seconds_after_the_end_of_a_pod) {
  const auto pod = bound("p", 30, around.now);
  replica only(around, {pod}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  const auto last = around.now;
  around.now = last + 3;
  only.known.pods.put(finished(pod, last + 2));
  only.watching = false;
  EXPECT_FALSE(only.usage.due(last + 20));
  only.watching = true;
  EXPECT_FALSE(only.usage.due(last + 2)) << "not before the end was seen";
  EXPECT_FALSE(only.usage.due(last + 9)) << "ten seconds after the last checkpoint, at least";
  EXPECT_TRUE(only.usage.due(last + 10)) << "an end that came while the watch was broken is not forgotten";
  around.now = last + 10;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_FALSE(only.usage.due(last + 100)) << "it is settled";
}

/// 300 namespaces that hold a share each, on five nodes of eight cards.
struct many_namespaces : testing::Test {
  static constexpr int count = 300;
  world around;
  std::vector<kube::node> nodes;
  std::vector<kube::pod> pods;

  many_namespaces() {
    for (int i = 1; i <= 5; ++i) nodes.push_back(ready(vgpu_node("gpu-" + std::to_string(i), 8)));
    for (int i = 0; i < count; ++i) {
      auto pod = share("p" + std::to_string(i), 10, 4, "gpu-" + std::to_string(i % 5 + 1));
      pod.key.ns = "team-" + std::to_string(i);
      pod.scheduled_at = around.now;
      pods.push_back(pod);
    }
  }
  std::int64_t core_seconds() const {
    const auto committed = around.object("2026-11").until;
    std::int64_t out = 0;
    for (int i = 0; i < count; ++i)
      if (const auto name = "2026-11.team-" + std::to_string(i); around.has(name))
        if (const auto object = around.object(name); const auto* rows = object.rows_at(committed))
          out += sum(*rows).core_seconds;
    return out;
  }
};

TEST_F(many_namespaces, a_checkpoint_is_a_write_for_each_and_one_for_the_cluster) {
  replica only(around, pods, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  around.server.forget();
  ASSERT_TRUE(only.checkpoint());
  const auto writes = around.server.writes();
  ASSERT_EQ(std::ssize(writes), count + 1);
  EXPECT_TRUE(writes.back().ends_with("/2026-11")) << "the cluster's is last";
  EXPECT_EQ(core_seconds(), count * 10 * 60);
  expect_sound(around);
  around.now += 10;
  only.known.pods.erase(pods.front());
  EXPECT_FALSE(only.usage.due(around.now)) << "a pod that ends makes no more than a write a second";
  EXPECT_FALSE(only.usage.due(around.now - 10 + count - 1));
  EXPECT_TRUE(only.usage.due(around.now - 10 + count));
}

/// A write takes 5 ms and the stop has no more than 200: the checkpoint ends there, and the next replica loses nothing.
TEST_F(many_namespaces, a_stop_does_not_wait_for_a_slow_server) {
  {
    replica first(around, pods, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
    around.now += 60;
    first.line.delay = std::chrono::milliseconds(5);
    boost::asio::io_context loop;
    boost::asio::cancellation_signal stop;
    bool ended = false;
    boost::asio::co_spawn(loop, first.usage.checkpoint(around.now),
                          boost::asio::bind_cancellation_slot(stop.slot(), [&](auto&&...) { ended = true; }));
    loop.run_for(std::chrono::milliseconds(200));
    ASSERT_FALSE(ended) << "this server is not slow";
    stop.emit(boost::asio::cancellation_type::terminal);
    loop.run_for(std::chrono::seconds(20));
    EXPECT_TRUE(ended);
  }
  EXPECT_EQ(around.object("2026-11").until, around.now - 60) << "a checkpoint that never was";
  EXPECT_EQ(core_seconds(), count * 10 * 60);
  expect_sound(around);
  around.now += 10;
  replica second(around, pods, nodes);
  ASSERT_TRUE(second.resume());
  ASSERT_TRUE(second.checkpoint());
  EXPECT_EQ(core_seconds(), count * 10 * 130);
  expect_sound(around);
}

/// So many cards that a checkpoint gives the loop back while it sums up.
struct many_cards : testing::Test {
  world around;
  std::vector<kube::node> nodes;
  std::vector<kube::pod> pods;

  many_cards() {
    for (int i = 1; i <= 300; ++i) {
      nodes.push_back(ready(vgpu_node("gpu-" + std::to_string(i), 8)));
      pods.push_back(share("p" + std::to_string(i), 30, 4, nodes.back().key.name));
      pods.back().scheduled_at = around.now;
    }
  }
};

TEST_F(many_cards, a_pod_that_ends_while_a_checkpoint_sums_up_counts_until_then) {
  replica only(around, pods, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  boost::asio::io_context loop;
  bool done = false;
  boost::asio::co_spawn(loop, only.usage.checkpoint(around.now), [&](auto&&...) { done = true; });
  while (!only.book.begun() || !only.book.book().is_settling()) ASSERT_EQ(loop.run_one(), 1U);
  ASSERT_FALSE(done);
  for (const auto& pod : pods) only.known.pods.put(finished(pod, around.now - 30));
  only.known.nodes.erase(nodes.front());
  loop.run();
  ASSERT_TRUE(done);
  const auto cluster = around.object("2026-11");
  EXPECT_EQ(cluster.until, around.now);
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 300 * 30 * 60) << "the moment was fixed before";
  EXPECT_EQ(cluster.models.begin()->second.capacity.core_seconds, 300 * 800 * 60);
  expect_sound(around);
  around.now += 10;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 300 * 30 * 60);
  EXPECT_EQ(around.object("2026-11").models.begin()->second.capacity.core_seconds, 300 * 800 * 60 + 299 * 800 * 10);
  expect_sound(around);
}

TEST_F(many_cards, a_checkpoint_that_is_cancelled_while_it_sums_up_goes_on_with_the_next) {
  replica only(around, pods, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  boost::asio::io_context loop;
  boost::asio::cancellation_signal stop;
  bool ended = false;
  boost::asio::co_spawn(loop, only.usage.checkpoint(around.now),
                        boost::asio::bind_cancellation_slot(stop.slot(), [&](auto&&...) { ended = true; }));
  while (!only.book.book().is_settling()) ASSERT_EQ(loop.run_one(), 1U);
  stop.emit(boost::asio::cancellation_type::terminal);
  loop.run();
  ASSERT_TRUE(ended);
  EXPECT_FALSE(around.has("2026-11"));
  around.now += 5;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 300 * 30 * 65);
  expect_sound(around);
}

TEST_F(usage_keeper, the_object_of_an_idle_namespace_is_written_again_when_someone_deletes_it) {
  const auto pod = bound("p", 30, around.now);
  replica only(around, {pod}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  only.known.pods.put(finished(pod, around.now));
  ASSERT_TRUE(only.checkpoint());
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  const auto path = std::string(collection) + "/2026-11.lab";
  const auto before = around.object("2026-11.lab");
  EXPECT_EQ(before.until, around.now - 60) << "nothing was held since";
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  const auto version = around.server.objects.at(path)["metadata"]["resourceVersion"];
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_EQ(around.server.objects.at(path)["metadata"]["resourceVersion"], version) << "that changes nothing";
  around.server.erase(path);
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  ASSERT_TRUE(around.has("2026-11.lab"));
  EXPECT_EQ(around.object("2026-11.lab").rows, before.rows);
  EXPECT_EQ(around.object("2026-11.lab").until, before.until);
  expect_sound(around);
  // A new leader takes it up as any other, also where the cluster's object is gone.
  for (const bool deleted : {false, true}) {
    if (deleted) around.server.erase(std::string(collection) + "/2026-11");
    around.now += 10;
    replica next(around, {}, nodes);
    ASSERT_TRUE(next.resume());
    ASSERT_TRUE(next.checkpoint());
    EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 60);
  }
}

TEST_F(usage_keeper, objects_of_many_idle_namespaces_take_turns) {
  nodes = {ready(vgpu_node("gpu-1", 8))};
  std::vector<kube::pod> pods;
  for (int i = 0; i < 24; ++i) {
    pods.push_back(bound("p" + std::to_string(i), 4, around.now));
    pods.back().key.ns = "team-" + std::to_string(i);
  }
  replica only(around, pods, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  for (const auto& pod : pods) only.known.pods.put(finished(pod, around.now));
  ASSERT_TRUE(only.checkpoint());
  for (int i = 0; i < 24; ++i) around.server.erase(std::string(collection) + "/2026-11.team-" + std::to_string(i));
  for (int round = 0; round < 12; ++round) {
    around.now += 60;
    around.server.forget();
    ASSERT_TRUE(only.checkpoint());
    EXPECT_LE(around.server.writes().size(), 4U);
  }
  for (int i = 0; i < 24; ++i) EXPECT_TRUE(around.has("2026-11.team-" + std::to_string(i))) << i;
  expect_sound(around);
}

TEST_F(usage_keeper, fields_that_someone_adds_are_taken_out) {
  const auto pod = bound("p", 30, around.now);
  replica only(around, {pod}, nodes);
  ASSERT_TRUE(only.resume());
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  const json amount{{"coreSeconds", 7}, {"memoryMiBSeconds", 7}};
  const auto models = json::array({{{"model", "forged"}, {"parts", amount}}});
  around.server.objects[std::string(collection) + "/2026-11.lab"]["usage"]["models"] = models;
  around.server.objects[std::string(collection) + "/2026-11"]["usage"]["before"] = {{"through", "2026-11-01T00:00:05Z"},
                                                                                    {"rows", json::array()}};
  around.now += 60;
  ASSERT_TRUE(only.checkpoint());
  EXPECT_TRUE(around.object("2026-11.lab").models.empty());
  EXPECT_EQ(around.object("2026-11").before_through, 0);
  EXPECT_EQ(sum(around.object("2026-11.lab").rows).core_seconds, 30 * 120);
  expect_sound(around);
}

TEST_F(usage_keeper, a_checkpoint_in_the_future_is_seen_on_the_metrics) {
  {
    replica first(around, {}, nodes);
    ASSERT_TRUE(first.resume());
    around.now += 60;
    ASSERT_TRUE(first.checkpoint());
  }
  const auto path = std::string(collection) + "/2026-11";
  around.server.objects[path]["usage"]["through"] = "2026-11-20T00:00:00Z";
  replica second(around, {}, nodes);
  ASSERT_TRUE(second.resume());
  const auto future = "quartermaster_usage_through_timestamp_seconds " + std::to_string(november + 19 * 86400) + "\n";
  EXPECT_THAT(second.metrics.text(), testing::HasSubstr(future));
}

}  // namespace
}  // namespace usage_test
