#include "reconcilers/accelerator_quota.hpp"

#include <gmock/gmock.h>

#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/quota_status.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using reconcilers::accelerator_quota;

accelerator_quota quota_of(const std::string& ns, const std::string& name, const json& spec) {
  const json document{{"apiVersion", "quartermaster.io/v1alpha1"},
                      {"kind", "AcceleratorQuota"},
                      {"metadata",
                       {{"name", name},
                        {"namespace", ns},
                        {"uid", "00000000-0000-4000-8000-000000000001"},
                        {"resourceVersion", std::to_string(next_version())},
                        {"generation", 3}}},
                      {"spec", spec}};
  return *accelerator_quota::decode(document.dump());
}

struct accelerator_quota_test : rig {
  accelerator_quota_test() { known.nodes.put(vgpu_node("a", 4)); }
  void limit(const json& hard) { known.quotas.put(quota_of("lab", "q", {{"hard", hard}})); }
  std::optional<quota::exceeded> over(const kube::pod& of) {
    const reconcilers::extender::asked by(of, book.keys());
    return book.over(of, by, *book.book().view("a")->what);
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
  const auto one = share("there", 50, 8, "a");
  known.pods.put(one);
  EXPECT_TRUE(over(share("p", 50, 8)));
  known.pods.erase(one);
  EXPECT_FALSE(over(share("p", 50, 8)));
}

TEST_F(accelerator_quota_test, the_status_says_used_borrowed_and_lent) {
  known.quotas.put(quota_of("lab", "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  known.quotas.put(quota_of("other", "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 2}}}}}));
  known.pods.put(share("p", 200, 0, "a"));
  const auto lab = status_of(*known.quotas.find({"lab", "q"}), book.limits(), {{"cards", 3}});
  EXPECT_EQ(lab, (json{{"observedGeneration", 3},
                       {"summary", "cards 2/1"},
                       {"waiting", 3},
                       {"hard", {{{"units", "cards"}, {"max", 1}, {"used", 2}, {"borrowed", 1}, {"lent", 0}}}},
                       {"refusals", {{{"reason", "cards"}, {"pods", 3}}}}}));
  const auto other = status_of(*known.quotas.find({"other", "q"}), book.limits(), {});
  EXPECT_EQ(other["hard"][0]["lent"], 1);
}

TEST_F(accelerator_quota_test, each_object_shows_its_own_limits_as_they_count) {
  known.quotas.put(
      quota_of("lab", "a", {{"hard", {{{"units", "cards"}, {"max", 4}}, {{"units", "cores"}, {"max", 90}}}}}));
  known.quotas.put(quota_of("lab", "b", {{"hard", {{{"units", "cards"}, {"max", 2}}}}}));
  EXPECT_EQ(status_of(*known.quotas.find({"lab", "a"}), book.limits(), {})["summary"], "cores 0/90, cards 0/2");
  EXPECT_EQ(status_of(*known.quotas.find({"lab", "b"}), book.limits(), {})["summary"], "cards 0/2");
}

TEST_F(accelerator_quota_test, a_status_is_written_once) {
  limit({{{"units", "cards"}, {"max", 1}}});
  reconcilers::recording_transport transport;
  kube::client api{transport};
  reconcilers::quota_status subject(
      {api, known.quotas, book.limits(), [](std::string_view) { return reconcilers::held_back(); }});
  EXPECT_TRUE(reconcilers::run(subject.turn()));
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_NE(transport.sent[0].target.find("/apis/quartermaster.io/v1alpha1/namespaces/lab/acceleratorquotas/q/status"),
            std::string::npos);
  auto written = *known.quotas.find({"lab", "q"});
  written.status = json::parse(transport.sent[0].body)["status"].dump();
  written.resource_version = next_version();
  known.quotas.put(written);
  EXPECT_TRUE(reconcilers::run(subject.turn()));
  EXPECT_EQ(transport.sent.size(), 1u);
}

TEST_F(accelerator_quota_test, who_is_refused_on_every_node_by_a_limit_is_told_that) {
  known.nodes.put(vgpu_node("b", 1));
  limit({{{"units", "cores"}, {"max", 10}}});
  const auto one = share("p", 20, 8);
  const reconcilers::extender::asked by(one, book.keys());
  const auto nodes = reconcilers::extender::candidates(book.book(), known.nodes);
  const auto no = reconcilers::extender::limit_of(book, one, by, nodes);
  ASSERT_TRUE(no);
  EXPECT_EQ(reconcilers::extender::name_of(*no), "cores");
  const auto big = share("q", 20, 1000);
  EXPECT_FALSE(reconcilers::extender::limit_of(book, big, reconcilers::extender::asked(big, book.keys()), nodes))
      << "it fits nowhere in the first place";
}

TEST_F(accelerator_quota_test, a_new_pod_beyond_its_limit_is_warned_of) {
  const auto advice = [&](const json& limits) {
    const json pod{{"metadata", {{"generateName", "p-"}}},
                   {"spec", {{"containers", {{{"name", "main"}, {"resources", {{"limits", limits}}}}}}}}};
    return reconcilers::extender::advice_of(book, known.nodes, "lab", pod);
  };
  const json card{{"tencent.com/vcuda-core", "100"}};
  EXPECT_THAT(advice(card), testing::IsEmpty());
  limit({{{"units", "cards"}, {"max", 0}}});
  EXPECT_THAT(advice(card), testing::ElementsAre(testing::HasSubstr("the pod will wait for its namespace's quota")));
  EXPECT_THAT(advice({{"cpu", "1"}}), testing::IsEmpty());
  EXPECT_THAT(reconcilers::extender::advice_of(book, known.nodes, "lab", json("odd")), testing::IsEmpty());
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
      {gpushare("daemon", {{"quartermaster.io/module", "gpushare"}, {"quartermaster.io/node-set", "mps"}}),
       quota::isolation::mps}};
  known.quotas.put(quota_of("strict", "q", {{"isolation", "soft"}}));
  for (const auto& [name, isolated] : ways) {
    auto one = pod("p-" + name, {container("main", {{"aliyun.com/gpu-mem", 4}})});
    one.key.ns = "strict";
    const reconcilers::extender::asked by(one, book.keys());
    const auto view = *book.book().view(name);
    quota::demand needs;
    ASSERT_FALSE(quota::read(by.containers(), view.what->serves, needs)) << "the same words everywhere";
    quota::placement where;
    ASSERT_TRUE(quota::place(needs, view, quota::policy::binpack, where).fits());
    const auto held = quota::holding_of(needs, where, *view.what);
    EXPECT_EQ(reconcilers::extender::annotations_of(held, by, one, *view.what, 1)["quartermaster.io/isolation"],
              quota::text_of(isolated));
    EXPECT_EQ(book.over(one, by, *view.what).has_value(), isolated == quota::isolation::none) << name;
  }
}

}  // namespace
}  // namespace extender_test
