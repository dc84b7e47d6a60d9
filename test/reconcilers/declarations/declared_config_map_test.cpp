#include "reconcilers/declarations/declared_config_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "test/kube/config_map_bytes.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/words.hpp"

namespace reconcilers::declarations {
namespace {

using testing::HasSubstr;

kube_test::config_map_source source_of(const config_map_text& text) {
  return {text.key.name, text.key.ns, text.labels, {}, text.data};
}
declared_config_map read(const kube_test::config_map_source& source) {
  const auto out = declared_config_map::decode(kube_test::bytes_of(source));
  EXPECT_TRUE(out) << out.error().message;
  return out.value_or(declared_config_map());
}

TEST(declared_config_map, is_read_as_it_is_up_to_64_kib) {
  auto source = source_of(sound());
  const auto empty = kube_test::bytes_of(source).size();
  source.data["more"] = std::string(declared_config_map::most_bytes - empty - 20, 'x');
  const auto small = read(source);
  EXPECT_EQ(small.left_out, 0u);
  EXPECT_EQ(small.data.value_or("key", ""), "example.com/fpga");
  EXPECT_EQ(static_cast<const kube::config_map&>(small), *kube::config_map::decode(kube_test::bytes_of(source)));
  source.data["more"] += std::string(100, 'x');
  const auto large = read(source);
  EXPECT_GT(large.left_out, declared_config_map::most_bytes);
  EXPECT_TRUE(large.data.empty());
  EXPECT_EQ(large.key, small.key);
  EXPECT_EQ(large.resource_version, small.resource_version);
}

TEST(declared_config_map, of_a_large_one_little_is_kept_wherever_its_bytes_are) {
  auto source = source_of(sound());
  for (int i = 0; i < 2'000; ++i) source.labels["features.cpaas.io/x" + std::to_string(i)] = std::string(63, 'x');
  source.annotations["quartermaster.io/more"] = std::string(200'000, 'x');
  source.annotations["quartermaster.io/verdict"] = "{}";
  const auto large = read(source);
  EXPECT_EQ(large.labels.size(), 2u) << "type and enabled";
  EXPECT_EQ(large.annotations.size(), 1u);
  EXPECT_EQ(large.annotations.value_or(verdict_annotation, ""), "{}");
  source.annotations["quartermaster.io/verdict"] = std::string(max_verdict_bytes + 1, 'x');
  EXPECT_TRUE(read(source).annotations.empty()) << "our own verdict has fewer bytes";
}

TEST(declared_config_map, a_large_one_is_refused_with_its_size) {
  auto source = source_of(sound());
  source.data["descriptionEn"] = std::string(100'000, 'x');
  const auto large = read(source);
  const auto findings = parse(view_of(large)).findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(to_string(findings[0].kind), "too_large");
  EXPECT_THAT(message_of(findings[0], text::language::en),
              HasSubstr(words::english("declaration.too_large.wrong",
                                       {{"field", "data"}, {"count", std::to_string(large.left_out)}})));
  EXPECT_THAT(message_of(findings[0], text::language::zh), HasSubstr(std::to_string(large.left_out)));
  EXPECT_FALSE(parse(view_of(large)).value.sound);

  source = source_of(device());
  source.data["more"] = std::string(100'000, 'x');
  const auto device_findings = parse_device(view_of(read(source))).findings;
  ASSERT_EQ(device_findings.size(), 1u);
  EXPECT_EQ(device_findings[0].kind, error_code::too_large);
}

TEST(declared_config_map, growing_too_large_changes_the_verdict) {
  registry all;
  auto source = source_of(sound());
  const auto small = read(source);
  all.put(view_of(small));
  EXPECT_EQ(verdict_of(all.judge(small.key)), verdict::accepted);
  source.data["descriptionEn"] = std::string(100'000, 'x');
  const auto large = read(source);
  EXPECT_FALSE(all.holds(view_of(large)));
  all.put(view_of(large));
  EXPECT_EQ(verdict_of(all.judge(large.key)), verdict::refused);
}

}  // namespace
}  // namespace reconcilers::declarations
