// Where cards are and how they are connected.
#include "library_under_test.hpp"

namespace {

using namespace nvml_test;

int level(unsigned left, unsigned right) {
  int out = -1;
  EXPECT_EQ(call("nvmlDeviceGetTopologyCommonAncestor", card_at(left), card_at(right), &out), nvml::success);
  return out;
}

int peer_status(unsigned left, unsigned right, int index) {
  int out = -1;
  EXPECT_EQ(call("nvmlDeviceGetP2PStatus", card_at(left), card_at(right), index, &out), nvml::success);
  return out;
}

TEST(topology, paths_meet_at_a_switch_a_bridge_a_node_or_nowhere) {
  {
    const session session("a100x8");
    EXPECT_EQ(level(0, 1), nvml::multiple);
    EXPECT_EQ(level(0, 2), nvml::across_nodes);
    EXPECT_EQ(level(0, 0), nvml::internal);
  }
  {
    const session session("t4_pair");
    EXPECT_EQ(level(0, 1), nvml::host_bridge);
  }
  const session session("l40s");
  EXPECT_EQ(level(0, 1), nvml::same_node);
  EXPECT_EQ(level(1, 2), nvml::across_nodes);
}

TEST(topology, processors_are_a_mask_of_words) {
  const session session("a100x8");
  unsigned long mask[4] = {};
  ASSERT_EQ(call("nvmlDeviceGetCpuAffinity", card_at(0), 4U, &mask[0]), nvml::success);  // 48-63,176-191
  EXPECT_EQ(mask[0], 0xffff000000000000UL);
  EXPECT_EQ(mask[1], 0UL);
  EXPECT_EQ(mask[2], 0xffff000000000000UL);
  EXPECT_EQ(mask[3], 0UL);
  EXPECT_EQ(value<unsigned>("nvmlDeviceGetNumaNodeId", card_at(0)), 3U);
}

TEST(nvlink, links_of_an_hgx_machine_lead_to_its_switches) {
  const session session("a100x8");
  const auto card = card_at(0);
  nvml::pci_info peer{};
  int type = -1;
  ASSERT_EQ(call("nvmlDeviceGetNvLinkRemotePciInfo_v2", card, 2U, &peer), nvml::success);
  EXPECT_STREQ(peer.bus_id, "00000000:C5:00.0");
  ASSERT_EQ(call("nvmlDeviceGetNvLinkRemoteDeviceType", card, 2U, &type), nvml::success);
  EXPECT_EQ(type, nvml::peer_switch);
  EXPECT_EQ(peer_status(0, 7, nvml::p2p_nvlink), nvml::p2p_ok);
  unsigned supported = 0;
  EXPECT_EQ(call("nvmlDeviceGetNvLinkCapability", card, 0U, 0U, &supported), nvml::success);
  EXPECT_EQ(supported, 1U);
  int is_active = 0;
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", card, 12U, &is_active), nvml::invalid_argument);
}

TEST(nvlink, direct_links_count_between_their_two_cards_only) {
  session session("t4_pair");
  auto content = session.node.content();
  content["cards"][0]["nvlinks"] = {{{"peer", "0000:00:05.0"}, {"count", 2}},
                                    {{"peer", "0000:00:05.0"}, {"down", true}}};
  content["cards"][1]["nvlinks"] = {{{"peer", "0000:00:04.0"}, {"count", 2}}};
  session.node.replace(content);
  EXPECT_EQ(peer_status(0, 1, nvml::p2p_nvlink), nvml::p2p_ok);
  int type = -1, is_active = 1;
  EXPECT_EQ(call("nvmlDeviceGetNvLinkRemoteDeviceType", card_at(0), 0U, &type), nvml::success);
  EXPECT_EQ(type, nvml::peer_gpu);
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", card_at(0), 2U, &is_active), nvml::success);
  EXPECT_EQ(is_active, 0);
}

TEST(nvlink, cards_without_links_say_that_they_have_none) {
  const session session("t4_pair");
  int is_active = 0;
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", card_at(0), 0U, &is_active), nvml::not_supported);
  EXPECT_EQ(peer_status(0, 1, nvml::p2p_read), nvml::p2p_ok);
  EXPECT_EQ(peer_status(0, 1, nvml::p2p_nvlink), nvml::p2p_not_supported);
}

TEST(fabric, is_completed_behind_nvswitch_and_not_supported_elsewhere) {
  nvml::fabric_info_v3 info{};
  info.version = nvml::version_word<nvml::fabric_info_v3>(3);
  {
    const session session("h100x8");
    ASSERT_EQ(call("nvmlDeviceGetGpuFabricInfoV", card_at(0), &info), nvml::success);
    EXPECT_EQ(info.state, 3);
    EXPECT_EQ(info.status, nvml::success);
    EXPECT_EQ(info.cluster[0], 0);
  }
  const session session("t4");
  EXPECT_EQ(call("nvmlDeviceGetGpuFabricInfoV", card_at(0), &info), nvml::not_supported);
}

}  // namespace
