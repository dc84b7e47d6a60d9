#include "reconcilers/cuda/requirement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace reconcilers::cuda {
namespace {

using testing::HasSubstr;

std::string shape(const std::expected<requirement, text::phrase>& requirement) {
  if (!requirement) return "error: " + words::line_of(requirement.error());
  std::string out;
  for (const auto& all : requirement->any_of) {
    out += out.empty() ? "" : " | ";
    for (std::size_t i = 0; i < all.size(); ++i) out += (i == 0 ? "" : " & ") + to_string(all[i]);
  }
  return out;
}

TEST(requirement, S78_reads_the_grammar_of_the_container_toolkit) {
  EXPECT_EQ(shape(parse_requirement("cuda>=11.7")), "cuda>=11.7");
  EXPECT_EQ(shape(parse_requirement("cuda<13.6 cuda>=11.6,arch=5.3")), "cuda<13.6 | cuda>=11.6 & arch=5.3");
  EXPECT_EQ(shape(parse_requirement("cuda!=11.6")), "cuda!=11.6");
  EXPECT_EQ(shape(parse_requirement("cuda<=11.6")), "cuda<=11.6");
  EXPECT_EQ(shape(parse_requirement("cuda>11.6")), "cuda>11.6");
  EXPECT_EQ(shape(parse_requirement("")), "");
  EXPECT_EQ(shape(parse_requirement("   ")), "");
  EXPECT_EQ(shape(parse_requirement("cuda>=11.6 foo=bar")), "cuda>=11.6") << "unknown properties are skipped";
  EXPECT_EQ(shape(parse_requirement("cuda>=11.6,foo=bar")), "cuda>=11.6");
  EXPECT_EQ(shape(parse_requirement("driver>=470,driver<471")), "driver>=470.0 & driver<471.0");
  EXPECT_EQ(shape(parse_requirement("notvalid")), "error: cuda.need.no_condition_of_image{value=notvalid}");
  EXPECT_THAT(shape(parse_requirement("cuda=foo")), HasSubstr("error: "));
  EXPECT_THAT(shape(parse_requirement("cuda>=")), HasSubstr("error: "));
  EXPECT_THAT(shape(parse_requirement("cuda!11")), HasSubstr("error: "));
}

TEST(requirement, reads_what_a_real_image_says) {
  const auto image = parse_requirement(
      "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 "
      "brand=geforce,driver>=535,driver<536");
  ASSERT_TRUE(image);
  ASSERT_EQ(image->any_of.size(), 4U);
  const auto meets_with = [&](std::string_view cuda, std::string_view driver) {
    return meets(facts_of(node_with(discovered(cuda, driver, ""))), *image);
  };
  EXPECT_EQ(meets_with("12.4", "550.54.14"), fit::yes);
  EXPECT_EQ(meets_with("13.0", "580.65.06"), fit::yes);
  EXPECT_EQ(meets_with("12.2", "535.54.03"), fit::yes) << "its compatibility package is for this branch";
  EXPECT_EQ(meets_with("11.4", "470.82.01"), fit::yes);
  EXPECT_EQ(meets_with("12.0", "525.60.13"), fit::no);
  EXPECT_EQ(meets_with("12.2", ""), fit::unknown);
  EXPECT_EQ(runtime_of({&*image, 1}), (version{12, 4}));
}

TEST(requirement, reads_annotations_as_people_write_them) {
  const auto cuda = [](std::string_view text) { return shape(parse_annotation(text, property::cuda)); };
  EXPECT_EQ(cuda(">=12.4"), "cuda>=12.4");
  EXPECT_EQ(cuda(" >= 12.4 "), "cuda>=12.4");
  EXPECT_EQ(cuda(">=12.4,<13.0"), "cuda>=12.4 & cuda<13.0");
  EXPECT_EQ(cuda(">= 12.4 , < 13"), "cuda>=12.4 & cuda<13.0");
  EXPECT_EQ(cuda(">=12.4  =11.8"), "cuda>=12.4 | cuda=11.8");
  EXPECT_EQ(shape(parse_annotation(">=8.0", property::arch)), "arch>=8.0");
  for (const auto* wrong : {"12.4", "banana", "cuda>=12.4", ">=", ">=x", ">=12.4,13", "==12.4"})
    EXPECT_THAT(cuda(wrong), HasSubstr("cuda.need.no_condition{value=")) << wrong;
  EXPECT_EQ(cuda(""), "error: cuda.need.empty");
  EXPECT_EQ(cuda(" "), "error: cuda.need.empty");
  EXPECT_EQ(cuda(std::string(5000, '<')), "error: cuda.need.too_long{most=4096}");
  std::string many;
  for (int i = 0; i < 300; ++i) many += "<9 ";
  EXPECT_EQ(cuda(many), "error: cuda.need.conditions{most=256}");
}

TEST(requirement, S78_cuda_version_is_what_the_toolkit_makes_of_it) {
  EXPECT_EQ(shape(parse_cuda_version("11.7.1")), "cuda>=11.7");
  EXPECT_EQ(shape(parse_cuda_version("12.4")), "cuda>=12.4");
  EXPECT_EQ(shape(parse_cuda_version("12.4.1", false)), "cuda>=12.0") << "minor version compatibility";
  EXPECT_EQ(shape(parse_cuda_version("10.2", false)), "cuda>=10.2") << "there was none before 11";
  EXPECT_EQ(shape(parse_cuda_version("latest")), "error: cuda.need.no_version{value=latest}");
}

const auto comma = words::english("cuda.facts.comma");
std::string capability(const std::string& number) {
  return words::english("cuda.facts.capability", {{"capability", number}});
}

TEST(requirement, facts_come_from_labels_and_the_manuals_count_first) {
  auto labels = discovered("13.0", "580.65.06", "9.0", "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(facts_of(node_with(labels)).cuda, (version{13, 0}));
  labels.emplace_back(keys::cuda_major, "12");
  labels.emplace_back(keys::cuda_minor, "4");
  const auto both = facts_of(node_with(labels));
  EXPECT_EQ(both.cuda, (version{12, 4}));
  EXPECT_EQ(both.found, (version{13, 0}));
  EXPECT_EQ(describe(both), "CUDA 12.4" + comma + words::english("cuda.facts.driver", {{"driver", "580.65.06"}}) +
                                comma + capability("9.0") + comma + "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(facts_of(node_with({{"cuda-major-version", "12"}})).cuda, std::nullopt) << "half a pair is none";
  EXPECT_EQ(describe(facts_of(node_with({}))),
            "CUDA " + words::english("cuda.unknown") + comma + capability(words::english("cuda.unknown")));
  EXPECT_TRUE(facts_of(node_with({{"nvidia.com/mig.strategy", "single"}})).mig);
  EXPECT_FALSE(facts_of(node_with({{"nvidia.com/mig.strategy", "none"}})).mig);
  EXPECT_FALSE(facts_of(node_with({{"nvidia.com/mig.strategy", "single"}, {"nvidia.com/mig.capable", "false"}})).mig);
}

TEST(requirement, S32_nodes_are_listed_with_what_they_have_and_bounded) {
  std::vector<node_facts> nodes;
  for (int i = 0; i < 6; ++i)
    nodes.push_back(facts_of(node_with(discovered("12.2", "", "7.5", "Tesla-T4"), "t4-" + std::to_string(i))));
  for (int i = 0; i < 2000; ++i)
    nodes.push_back(facts_of(node_with(discovered("11." + std::to_string(i), "", "7.0"), "old-" + std::to_string(i))));
  std::vector<const node_facts*> all;
  for (const auto& node : nodes) all.push_back(&node);
  const auto text = describe(all);
  const std::vector<std::string> names{"t4-0", "t4-1", "t4-2", "t4-3", "t4-4", "t4-5"};
  EXPECT_THAT(text, HasSubstr(words::english("cuda.facts.group",
                                             {{"facts", "CUDA 12.2" + comma + capability("7.5") + comma + "Tesla-T4"},
                                              {"names", text::some_of(names, 3, text::language::en)}})));
  EXPECT_THAT(text, HasSubstr(words::english("cuda.facts.other_kinds", {{"number", "1993"}})));
  EXPECT_LT(text.size(), 2000U);
}

}  // namespace
}  // namespace reconcilers::cuda
