#include "api/accelerator_quota.hpp"

#include <gmock/gmock.h>

#include "controller/coded_message.hpp"
#include "controller/conditions.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

struct accelerator_quota_test : rig {
  accelerator_quota_test() { known.nodes.put(vgpu_node("a", 4)); }
  void limit(const json& hard) { known.quotas.put(limits_of_lab(hard)); }
  reconcilers::quota_enforcement enforced{true, "SchedulerAsks", {"one asks"}};
  json status(const std::string& ns, const std::string& name, const reconcilers::held_back& refused = {}) {
    const auto rows = book.limits().standings(ns);
    return reconcilers::status_of(
        *known.quotas.find({ns, name}),
        {rows, refused, enforced, reconcilers::groups_of(book.book()), book.limits().cohort_of(ns)},
        "2026-01-01T00:00:00Z");
  }
  reconcilers::recording_transport transport;
  kube::client api{transport};
  reconcilers::recording_recorder events;
  std::map<std::string, reconcilers::held_back, std::less<>> waiting;
  reconcilers::quota_status statuses{{api, known.quotas, &book.limits(), [this] { return waiting; },
                                      [this] { return enforced; }, &book.book(), events}};
  /// One look, and what it wrote as the watch shows it.
  std::size_t turn_of_statuses() {
    transport.sent.clear();
    EXPECT_TRUE(reconcilers::run(statuses.turn()));
    for (const auto& entry : transport.sent) {
      const auto body = json::parse(entry.body);
      auto written = *known.quotas.find({body["metadata"]["namespace"], body["metadata"]["name"]});
      written.status = body["status"].dump();
      written.resource_version = next_version();
      known.quotas.put(written);
    }
    return transport.sent.size();
  }
  std::optional<quota::exceeded_limit> over(const kube::pod& pod) {
    const reconcilers::extender::pod_request request(pod, book.keys());
    return book.over(pod, request, *book.book().view("a")->inventory);
  }
};

TEST_F(accelerator_quota_test, a_namespace_holds_no_more_than_its_limit) {
  known.pods.put(share("there", 50, 8, "a"));
  EXPECT_FALSE(over(share("p", 60, 8)));
  limit({{{"units", "cores"}, {"max", 100}}});
  EXPECT_TRUE(over(share("p", 60, 8)));
  EXPECT_FALSE(over(share("p", 50, 8)));
  EXPECT_TRUE(over(share("p", 100, 0)));
  auto other = share("p", 60, 8);
  other.key.ns = "other";
  EXPECT_FALSE(over(other));
}

TEST_F(accelerator_quota_test, whole_cards_are_charged_all_of_their_memory) {
  limit({{{"units", "memory"}, {"max", 16384}}});
  EXPECT_FALSE(over(share("p", 100, 0)));
  EXPECT_TRUE(over(share("p", 200, 0)));
}

TEST_F(accelerator_quota_test, of_two_objects_the_smaller_limit_counts_and_a_removed_one_does_not) {
  limit({{{"units", "cards"}, {"max", 5}}});
  auto second = quota_of("lab", "r", {{"hard", {{{"units", "cards"}, {"max", 1}}}}});
  known.quotas.put(second);
  EXPECT_TRUE(over(share("p", 200, 0)));
  known.quotas.erase(second);
  EXPECT_FALSE(over(share("p", 200, 0)));
}

TEST_F(accelerator_quota_test, what_is_given_back_is_free_for_others_of_the_namespace) {
  limit({{{"units", "cards"}, {"max", 1}}});
  const auto pod = share("there", 50, 8, "a");
  known.pods.put(pod);
  EXPECT_TRUE(over(share("p", 50, 8)));
  known.pods.erase(pod);
  EXPECT_FALSE(over(share("p", 50, 8)));
}

TEST_F(accelerator_quota_test, the_status_says_used_borrowed_and_lent) {
  known.quotas.put(quota_of("lab", "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  known.quotas.put(quota_of("other", "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 2}}}}}));
  known.pods.put(share("p", 200, 0, "a"));
  const auto lab = status("lab", "q", {{"cards", 3}});
  EXPECT_EQ(lab, (json{{"observedGeneration", 3},
                       {"summary", "cards 2/1 (1 borrowed)"},
                       {"waiting", 3},
                       {"hard", {{{"units", "cards"}, {"max", 1}, {"used", 2}, {"borrowed", 1}, {"lent", 0}}}},
                       {"refusals", {{{"reason", "cards"}, {"pods", 3}}}},
                       {"conditions",
                        {{{"type", "Enforced"},
                          {"status", "True"},
                          {"reason", "SchedulerAsks"},
                          {"message", "one asks"},
                          {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                          {"observedGeneration", 3}}}}}));
  EXPECT_EQ(status("other", "q")["hard"][0]["lent"], 1);
}

TEST_F(accelerator_quota_test, without_a_cohort_nothing_is_borrowed) {
  known.quotas.put(quota_of("lab", "q", {{"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  known.pods.put(share("p", 200, 0, "a"));
  const auto lab = status("lab", "q");
  EXPECT_EQ(lab["hard"][0]["used"], 2);
  EXPECT_EQ(lab["hard"][0]["borrowed"], 0);
  EXPECT_EQ(lab["summary"], "cards 2/1 (1 beyond the limit)");
}

TEST_F(accelerator_quota_test, what_no_one_of_the_cohort_lends_is_beyond_the_limit) {
  const auto limit_of = [&](const std::string& ns, int cards) {
    known.quotas.put(quota_of(ns, "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", cards}}}}}));
  };
  limit_of("lab", 1);
  known.pods.put(share("p", 400, 0, "a"));
  const auto alone = status("lab", "q");
  EXPECT_EQ(alone["hard"][0]["borrowed"], 0) << "there is no one to borrow from";
  EXPECT_EQ(alone["summary"], "cards 4/1 (3 beyond the limit)");
  limit_of("other", 2);
  const auto together = status("lab", "q");
  EXPECT_EQ(together["hard"][0]["borrowed"], 2);
  EXPECT_EQ(together["summary"], "cards 4/1 (2 borrowed, 1 beyond the limit)");
  EXPECT_EQ(status("other", "q")["hard"][0]["lent"], 2) << "as much as is borrowed";
}

TEST_F(accelerator_quota_test, each_object_shows_its_own_limits_as_they_count) {
  known.quotas.put(
      quota_of("lab", "a", {{"hard", {{{"units", "cards"}, {"max", 4}}, {{"units", "cores"}, {"max", 90}}}}}));
  known.quotas.put(quota_of("lab", "b", {{"hard", {{{"units", "cards"}, {"max", 2}}}}}));
  EXPECT_EQ(status("lab", "a")["summary"], "cores 0/90, cards 0/2");
  EXPECT_EQ(status("lab", "b")["summary"], "cards 0/2");
}

TEST_F(accelerator_quota_test, the_summary_tells_limits_of_parts_from_that_of_all) {
  known.quotas.put(quota_of("lab", "q",
                            {{"hard",
                              {{{"units", "cards"}, {"max", 4}},
                               {{"units", "cards"}, {"max", 2}, {"pool", "green"}},
                               {{"units", "cards"}, {"max", 1}, {"priorityFrom", 5}, {"priorityTo", 9}}}}}));
  EXPECT_THAT(status("lab", "q")["summary"].get<std::string>(),
              words::has_in_order({"cards 0/4, cards ", "green 0/2, cards ", "5 ", "9 0/1"}));
}

TEST_F(accelerator_quota_test, a_status_is_written_once) {
  limit({{{"units", "cards"}, {"max", 1}}});
  EXPECT_TRUE(reconcilers::run(statuses.turn()));
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_NE(transport.sent[0].target.find("/apis/quartermaster.io/v1alpha1/namespaces/lab/acceleratorquotas/q/status"),
            std::string::npos);
  EXPECT_EQ(turn_of_statuses(), 1u) << "the watch has not shown it";
  EXPECT_EQ(turn_of_statuses(), 0u);
  known.pods.put(share("p", 50, 8, "a"));
  EXPECT_EQ(turn_of_statuses(), 1u);
  waiting["lab"]["cards"] = 2;
  EXPECT_EQ(turn_of_statuses(), 1u);
  EXPECT_EQ(turn_of_statuses(), 0u);
  auto spoilt = *known.quotas.find({"lab", "q"});
  spoilt.status = "{}";
  spoilt.resource_version = next_version();
  known.quotas.put(spoilt);
  EXPECT_EQ(turn_of_statuses(), 1u) << "someone else wrote";
}

TEST_F(accelerator_quota_test, the_status_of_many_namespaces_in_one_cohort_costs_each_of_them_a_few_looks) {
  constexpr int namespaces = 400;
  for (int i = 0; i < namespaces; ++i)
    known.quotas.put(quota_of("team-" + std::to_string(i), "q",
                              {{"cohort", i < namespaces / 2 ? "red" : "blue"},
                               {"hard", {{{"units", "cards"}, {"max", 1}}, {{"units", "cores"}, {"max", 100}}}}}));
  auto looked = [&, before = book.limits().looked_at()]() mutable {
    const auto now = book.limits().looked_at();
    return now - std::exchange(before, now);
  };
  EXPECT_EQ(turn_of_statuses(), namespaces);
  EXPECT_LE(looked(), namespaces * 4u) << "each once for cards, memory and cores, and once for its own rows";
  EXPECT_EQ(turn_of_statuses(), 0u);
  EXPECT_LE(looked(), namespaces * 4u) << "the objects have another version, and are compared once more";
  EXPECT_EQ(turn_of_statuses(), 0u);
  EXPECT_EQ(looked(), 0u) << "nothing has changed";
  auto pod = share("p", 50, 8, "a");
  pod.key.ns = "team-7";
  known.pods.put(pod);
  EXPECT_EQ(turn_of_statuses(), 1u);
  EXPECT_LE(looked(), namespaces / 2 * 4u) << "its cohort alone";
}

TEST_F(accelerator_quota_test, a_quota_that_nobody_enforces_says_so) {
  limit({{{"units", "cards"}, {"max", 0}}});
  enforced = {false, "NoSchedulerAsks", {"no kube-scheduler asks"}};
  EXPECT_EQ(turn_of_statuses(), 1u);
  const auto is = [&] { return json::parse(known.quotas.find({"lab", "q"})->status)["conditions"][0]; };
  EXPECT_EQ(is()["type"], "Enforced");
  EXPECT_EQ(is()["status"], "False");
  EXPECT_EQ(is()["reason"], "NoSchedulerAsks");
  ASSERT_EQ(events.events.size(), 1u);
  EXPECT_EQ(events.events[0].reason, "QuotaNotEnforced");
  EXPECT_EQ(events.events[0].about.key.name, "q");
  EXPECT_EQ(turn_of_statuses(), 0u);
  EXPECT_EQ(events.events.size(), 1u);
  enforced = {true, "SchedulerAsks", {"one asks"}};
  EXPECT_EQ(turn_of_statuses(), 1u);
  EXPECT_EQ(is()["status"], "True");
  enforced = {false, "ExtenderOff", {"off"}};
  turn_of_statuses();
  EXPECT_EQ(events.events.size(), 2u);
}

TEST_F(accelerator_quota_test, a_new_leader_believes_for_a_while_that_the_scheduler_still_asks) {
  limit({{{"units", "cards"}, {"max", 0}}});
  turn_of_statuses();
  const auto is = [&] { return json::parse(known.quotas.find({"lab", "q"})->status)["conditions"][0]; };
  ASSERT_EQ(is()["status"], "True");
  enforced = {false, "NoSchedulerAsks", {"no kube-scheduler asks"}, true};
  EXPECT_EQ(turn_of_statuses(), 0u);
  EXPECT_EQ(is()["reason"], "SchedulerAsks");
  enforced.undecided = false;
  EXPECT_EQ(turn_of_statuses(), 1u);
  EXPECT_EQ(is()["status"], "False");
  EXPECT_EQ(events.events.size(), 1u);
  enforced = {true, "OwnSchedulerAsks", {"ours asks"}};
  turn_of_statuses();
  enforced = {false, "NoSchedulerAsks", {"no kube-scheduler asks"}, true};
  EXPECT_EQ(turn_of_statuses(), 1u) << "our own scheduler has been switched off";
  EXPECT_EQ(is()["status"], "False");
}

TEST_F(accelerator_quota_test, where_nobody_counts_the_status_has_the_condition_alone) {
  limit({{{"units", "cards"}, {"max", 0}}});
  reconcilers::quota_status alone{{api, known.quotas, nullptr, [] { return reconcilers::held_back_by_namespace(); },
                                   [] { return reconcilers::quota_enforcement{false, "ExtenderOff", {"off"}}; },
                                   nullptr, events}};
  EXPECT_TRUE(reconcilers::run(alone.turn()));
  ASSERT_EQ(transport.sent.size(), 1u);
  const auto written = json::parse(transport.sent[0].body)["status"];
  EXPECT_EQ(written["hard"], json::array());
  EXPECT_EQ(written["conditions"][0]["reason"], "ExtenderOff");
}

TEST_F(accelerator_quota_test, a_limit_on_a_model_that_no_card_has_says_so) {
  known.nodes.put(node("t4", {{"quartermaster.io/module", "pgpu"}, {"nvidia.com/gpu.product", "Tesla-T4"}},
                       {{"nvidia.com/gpu", 1}}));
  limit({{{"units", "cards"}, {"max", 2}, {"model", "T4"}}});
  const auto condition = [&] { return status("lab", "q")["conditions"][1]; };
  EXPECT_EQ(condition()["type"], "ModelsKnown");
  EXPECT_EQ(condition()["status"], "False");
  EXPECT_EQ(condition()["cause"], "status.quota.no_such_card");
  EXPECT_EQ(condition()["parameters"], (json{{"unknown", "T4"}, {"models", "Tesla-T4"}}));
  limit({{{"units", "cards"}, {"max", 2}, {"model", "Tesla-T4"}}});
  EXPECT_EQ(condition()["status"], "True");
}

TEST_F(accelerator_quota_test, a_limit_on_a_pool_that_no_node_is_in_says_so) {
  const auto of_pools = [&] {
    const auto conditions = status("lab", "q")["conditions"];
    const auto* found = controller::find_condition(conditions, "PoolsKnown");
    return found ? *found : json();
  };
  limit({{{"units", "cards"}, {"max", 2}}});
  EXPECT_TRUE(of_pools().is_null());
  limit({{{"units", "cards"}, {"max", 2}, {"pool", "public"}}});
  EXPECT_EQ(of_pools()["cause"], "status.quota.no_pool");
  known.nodes.put(
      node("b", {{"quartermaster.io/module", "pgpu"}, {"quartermaster.io/pool", "private"}}, {{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(of_pools()["status"], "False");
  EXPECT_EQ(of_pools()["cause"], "status.quota.no_such_pool");
  EXPECT_EQ(of_pools()["parameters"], (json{{"unknown", "public"}, {"pools", "private"}}));
  limit({{{"units", "cards"}, {"max", 2}, {"pool", "private"}}});
  EXPECT_EQ(of_pools()["status"], "True");
  for (const std::string name : {"a", "b"}) {
    const auto gone = *known.nodes.find({"", name});
    known.nodes.erase(gone);
  }
  EXPECT_TRUE(of_pools().is_null()) << "no card yet: nothing is known";
}

TEST_F(accelerator_quota_test, a_cohort_that_does_not_count_says_so_and_which_one_does) {
  const json cards{{{"units", "cards"}, {"max", 1}}};
  known.quotas.put(quota_of("lab", "q", {{"cohort", "red"}, {"hard", cards}}));
  known.quotas.put(quota_of("lab", "r", {{"cohort", "blue"}, {"hard", cards}}));
  known.quotas.put(quota_of("lab", "s", {{"hard", cards}}));
  turn_of_statuses();
  const auto reason = [&](const char* name) {
    const auto written = json::parse(known.quotas.find({"lab", name})->status)["conditions"];
    const auto* found = controller::find_condition(written, "CohortCounts");
    return found ? words::line_of(controller::message_of(*found)) : std::string();
  };
  EXPECT_EQ(reason("q"), "");
  EXPECT_EQ(reason("r"), "status.quota.other_cohort{cohort=blue,namespace=lab,counted=red}");
  EXPECT_EQ(reason("s"), "");
  const auto first = *known.quotas.find({"lab", "q"});
  known.quotas.erase(first);
  turn_of_statuses();
  turn_of_statuses();
  EXPECT_EQ(reason("r"), "");
}

TEST_F(accelerator_quota_test, rows_that_differ_in_priority_or_isolation_alone_are_told_apart) {
  limit({{{"units", "cards"}, {"max", 1}, {"priorityFrom", 1000}},
         {{"units", "cards"}, {"max", 2}, {"priorityTo", 999}, {"isolation", "soft"}}});
  const auto rows = status("lab", "q")["hard"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["priorityFrom"], 1000);
  EXPECT_EQ(rows[1]["priorityTo"], 999);
  EXPECT_EQ(rows[1]["isolation"], "soft");
}

TEST_F(accelerator_quota_test, who_is_refused_on_every_node_by_a_limit_is_told_that) {
  known.nodes.put(vgpu_node("b", 1));
  limit({{{"units", "cores"}, {"max", 10}}});
  const auto pod = share("p", 20, 8);
  const reconcilers::extender::pod_request request(pod, book.keys());
  const auto nodes = reconcilers::extender::candidates(book.book(), known.nodes);
  const auto no = reconcilers::extender::limit_of(book, pod, request, nodes);
  ASSERT_TRUE(no);
  EXPECT_EQ(reconcilers::extender::name_of(*no), "cores");
  const auto big = share("q", 20, 1000);
  EXPECT_FALSE(reconcilers::extender::limit_of(book, big, reconcilers::extender::pod_request(big, book.keys()), nodes))
      << "it fits nowhere in the first place";
  for (const auto* name : {"x", "y", "z", "u", "v"}) {
    auto full = share(name, 100, 0, name == std::string("v") ? "b" : "a");
    full.key.ns = "others";
    known.pods.put(full);
  }
  EXPECT_TRUE(
      reconcilers::extender::limit_of(book, pod, request, reconcilers::extender::candidates(book.book(), known.nodes)))
      << "all cards are taken, and would not help";
}

/// One request, memory of a card; behind it on one node nothing, on the next ACK's driver, on the third MPS.
TEST_F(accelerator_quota_test, S80_one_request_is_served_by_several_ways_to_keep_shares_apart) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.modules["gpushare"].enabled = true;
  policy.modules["gpushare"].node_sets.push_back({.name = "mps", .settings = {{"mps", "true"}}});
  known.policies.put(policy);
  const auto gpushare = [&](const std::string& name, const texts& labels) {
    known.nodes.put(node(name, labels, {{"aliyun.com/gpu-mem", 16}, {"aliyun.com/gpu-count", 1}}));
    return name;
  };
  const std::pair<std::string, quota::isolation> ways[] = {
      {gpushare("bare", {{"quartermaster.io/module", "gpushare"}}), quota::isolation::none},
      {gpushare("ack", {{"ack.node.gpu.schedule", "cgpu"}}), quota::isolation::soft},
      {gpushare("daemon", {{"quartermaster.io/module", "gpushare"}, {"quartermaster.io/plugin-set", "mps"}}),
       quota::isolation::mps}};
  known.quotas.put(quota_of("strict", "q", {{"isolation", "soft"}}));
  for (const auto& [name, isolated] : ways) {
    auto workload = pod("p-" + name, {container("main", {{"aliyun.com/gpu-mem", 4}})});
    workload.key.ns = "strict";
    const reconcilers::extender::pod_request request(workload, book.keys());
    const auto view = *book.book().view(name);
    quota::demand needs;
    ASSERT_FALSE(quota::read(request.containers(), view.inventory->serves, needs)) << "the same words everywhere";
    quota::placement placement;
    ASSERT_TRUE(quota::place(needs, view, quota::policy::binpack, placement).fits());
    const auto held = quota::holding_of(needs, placement, *view.inventory);
    EXPECT_EQ(reconcilers::extender::annotations_of(held, request, workload, *view.inventory,
                                                    1)["quartermaster.io/isolation"],
              quota::text_of(isolated));
    EXPECT_EQ(book.over(workload, request, *view.inventory).has_value(), isolated == quota::isolation::none) << name;
  }
}

}  // namespace
}  // namespace extender_test
