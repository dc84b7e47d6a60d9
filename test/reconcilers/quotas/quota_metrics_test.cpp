#include "reconcilers/quotas/quota_metrics.hpp"

#include <gmock/gmock.h>

#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using testing::HasSubstr, testing::Not;

struct quota_metrics : rig {
  quota_metrics() { known.nodes.put(vgpu_node("a", 4)); }
  static std::string page(const quota::allowances* limits, const controller::store<api::accelerator_quota>& quotas) {
    controller::metric_text text;
    reconcilers::write_quota_metrics(limits, quotas, text);
    return text.take();
  }
  std::string page() { return page(&book.limits(), known.quotas); }
};

TEST_F(quota_metrics, say_what_the_status_of_the_quota_says) {
  known.quotas.put(quota_of("lab", "q", {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  known.quotas.put(
      quota_of("other", "q",
               {{"cohort", "c"}, {"hard", {{{"units", "cards"}, {"max", 2}}, {{"units", "memory"}, {"max", 1024}}}}}));
  known.pods.put(share("p", 200, 0, "a"));
  const auto text = page();
  for (const auto* row :
       {R"({namespace="lab",model="",scope="",state="max"} 1)", R"({namespace="lab",model="",scope="",state="used"} 2)",
        R"({namespace="lab",model="",scope="",state="borrowed"} 1)",
        R"({namespace="lab",model="",scope="",state="lent"} 0)",
        R"({namespace="other",model="",scope="",state="max"} 2)",
        R"({namespace="other",model="",scope="",state="lent"} 1)"})
    EXPECT_THAT(text, HasSubstr("\nquartermaster_quota_cards" + std::string(row) + "\n"));
  EXPECT_THAT(text,
              HasSubstr("quartermaster_quota_memory_bytes{namespace=\"other\",model=\"\",scope=\"\",state=\"max\"} "
                        "1073741824\n"));
  EXPECT_THAT(text, Not(HasSubstr("quartermaster_quota_cores{"))) << "no one has limited cores";
}

TEST_F(quota_metrics, without_a_cohort_nothing_is_borrowed) {
  known.quotas.put(quota_of("lab", "q", {{"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  known.pods.put(share("p", 200, 0, "a"));
  const auto text = page();
  EXPECT_THAT(text, HasSubstr(R"({namespace="lab",model="",scope="",state="used"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"({namespace="lab",model="",scope="",state="borrowed"} 0)"));
}

TEST_F(quota_metrics, rows_of_one_namespace_are_told_apart) {
  known.quotas.put(quota_of("lab", "q",
                            {{"hard",
                              {{{"units", "cores"}, {"max", 300}},
                               {{"units", "cores"}, {"max", 200}, {"model", "T4"}},
                               {{"units", "cores"}, {"max", 100}, {"pool", "green"}, {"priorityFrom", 5}}}}}));
  const auto text = page();
  EXPECT_THAT(text, HasSubstr(R"({namespace="lab",model="",scope="",state="max"} 300)"));
  EXPECT_THAT(text, HasSubstr(R"({namespace="lab",model="T4",scope="",state="max"} 200)"));
  EXPECT_THAT(text, HasSubstr(R"({namespace="lab",model="",scope="in pool green from priority 5",state="max"} 100)"));
}

TEST_F(quota_metrics, a_replica_that_does_not_lead_has_the_families_alone) {
  known.quotas.put(quota_of("lab", "q", {{"hard", {{{"units", "cards"}, {"max", 1}}}}}));
  const auto text = page(nullptr, known.quotas);
  EXPECT_THAT(text, HasSubstr("# TYPE quartermaster_quota_cards gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("{")));
}

TEST_F(quota_metrics, limits_beyond_the_bound_share_their_series) {
  quota::tenant wide{.name_space = "lab", .cohort = {}, .limits = {}};
  for (std::size_t i = 0; i < reconcilers::max_limit_groups + 3; ++i)
    wide.limits.push_back({.model = "model-" + std::to_string(i), .nominal = {7}});
  quota::allowances many;
  many.put(wide);
  known.quotas.put(quota_of("lab", "q", json::object()));
  const auto text = page(&many, known.quotas);
  EXPECT_THAT(text, HasSubstr(R"({namespace="other",model="other",scope="other",state="max"} 21)"));
  EXPECT_LE(std::ranges::count(text, '\n'), static_cast<std::ptrdiff_t>(4 * (reconcilers::max_limit_groups + 1) + 6));
}

}  // namespace
}  // namespace extender_test
