#include "kube/quantity.hpp"

#include <gtest/gtest.h>

#include "kube/quantity_text.hpp"
#include "test/kube/golden.hpp"

namespace {

TEST(quantity, has_the_value_that_go_gives_it) {
  std::istringstream rows(golden::read("quantities.tsv"));
  int count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    const auto tab = row.rfind('\t');
    const auto text = row.substr(0, tab), expected = row.substr(tab + 1);
    const auto value = kube::parse_quantity(text);
    EXPECT_EQ(value ? std::to_string(*value) : "error", expected) << "\"" << text << "\"";
  }
  EXPECT_GT(count, 70);
}

TEST(quantity, is_capped_at_the_largest_integer) {
  constexpr auto most = 9223372036854775807;
  EXPECT_EQ(kube::parse_quantity("99999999999999999999"), most);
  EXPECT_EQ(kube::parse_quantity("-99999999999999999999"), -most);
  EXPECT_EQ(kube::parse_quantity("1e19"), most);
  EXPECT_EQ(kube::parse_quantity("1e999999999"), most);
  EXPECT_EQ(kube::parse_quantity("99999999999999999999999999999999999999999999Ei"), most);
  EXPECT_EQ(kube::parse_quantity("1e-999999999"), 1);
  EXPECT_EQ(kube::parse_quantity("0.000000000000000000000000000000000000000000000001"), 1);
}

TEST(quantity, of_a_name_that_is_not_listed_is_zero) {
  const kube::quantities amounts{{"nvidia.com/gpu", 8}, {"tencent.com/vcuda-core", 800}};
  EXPECT_EQ(kube::amount(amounts, "nvidia.com/gpu"), 8);
  EXPECT_EQ(kube::amount(amounts, "nvidia.com/gpumem"), 0);
  EXPECT_EQ(kube::amount({}, "nvidia.com/gpu"), 0);
}

TEST(quantity, extended_resources_have_a_domain_that_is_not_kubernetes_own) {
  EXPECT_TRUE(kube::is_extended_resource("nvidia.com/gpu"));
  for (const auto* name :
       {"cpu", "memory", "hugepages-2Mi", "kubernetes.io/batch-cpu", "requests.nvidia.com/gpu", ""}) {
    EXPECT_FALSE(kube::is_extended_resource(name)) << name;
  }
}

/// resource.Quantity.UnmarshalJSON of apimachinery v0.36.3: a tab and U+2028 stand in JSON as escapes.
TEST(quantity, blanks_around_it_do_not_count_in_json) {
  for (const auto* text : {"1", " 1", "1 ", "  1  ", "\u00a01", "1\u3000", "\u0085 1\u2003"})
    EXPECT_EQ(kube::unpadded_quantity(text), "1") << text;
  EXPECT_EQ(kube::unpadded_quantity("1 0"), "1 0");
  for (const auto* text : {"\t1", "1\n", "\u20281", "\u200b1", "\ufeff1"})
    EXPECT_EQ(kube::unpadded_quantity(text), text);
  EXPECT_EQ(kube::unpadded_quantity(" "), "");
}

}  // namespace
