#include "cli/cluster/declared_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/inspect/inspect.hpp"

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;

kube::config_map fpga() {
  kube::config_map out;
  out.key = {"kube-public", "cf-crl-lab-fpga"};
  out.created = 100;
  out.labels = kube::packed_map::of({{"features.cpaas.io/type", "CustomResourceLimitation"},
                                     {"features.cpaas.io/group", "lab"},
                                     {"features.cpaas.io/enabled", "true"},
                                     {"team.example.com/owner", "hidden"}});
  out.data = kube::packed_map::of({{"key", "example.com/fpga"},
                                   {"dataType", "integer"},
                                   {"group", "lab"},
                                   {"limits", "optional"},
                                   {"requests", "disabled"},
                                   {"labelZh", "加速卡"},
                                   {"note", "hidden"}});
  return out;
}

declared_resources declared() {
  declared_resources out;
  kube::config_map device;
  device.key = {"kube-public", "gpu-device"};
  device.labels = kube::packed_map::of({{"device-plugin.cpaas.io/config", "true"}});
  device.data = kube::packed_map::of({{"deviceName", "FPGA"}, {"nodeLabelKey", "fpga"}, {"nodeLabelValue", "on"}});
  kube::config_map large;
  large.key = {"kube-public", "large"};
  large.labels = kube::packed_map::of({{"features.cpaas.io/type", "CustomResourceLimitation"}});
  large.left_out = 70'000;
  out.config_maps = {fpga(), device, large};
  return out;
}

TEST(declared_document, comes_back_as_what_is_declared) {
  const auto read = declared_in(document_of(declared()));
  ASSERT_TRUE(read);
  auto sent = registry_of(declared(), "kube-public"), received = registry_of(*read, "kube-public");
  const auto rows = rows_of(sent), seen = rows_of(received);
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(seen.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(seen[i].declaration, rows[i].declaration);
  EXPECT_EQ(received.devices(), sent.devices());
  EXPECT_EQ(received.devices().size(), 1u);
  EXPECT_EQ(read->config_maps.back().left_out, 70'000u);
}

TEST(declared_document, has_no_label_and_no_field_that_declares_nothing) {
  EXPECT_THAT(document_of(declared()), HasSubstr("example.com/fpga"));
  EXPECT_THAT(document_of(declared()), Not(HasSubstr("hidden")));
}

TEST(declared_document, that_is_none_is_refused) {
  for (const auto* text : {"", "[]", "{}", R"({"configMaps": 1})", R"({"configMaps": [1]})"})
    EXPECT_FALSE(declared_in(text)) << text;
  const auto odd = declared_in(R"({"configMaps": [{"name": 1, "created": "x", "data": {"key": 7}, "labels": []}]})");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->config_maps.front().data.empty());
}

}  // namespace
}  // namespace cli
