#include "text/text.hpp"

#include <gtest/gtest.h>

#include "text/nearest.hpp"
#include "text/resource_name.hpp"

namespace text {
namespace {

TEST(shown, leaves_plain_text_of_any_language_alone) {
  EXPECT_EQ(shown("vGPU 核心 é 🙂 %"), "vGPU 核心 é 🙂 %");
  EXPECT_EQ(shown(""), "");
}

TEST(shown, F37_escapes_control_characters_broken_utf8_and_bidi) {
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\\u{0}b");
  EXPECT_EQ(shown("a\x01\x1b[31m"), "a\\u{1}\\u{1b}[31m");
  EXPECT_EQ(shown("a\nb\tc"), "a b c");
  EXPECT_EQ(shown("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(shown("\xe6\x96"), "\\xe6\\x96") << "cut in the middle";
  EXPECT_EQ(shown("a\u202e"
                  "b"),
            "a\\u{202e}b");
}

TEST(shown, cuts_on_a_character_edge_within_the_limit) {
  const std::string chinese = "核核核核核";
  EXPECT_EQ(shown(chinese, 15), chinese);
  EXPECT_EQ(shown(chinese, 14), "核核核…");
  for (std::size_t max = 3; max < 40; ++max) {
    const auto cut = shown("a核\x01🙂\xff" + chinese, max);
    EXPECT_LE(cut.size(), max);
    EXPECT_TRUE(is_plain_text(cut)) << cut;
  }
}

TEST(nearest, finds_the_word_that_was_meant) {
  constexpr std::array<std::string_view, 4> words{"disabled", "required", "optional", "fromLimits"};
  EXPECT_EQ(nearest("requried", words), "required");
  EXPECT_EQ(nearest("FROMLIMITS", words), "fromLimits");
  EXPECT_EQ(nearest("from-limits", words), "fromLimits");
  EXPECT_EQ(nearest("option", words), "optional");
  EXPECT_EQ(nearest("disable", words), "disabled");
  EXPECT_EQ(nearest("banana", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'r'), words), "");
}

TEST(nearest, counts_a_swap_as_one_step_and_ignores_case) {
  EXPECT_EQ(distance("ab", "ba"), 1U);
  EXPECT_EQ(distance("kitten", "sitting"), 3U);
  EXPECT_EQ(distance("ABC", "abc"), 0U);
  EXPECT_EQ(distance("", "abc"), 3U);
}

TEST(extended_resource, accepts_what_the_api_server_accepts) {
  for (const auto* good :
       {"nvidia.com/gpu", "huawei.com/Ascend310P-memory", "example.com/fpga", "a/b", "x.y-z.io/A_b.c"}) {
    EXPECT_EQ(fault_of_extended_resource(good), resource_name_fault::none) << good;
  }
}

TEST(object_name, has_labels_of_any_length) {
  const std::string label(64, 'a'), longest(253, 'a');
  EXPECT_FALSE(is_dns_subdomain(label));
  for (const auto& name : {label, longest, std::string("a"), "a." + label, std::string("1-2.b")})
    EXPECT_TRUE(is_object_name(name)) << name;
  for (const auto& name : {longest + "a", std::string(), std::string("A"), std::string("a_b"), std::string("a."),
                           std::string(".a"), std::string("a..b"), std::string("-a"), std::string("a-")})
    EXPECT_FALSE(is_object_name(name)) << name;
}

TEST(text, trims_the_white_space_that_the_policies_trim) {
  EXPECT_EQ(trimmed(" \t required\u3000\u00a0\n"), "required");
  EXPECT_EQ(trimmed("\u3000"), "");
  EXPECT_EQ(trimmed("\u4e00"), "\u4e00");
}

TEST(extended_resource, says_what_is_wrong) {
  using enum resource_name_fault;
  EXPECT_EQ(fault_of_extended_resource("cpu"), no_domain);
  EXPECT_EQ(fault_of_extended_resource(""), no_domain);
  EXPECT_EQ(fault_of_extended_resource("kubernetes.io/gpu"), native_domain);
  EXPECT_EQ(fault_of_extended_resource("beta.kubernetes.io/gpu"), native_domain);
  EXPECT_EQ(fault_of_extended_resource("requests.nvidia.com/gpu"), requests);
  EXPECT_EQ(fault_of_extended_resource("NVIDIA.com/gpu"), bad_domain);
  EXPECT_EQ(fault_of_extended_resource("/gpu"), bad_domain);
  EXPECT_EQ(fault_of_extended_resource("a..b/gpu"), bad_domain);
  EXPECT_EQ(fault_of_extended_resource("nvidia.com/"), bad_name);
  EXPECT_EQ(fault_of_extended_resource("nvidia.com/gpu/x"), bad_name);
  EXPECT_EQ(fault_of_extended_resource("nvidia.com/-gpu"), bad_name);
  EXPECT_EQ(fault_of_extended_resource("nvidia.com/" + std::string(64, 'g')), bad_name);
  EXPECT_EQ(fault_of_extended_resource(std::string(245, 'a') + "/gpu"), bad_domain);
}

}  // namespace
}  // namespace text
