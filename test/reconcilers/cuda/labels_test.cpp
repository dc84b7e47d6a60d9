#include "reconcilers/cuda/labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "node.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;
using testing::HasSubstr;

pairs together(pairs a, const pairs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(labels, S30_are_written_where_nobody_else_wrote_them) {
  const auto node = node_with(discovered("12.4", "550.54.14", "8.0"));
  const auto step = labels_for(node);
  ASSERT_TRUE(step.write);
  EXPECT_EQ(*step.write, (version{12, 4}));
  EXPECT_EQ(patch_of(node, step), json::parse(R"([
    {"op":"test","path":"/metadata/uid","value":"0b6c8a52-6a5d-4f4e-9a3a-0a1b2c3d4e5f"},
    {"op":"test","path":"/metadata/labels/cuda-major-version","value":null},
    {"op":"test","path":"/metadata/labels/cuda-minor-version","value":null},
    {"op":"add","path":"/metadata/labels/cuda-major-version","value":"12"},
    {"op":"add","path":"/metadata/labels/cuda-minor-version","value":"4"},
    {"op":"add","path":"/metadata/annotations/state.quartermaster.io~1cuda-labels","value":"12.4"}])"));
}

TEST(labels, S30_of_somebody_else_are_never_touched) {
  const auto foreign = together(discovered("13.0", "", ""), labelled("12.4"));
  const auto step = labels_for(node_with(foreign));
  EXPECT_TRUE(step.idle());
  EXPECT_THAT(step.disagreement, HasSubstr("say CUDA 12.4, and nvidia.com/cuda.runtime-version.* says 13.0"));
  EXPECT_EQ(patch_of(node_with(foreign), step), json::array());
  EXPECT_TRUE(labels_for(node_with(labelled("12.4"))).disagreement.empty()) << "nothing was found to contradict it";
  EXPECT_TRUE(labels_for(node_with(together(discovered("12.4", "", ""), labelled("12.4")))).idle());
  const auto half = labels_for(node_with(together(discovered("12.4", "", ""), {{"cuda-major-version", "12"}})));
  EXPECT_TRUE(half.idle());
  EXPECT_THAT(half.disagreement, HasSubstr("say CUDA 12."));
}

TEST(labels, ours_follow_the_driver_and_go_with_the_facts) {
  const pairs pairs{{"state.quartermaster.io/cuda-labels", "12.4"}};
  const auto upgraded = labels_for(node_with(together(discovered("13.0", "", ""), labelled("12.4")), "gpu-1", pairs));
  EXPECT_EQ(upgraded.write, (version{13, 0}));
  EXPECT_TRUE(labels_for(node_with(together(discovered("12.4", "", ""), labelled("12.4")), "gpu-1", pairs)).idle());
  const auto gone = node_with(labelled("12.4"), "gpu-1", pairs);
  EXPECT_TRUE(labels_for(gone).take_back);
  EXPECT_EQ(patch_of(gone, labels_for(gone)).size(), 6U);
  // Someone corrected ours: theirs now.
  const auto corrected = labels_for(node_with(together(discovered("13.0", "", ""), labelled("12.8")), "gpu-1", pairs));
  EXPECT_TRUE(corrected.idle());
  EXPECT_FALSE(corrected.disagreement.empty());
}

TEST(labels, what_an_earlier_version_wrote_is_ours_and_gets_the_present_key_once) {
  const pairs former{{"quartermaster.io/cuda-labels", "12.4"}};
  const auto same = node_with(together(discovered("12.4", "", ""), labelled("12.4")), "gpu-1", former);
  const auto step = labels_for(same);
  EXPECT_EQ(step.write, (version{12, 4}));
  const auto patch = patch_of(same, step);
  ASSERT_EQ(patch.size(), 7U);
  EXPECT_EQ(patch[5]["path"], "/metadata/annotations/state.quartermaster.io~1cuda-labels");
  EXPECT_EQ(patch[6], json::parse(R"({"op":"remove","path":"/metadata/annotations/quartermaster.io~1cuda-labels"})"));
  const auto gone = node_with(labelled("12.4"), "gpu-1", former);
  EXPECT_EQ(patch_of(gone, labels_for(gone)).back()["path"], "/metadata/annotations/quartermaster.io~1cuda-labels");
  EXPECT_TRUE(labels_for(node_with(together(discovered("12.4", "", ""), labelled("12.8")), "gpu-1", former)).idle())
      << "someone corrected it";
}

TEST(labels, a_node_nothing_is_known_of_is_left_alone) {
  EXPECT_TRUE(labels_for(node_with({})).idle());
  EXPECT_TRUE(labels_for(node_with({{"nvidia.com/cuda.runtime-version.major", "12"}})).idle());
  EXPECT_TRUE(labels_for(node_with({{"nvidia.com/cuda.runtime-version.major", "x"},
                                    {"nvidia.com/cuda.runtime-version.minor", "4"}}))
                  .idle());
}

}  // namespace
}  // namespace reconcilers::cuda
