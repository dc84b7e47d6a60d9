// Selectors and what they select, as `kubectl get nodes -l` of 1.37 answers (test/faults holds it to that).
#include "kube/label_selector.hpp"

#include <gtest/gtest.h>

namespace {

bool selects(std::string_view text, const std::vector<kube::packed_map::entry>& labels) {
  const auto selector = kube::label_selector::parse(text);
  EXPECT_TRUE(selector) << selector.error();
  auto sorted = labels;
  return selector && selector->selects(kube::packed_map::of(std::span(sorted)));
}

TEST(label_selector, selects_as_kubectl_does) {
  const std::vector<kube::packed_map::entry> labels{{"zone", "a"}, {"example.com/empty", ""}};
  for (const auto* text :
       {"", " ", "zone=a", "zone==a", "zone = a , example.com/empty=", "zone!=b", "none!=a", "zone", "!none",
        "zone in (b, a)", "zone notin (b)", "none notin (a)", "zone=a,!none,zone in (a)", "! none"})
    EXPECT_TRUE(selects(text, labels)) << text;
  for (const auto* text : {"zone=b", "zone!=a", "!zone", "none", "zone in (b)", "zone notin (a,b)", "none=a",
                           "none=", "zone=a,none", "zone in (,)"})
    EXPECT_FALSE(selects(text, labels)) << text;
}

TEST(label_selector, what_is_none_is_refused_with_the_part) {
  for (const auto* text : {"=a", "zone=a=b", "zone in a", "zone in (a", "zone is (a)", ",", "zone=a,", "!", "a/b/c=d",
                           "-a=b", "a=b c", "zone>1", "zone=(a)"}) {
    const auto selector = kube::label_selector::parse(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_NE(selector.error().find("label selector: KEY"), std::string::npos) << selector.error();
  }
}

}  // namespace
