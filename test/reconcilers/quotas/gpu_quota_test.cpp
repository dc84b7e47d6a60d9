#include "api/gpu_quota.hpp"

#include <gmock/gmock.h>

#include "api/engine_words.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using api::read_gpu_quota;
using testing::HasSubstr;

TEST(gpu_quota, is_read_as_gpu_quota_admission_reads_it) {
  const auto got = api::read_gpu_quota(R"({"lab":{"quota":{"Tesla-T4":2,"A100":0},"pool":["public"]},"none":{}})");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 2u);
  const auto& lab = got->at(0);
  EXPECT_EQ(lab.name_space, "lab");
  EXPECT_EQ(lab.only_models, (std::vector<std::string>{"A100", "Tesla-T4"}));
  EXPECT_EQ(lab.only_pools, (std::vector<std::string>{"public"}));
  ASSERT_EQ(lab.limits.size(), 2u);
  EXPECT_EQ(lab.limits[1].nominal[static_cast<std::size_t>(quota::resource::cores)], 200);
  EXPECT_TRUE(got->at(1).only_models->empty()) << "a namespace without a quota may use nothing";
  EXPECT_TRUE(api::read_gpu_quota("")->empty());
}

TEST(gpu_quota, what_is_wrong_is_said_with_its_place) {
  const std::pair<const char*, const char*> wrong[] = {
      {"{", "not JSON: at byte"},
      {"[]", "no JSON object"},
      {R"({"lab":3})", "lab is no object"},
      {R"({"lab":{"quotas":{}}})", "lab has \"quotas\"; allowed are quota and pool"},
      {R"({"lab":{"quota":[]}})", "lab.quota is no object"},
      {R"({"lab":{"quota":{"T4":1.5}}})", "lab.quota[\"T4\"] is 1.5; allowed are whole numbers of cards from 0"},
      {R"({"lab":{"quota":{"T4":-1}}})", "is -1"},
      {R"({"lab":{"quota":{"T4":18446744073709551615}}})", "allowed are whole numbers"},
      {R"({"lab":{"pool":"public"}})", "lab.pool is no list"},
      {R"({"lab":{"pool":[1]}})", "lab.pool has 1"}};
  for (const auto& [text, reason] : wrong) {
    const auto got = api::read_gpu_quota(text);
    ASSERT_FALSE(got) << text;
    EXPECT_THAT(got.error(), HasSubstr(reason));
  }
}

struct gpu_quota_test : rig {
  gpu_quota_test() {
    for (const auto& [name, model, pool] :
         {std::tuple("a", "T4", "public"), {"b", "A100", "public"}, {"c", "T4", "own"}}) {
      auto node = vgpu_node(name, 4);
      node.labels = packed({{"gaia.tencent.com/gpu-model", model},
                            {"nvidia.com/gpu.product", "Tesla"},
                            {"quartermaster.io/module", "vgpu"},
                            {"tkestack.io/gpu-pool", pool}});
      known.nodes.put(node);
    }
  }
  void write(const std::string& text) {
    kube::config_map config_map;
    config_map.key = {"kube-system", "gpuquota"};
    config_map.resource_version = next_version();
    config_map.data = packed({{"gpu_quota", text}});
    known.old_quotas.put(config_map);
  }
  std::optional<quota::exceeded_limit> over(const kube::pod& pod, const std::string& node_name) {
    const reconcilers::extender::pod_request request(pod, book.keys());
    return book.over(pod, request, *book.book().view(node_name)->inventory);
  }
};

TEST_F(gpu_quota_test, holds_a_namespace_to_its_models_pools_and_cards) {
  EXPECT_FALSE(over(share("p", 100, 0), "b"));
  write(R"({"lab":{"quota":{"T4":1},"pool":["public"]}})");
  EXPECT_FALSE(over(share("p", 100, 0), "a"));
  EXPECT_EQ(over(share("p", 100, 0), "b")->rule, quota::exceeded_limit::kind::model);
  EXPECT_EQ(over(share("p", 100, 0), "c")->rule, quota::exceeded_limit::kind::pool);
  EXPECT_EQ(api::words_of(*over(share("p", 100, 0), "c"), text::language::en),
            words::english("engine.limit.pool", {{"namespace", "lab"}, {"pool", "own"}}));
  known.pods.put(share("there", 50, 8, "a"));
  EXPECT_TRUE(over(share("p", 100, 0), "a"));
  EXPECT_FALSE(over(share("p", 50, 8), "a"));
}

TEST_F(gpu_quota_test, what_cannot_be_read_leaves_what_was_there) {
  write(R"({"lab":{"quota":{"T4":0}}})");
  write(R"({"lab":{"quota":)");
  EXPECT_TRUE(over(share("p", 50, 8), "a"));
  EXPECT_THAT(book.trouble(), HasSubstr("not JSON"));
  known.old_quotas.erase(*known.old_quotas.find({"kube-system", "gpuquota"}));
  EXPECT_FALSE(over(share("p", 50, 8), "a"));
  EXPECT_EQ(book.trouble(), "");
}

TEST_F(gpu_quota_test, a_namespace_that_leaves_the_list_has_no_limit) {
  write(R"({"lab":{"quota":{}}})");
  EXPECT_TRUE(over(share("p", 50, 8), "a"));
  write(R"({"other":{"quota":{}}})");
  EXPECT_FALSE(over(share("p", 50, 8), "a"));
}

}  // namespace
}  // namespace extender_test
