#include "reconcilers/extender/account.hpp"

#include <algorithm>
#include <random>

#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using quota::card_use;
using namespace reconcilers::extender;

struct account_test : rig {
  int room = 0;
  account_test() {
    book.on_room([this] { ++room; });
    known.nodes.put(vgpu_node("a", 1));
    room = 0;
  }
  kube::pod placed(const std::string& name, std::int64_t cores) {
    return annotated(share(name, cores, 8, "a"),
                     {{"quartermaster.io/placement",
                       json{{"v", 1},
                            {"node", "a"},
                            {"source", "planned"},
                            {"containers", {{"main", {{{"card", "a/0"}, {"cores", cores}, {"memoryMiB", 2048}}}}}}}
                           .dump()}});
  }
};

TEST_F(account_test, a_bound_pod_is_booked_until_it_ends) {
  auto pod = placed("p", 20);
  known.pods.put(pod);
  EXPECT_EQ(used("a", 0), (card_use{.memory_mib = 2048, .cores = 20, .sharers = 1}));
  pod.deleting = true;
  pod.resource_version = next_version();
  known.pods.put(pod);
  EXPECT_EQ(used("a", 0).cores, 20) << "a terminating pod still computes";
  pod.phase = kube::pod_phase::succeeded;
  pod.resource_version = next_version();
  known.pods.put(pod);
  EXPECT_EQ(used("a", 0), card_use{});
  EXPECT_EQ(room, 1);
  known.pods.erase(pod);
  EXPECT_EQ(room, 1);
}

TEST_F(account_test, cards_that_an_agent_reports_take_the_place_of_those_that_were_made_up) {
  known.nodes.put(vgpu_node("b", 2));
  auto pod = annotated(share("p", 30, 8, "b"),
                       {{"quartermaster.io/placement",
                         json{{"v", 1},
                              {"node", "b"},
                              {"containers", {{"main", {{{"card", "b/1"}, {"cores", 30}, {"memoryMiB", 2048}}}}}}}
                             .dump()}});
  known.pods.put(pod);
  known.pods.put(share("guessed", 60, 8, "b"));
  auto other = share("open", 20, 8);
  book.assume(other,
              {.node = "b",
               .grants = {{.container = 0, .cores = 20, .burst_cores = 0, .memory_mib = 2048, .card = "b/0"}},
               .counts = {}},
              std::chrono::seconds(1));
  const auto before = std::pair(used("b", 0), used("b", 1));
  known.cards.put(reported("b", {{{"uuid", "GPU-y"}, {"index", 1}, {"memoryMiB", 15000}, {"health", "Xid 79"}},
                                 {{"uuid", "GPU-x"}, {"index", 0}, {"memoryMiB", 15000}}}));
  const auto& cards = book.book().view("b")->inventory->cards;
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].uuid, "GPU-x") << "in the order of their numbers, by which gpu-manager counts";
  EXPECT_EQ(cards[0].memory_mib, 15000);
  EXPECT_EQ(cards[0].max_sharers, 100);
  EXPECT_FALSE(cards[1].usable());
  EXPECT_EQ(std::pair(used("b", 0), used("b", 1)), before) << "what is given out stays given out";
  EXPECT_EQ(book.audit(), 0u);

  fresh after;  // an operator that knows them from the start
  after.known.cards.put(*known.cards.find({{}, "b"}));
  after.known.nodes.put(*known.nodes.find({{}, "b"}));
  after.known.pods.put(pod);
  EXPECT_EQ(after.used("b", 1).cores, 30) << "b/1 is GPU-y";

  known.cards.erase(*known.cards.find({{}, "b"}));
  EXPECT_EQ(std::pair(used("b", 0), used("b", 1)), before);
}

TEST_F(account_test, pods_may_be_known_before_their_node) {
  auto pod = share("p", 30, 8, "late");
  known.pods.put(pod);
  EXPECT_EQ(book.book().size(), 0u);
  known.nodes.put(vgpu_node("late", 2));
  EXPECT_EQ(used("late", 0).cores + used("late", 1).cores, 30);
}

TEST_F(account_test, pods_may_be_on_a_node_before_it_has_a_mode) {
  known.nodes.put(node("c", {}, {}));
  known.pods.put(share("there", 20, 8, "c"));
  known.nodes.put(node("c", {{"changed", "yes"}}, {}));
  known.nodes.put(vgpu_node("c", 1));
  EXPECT_EQ(used("c", 0).cores, 20);
  known.pods.erase(*known.pods.find({"lab", "there"}));
  EXPECT_EQ(used("c", 0).cores, 0);
}

TEST_F(account_test, a_node_that_comes_back_has_what_its_pods_hold) {
  known.pods.put(placed("p", 20));
  const auto gone = *known.nodes.find({{}, "a"});
  known.nodes.erase(gone);
  EXPECT_FALSE(book.book().view("a"));
  auto again = vgpu_node("a", 1);
  again.id = kube::uid::parse("another");
  again.resource_version = 7;
  known.nodes.put(again);
  EXPECT_EQ(used("a", 0).cores, 20);
}

TEST_F(account_test, another_pod_of_the_name_is_another_pod) {
  auto pod = placed("p", 20);
  known.pods.put(pod);
  auto other = share("p", 5, 1);
  other.id = kube::uid::parse("other");
  other.resource_version = next_version();
  known.pods.put(other);
  EXPECT_EQ(used("a", 0), card_use{});
}

TEST_F(account_test, what_is_assumed_stays_until_the_api_has_it_or_the_pod_is_gone) {
  auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const quota::holding holding{.node = "a", .grants = {{.cores = 20, .memory_mib = 2048, .card = "a/0"}}, .counts = {}};
  EXPECT_EQ(book.assume(pod, holding, std::chrono::seconds(1)), quota::booked::done);
  EXPECT_EQ(used("a", 0).cores, 20);
  EXPECT_EQ(book.open().size(), 1u);
  auto bound = placed("p", 20);
  bound.id = pod.id;
  known.pods.put(bound);
  EXPECT_EQ(book.open().size(), 0u);
  EXPECT_EQ(used("a", 0), (card_use{.memory_mib = 2048, .cores = 20, .sharers = 1}));

  auto two = share("q", 20, 8);
  known.pods.put(two);
  EXPECT_EQ(book.assume(two, holding, std::chrono::seconds(1)), quota::booked::done);
  known.pods.erase(two);
  EXPECT_EQ(book.open().size(), 0u);
  EXPECT_EQ(used("a", 0).cores, 20);
}

struct plugin_of_a_node : controller_test::rig {
  stores known;
  reconcilers::extender::account book{
      {known.pods, known.nodes, known.policies, known.rules, known.quotas, known.old_quotas, known.cards},
      metrics,
      "gpu-system"};
  int room = 0;

  plugin_of_a_node() {
    known.nodes.put(vgpu_node("a", 1));
    book.on_room([this] { ++room; });
  }
  kube::pod plugin(const std::string& name, bool ready, const std::string& ns = "gpu-system") {
    auto out = pod(name, {container("plugin", {})}, "a");
    out.key.ns = ns;
    out.labels = packed({{"quartermaster.io/module", "vgpu"}});
    out.phase = kube::pod_phase::running;
    out.ready = ready;
    return out;
  }
  kube::pod leaving(kube::pod pod) {
    pod.deleting = true;
    pod.resource_version = next_version();
    return pod;
  }
  bool takes() {
    const auto wanted = share("p", 20, 8);
    return book.try_on(wanted, pod_request(wanted, book.keys()), "a").held.has_value();
  }
};

TEST_F(plugin_of_a_node, a_node_takes_no_pod_from_the_moment_its_plugin_goes_until_the_next_is_ready) {
  const auto old = plugin("old", true);
  known.pods.put(old);
  EXPECT_TRUE(takes());
  known.pods.put(leaving(old));
  EXPECT_FALSE(takes());
  known.pods.erase(old);
  EXPECT_FALSE(takes()) << "the next has not come";
  known.pods.put(plugin("new", false));
  EXPECT_FALSE(takes());
  const auto before = room;
  auto next = plugin("new", true);
  next.resource_version = next_version();
  known.pods.put(next);
  EXPECT_TRUE(takes());
  EXPECT_EQ(room, before + 1) << "pods that wait are to come again";
}

TEST_F(plugin_of_a_node, where_another_plugin_is_ready_there_is_no_gap) {
  const auto old = plugin("old", true);
  known.pods.put(old);
  known.pods.put(plugin("new", true));
  known.pods.put(leaving(old));
  EXPECT_TRUE(takes());
}

TEST_F(plugin_of_a_node, a_plugin_that_was_never_ready_and_pods_of_others_say_nothing) {
  known.pods.put(plugin("first", false));
  EXPECT_TRUE(takes()) << "the node offers cards, so someone else's plugin may serve it";
  const auto forged = plugin("forged", true, "lab");
  known.pods.put(forged);
  known.pods.put(leaving(forged));
  EXPECT_TRUE(takes());
}

TEST_F(plugin_of_a_node, a_node_that_leaves_its_module_has_no_gap) {
  const auto old = plugin("old", true);
  known.pods.put(old);
  known.pods.erase(old);
  EXPECT_FALSE(takes());
  auto plain = vgpu_node("a", 1);
  plain.labels = packed(json::object());
  plain.resource_version = next_version();
  known.nodes.put(plain);
  EXPECT_FALSE(book.book().view("a")->inventory->changes_mode);
}

/// The policy turns to our own plugin, or back, while the node waits for its pods.
TEST_F(plugin_of_a_node, is_what_the_ledger_goes_by_until_the_node_has_the_one_of_the_policy) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  const auto turns_to = [&](const char* name) {
    policy.resource_version = next_version();
    policy.modules["vgpu"].settings["plugin"] = name;
    known.policies.put(policy);
  };
  const auto made_from = [&](kube::pod pod, const char* mark) {
    pod.annotations = packed({{"quartermaster.io/template", mark}});
    pod.resource_version = next_version();
    return pod;
  };
  const auto is_ours = [this] { return book.book().view("a")->inventory->serves.one_card; };
  turns_to("gpu-manager");
  const auto products = made_from(plugin("of-the-product", true), "1f.2e");
  known.pods.put(products);
  EXPECT_FALSE(is_ours());
  turns_to("quartermaster");
  EXPECT_FALSE(is_ours()) << "it waits for its pods";
  const auto gone = made_from(leaving(products), "1f.2e");
  known.pods.put(gone);
  known.pods.erase(gone);
  EXPECT_TRUE(is_ours()) << "no plugin is there, so the policy says";
  const auto own = made_from(plugin("own", true), "3d.4c.placement");
  known.pods.put(own);
  EXPECT_TRUE(is_ours());
  turns_to("gpu-manager");
  EXPECT_TRUE(is_ours());
  known.pods.put(made_from(leaving(own), "3d.4c.placement"));
  known.pods.put(made_from(plugin("again", true), "1f.2e"));
  EXPECT_FALSE(is_ours()) << "of two the one that is ready counts";
}

TEST_F(plugin_of_a_node, that_does_not_say_what_it_is_is_the_one_of_the_policy) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.resource_version = next_version();
  policy.modules["vgpu"].settings["plugin"] = "quartermaster";
  known.policies.put(policy);
  known.pods.put(plugin("of-an-older-operator", true));
  EXPECT_TRUE(book.book().view("a")->inventory->serves.one_card);
  auto forged = plugin("forged", true, "lab");
  forged.annotations = packed({{"quartermaster.io/template", "1f.2e"}});
  known.pods.put(forged);
  EXPECT_TRUE(book.book().view("a")->inventory->serves.one_card) << "a pod of another namespace says nothing";
}

TEST(plugin_gaps, end_after_a_time_without_any_pod) {
  plugin_gaps gaps("gpu-system");
  auto old = pod("old", {}, "a");
  old.key.ns = "gpu-system";
  old.labels = packed({{"quartermaster.io/module", "vgpu"}});
  old.ready = true;
  using ms = controller::milliseconds;
  EXPECT_EQ(gaps.take(nullptr, &old, ms(0)), "a");
  EXPECT_EQ(gaps.take(&old, nullptr, ms(1000)), "a");
  EXPECT_TRUE(gaps.has("a"));
  EXPECT_TRUE(gaps.expire(ms(1000) + plugin_gaps::most - ms(1)).empty());
  EXPECT_EQ(gaps.expire(ms(1000) + plugin_gaps::most), std::vector<std::string>{"a"});
  EXPECT_FALSE(gaps.has("a"));
}

TEST_F(account_test, a_key_becomes_counted_when_it_is_declared) {
  known.nodes.put(node("f", {}, {{"example.com/fpga", 4}}));
  known.pods.put(pod("p", {container("main", {{"example.com/fpga", 3}})}, "f"));
  EXPECT_EQ(book.book().size(), 0u);
  known.declare({"example.com/fpga"});
  ASSERT_EQ(book.book().view("f")->counts_used.size(), 1u);
  EXPECT_EQ(book.book().view("f")->counts_used[0], 3);
}

TEST_F(account_test, a_policy_changes_how_slots_are_read) {
  known.nodes.put(node("h", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}}));
  EXPECT_EQ(book.book().view("h")->inventory->serves.default_memory_mib, 5000);
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.resource_version = next_version();
  policy.modules["hami"].settings["defaultMem"] = "1000";
  known.policies.put(policy);
  EXPECT_EQ(book.book().view("h")->inventory->serves.default_memory_mib, 1000);
}

TEST_F(account_test, S48_charges_follow_what_a_node_is_labelled) {
  known.quotas.put(limits_of_lab({{{"units", "cards"}, {"max", 2}, {"pool", "public"}}}));
  known.pods.put(placed("p", 20));
  known.pods.put(placed("q", 20));
  const auto used_of = [&](const account& account) { return account.limits().standings("lab").at(0).used; };
  EXPECT_EQ(used_of(book), 0);
  auto labelled = vgpu_node("a", 1);
  labelled.labels = packed({{"quartermaster.io/module", "vgpu"}, {"quartermaster.io/pool", "public"}});
  known.nodes.put(labelled);
  EXPECT_EQ(used_of(book), 2) << "as after a restart";
  const auto pod = share("r", 20, 8);
  EXPECT_TRUE(book.over(pod, pod_request(pod, book.keys()), *book.book().view("a")->inventory));
  EXPECT_EQ(book.audit(), 0u);
  known.nodes.put(vgpu_node("a", 1));
  EXPECT_EQ(used_of(book), 0);
  known.nodes.erase(*known.nodes.find({{}, "a"}));
  known.nodes.put(labelled);
  EXPECT_EQ(used_of(book), 2) << "it came back with the label";
}

TEST_F(account_test, S48_a_model_that_becomes_known_counts_for_who_is_there) {
  known.quotas.put(limits_of_lab({{{"units", "cards"}, {"max", 2}, {"model", "Tesla-T4"}}}));
  known.pods.put(placed("p", 20));
  EXPECT_EQ(book.limits().standings("lab").at(0).used, 0);
  auto labelled = vgpu_node("a", 1);
  labelled.labels = packed({{"quartermaster.io/module", "vgpu"}, {"nvidia.com/gpu.product", "Tesla-T4"}});
  known.nodes.put(labelled);
  EXPECT_EQ(book.limits().standings("lab").at(0).used, 1);
  EXPECT_EQ(book.audit(), 0u);
}

/// Kubernetes 1.30 forgives a resource that the node does not offer in `containers` alone.
TEST_F(account_test, init_containers_with_amounts_of_hami_keep_away_from_old_kubelets) {
  auto hami = node("h", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 10}},
                   {{"hami.io/node-nvidia-register",
                     R"([{"id":"GPU-h0","count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true}])"}});
  const auto asking = [](role kind, bool with_memory) {
    amounts limits{{"nvidia.com/gpualloc", 1}};
    if (with_memory) limits.emplace_back("nvidia.com/gpumem", 2000);
    return pod("p", {container("first", limits, kind), container("main", kind == role::main ? amounts{} : limits)});
  };
  const auto reason = [&](const kube::pod& pod) {
    return book.try_on(pod, pod_request(pod, book.keys()), "h").reason();
  };
  for (const auto* version : {"v1.30.14", "v1.29.0-eks-1", "v1.31.0", "v1.37.2", "", "nightly"}) {
    const bool is_old =
        std::string_view(version).starts_with("v1.30") || std::string_view(version).starts_with("v1.29");
    hami.kubelet_version = version;
    hami.resource_version = next_version();
    known.nodes.put(hami);
    for (const auto kind : {role::init, role::sidecar}) {
      const auto refusal = reason(asking(kind, true));
      EXPECT_EQ(refusal.contains("nvidia.com/gpumem"), is_old) << version << ": " << refusal;
      EXPECT_EQ(reason(asking(kind, false)), "") << version << ": the node offers that key";
    }
    EXPECT_EQ(reason(asking(role::main, true)), "") << version;
  }
}

TEST_F(account_test, the_audit_finds_nothing_where_all_is_well) {
  known.pods.put(placed("p", 20));
  EXPECT_EQ(book.audit(), 0u);
  EXPECT_EQ(metric("quartermaster_ledger_confirmed_entries"), 1);
  EXPECT_EQ(metric("quartermaster_ledger_over_given"), 0);
}

TEST_F(account_test, a_guess_makes_way_for_what_is_recorded) {
  known.nodes.put(vgpu_node("a", 2));
  known.pods.put(share("guess", 20, 8, "a"));
  EXPECT_EQ(used("a", 0).cores, 20);
  known.pods.put(placed("p", 90));
  EXPECT_EQ(used("a", 0).cores, 90);
  EXPECT_EQ(used("a", 1).cores, 20);
  EXPECT_EQ(book.audit(), 0u);
  EXPECT_EQ(metric("quartermaster_ledger_over_given"), 0);
}

TEST_F(account_test, guesses_are_the_same_in_whatever_order_pods_come) {
  known.nodes.put(vgpu_node("a", 4));
  std::vector<kube::pod> pods{placed("m", 60), placed("n", 30)};
  for (const auto* name : {"b", "d", "k", "o", "q"}) pods.push_back(share(name, 20 + 10 * (name[0] % 4), 12, "a"));
  const auto cards = [&] {
    std::map<std::string, std::string> out;
    for (const auto& pod : pods) {
      const auto* entry = book.book().find(pod.id.to_string());
      out[pod.key.name] = entry ? entry->held.grants.at(0).card : "";
    }
    return out;
  };
  std::mt19937 chance(7);
  std::map<std::string, std::string> first;
  for (int round = 0; round < 40; ++round) {
    std::ranges::shuffle(pods, chance);
    const auto passing = share("e", 30, 16, "a");
    known.pods.put(passing);
    for (auto& pod : pods) {
      pod.resource_version = next_version();
      known.pods.put(pod);
    }
    known.pods.erase(passing);
    if (first.empty()) first = cards();
    EXPECT_EQ(cards(), first) << "round " << round;
    for (const auto& pod : pods) known.pods.erase(pod);
    EXPECT_EQ(used("a", 0), card_use{});
  }
}

TEST_F(account_test, the_audit_says_how_many_cards_are_over_given) {
  known.pods.put(placed("p", 60));
  known.pods.put(placed("q", 60));
  EXPECT_EQ(book.audit(), 0u);
  EXPECT_EQ(metric("quartermaster_ledger_over_given"), 1);
}

}  // namespace
}  // namespace extender_test
