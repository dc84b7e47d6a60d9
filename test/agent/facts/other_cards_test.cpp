// Accelerators of vendors other than NVIDIA. Numbers of devices are those of pci.ids 2026.08.22 where it has them.
#include "agent/facts/other_cards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/agent/facts/tree.hpp"

namespace agent::facts {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

auto is_card(const std::string& bus_id, const std::string& vendor, const std::string& pci_id) {
  return testing::AllOf(Field(&api::other_card::bus_id, bus_id), Field(&api::other_card::vendor, vendor),
                        Field(&api::other_card::pci_id, pci_id));
}

TEST(other_cards, S27_of_each_vendor_are_listed_with_address_and_numbers) {
  const tree node;
  node.pci("pci0000:00", "0000:01:00.0", "0x1002", "0x740c", "0x038000", "amdgpu", 1);
  node.pci("pci0000:00", "0000:02:00.0", "0x8086", "0x0bd5", "0x038000", "i915");
  node.pci("pci0000:00", "0000:03:00.0", "0x19e5", "0xd802", "0x120000", "devdrv_device_driver");
  node.pci("pci0000:00", "0000:04:00.0", "0xcabc", "0x0370", "0x120000", "cambricon-pci-drv");
  node.pci("pci0000:00", "0000:05:00.0", "0x1d94", "0x6211", "0x120000", "hydcu");
  node.pci("pci0000:00", "0000:06:00.0", "0x1ed5", "0x0106", "0x030000", "mtgpu");
  node.pci("pci0000:00", "0000:07:00.0", "0x1e3e", "0x0001", "0x030200", "iluvatar-itr");
  node.pci("pci0000:00", "0000:08:00.0", "0x9999", "0x4001", "0x120000", "metax");
  node.pci("pci0000:00", "0000:09:00.0", "0x1e36", "0x0021", "0x120000", "enflame");
  node.pci("pci0000:00", "0000:0a:00.0", "0x1da3", "0x1000", "0x120000", "habanalabs");
  node.pci("pci0000:00", "0000:0b:00.0", "0x1d22", "0x3684", "0x120000", "", -1);
  node.put("sys/devices/pci0000:00/0000:01:00.0/product_name", "AMD Instinct MI250X\n");
  const auto cards = other_cards(node.seen());
  EXPECT_THAT(
      cards,
      ElementsAre(is_card("0000:01:00.0", "AMD", "1002:740c"), is_card("0000:02:00.0", "Intel", "8086:0bd5"),
                  is_card("0000:03:00.0", "Huawei", "19e5:d802"), is_card("0000:04:00.0", "Cambricon", "cabc:0370"),
                  is_card("0000:05:00.0", "Hygon", "1d94:6211"), is_card("0000:06:00.0", "Moore Threads", "1ed5:0106"),
                  is_card("0000:07:00.0", "Iluvatar", "1e3e:0001"), is_card("0000:08:00.0", "MetaX", "9999:4001"),
                  is_card("0000:09:00.0", "Enflame", "1e36:0021"), is_card("0000:0a:00.0", "Habana", "1da3:1000"),
                  is_card("0000:0b:00.0", "Baidu", "1d22:3684")));
  ASSERT_EQ(cards.size(), 11U);
  EXPECT_EQ(cards[0].model, "AMD Instinct MI250X");
  EXPECT_EQ(cards[0].driver, "amdgpu");
  EXPECT_EQ(cards[0].numa, 1);
  EXPECT_EQ(cards[1].model, "") << "its driver does not say";
  EXPECT_EQ(cards[10].driver, "");
  EXPECT_EQ(cards[10].numa, -1);
}

TEST(other_cards, with_the_same_address_are_one) {
  machine_facts node;
  pci_device device;
  device.address = std::string(40, '0');  // more than AcceleratorNode has room for
  device.vendor = 0x1002;
  device.class_code = 0x120000;
  node.pci = std::vector(2, device);
  node.pci->back().address += "1";
  EXPECT_THAT(other_cards(node), testing::SizeIs(1));
}

TEST(other_cards, are_neither_screens_nor_network_nor_nvidias) {
  const tree node;
  node.pci("pci0000:00", "0000:00:02.0", "0x8086", "0x4680", "0x030000", "i915");       // of the processor
  node.pci("pci0000:00", "0000:01:00.0", "0x19e5", "0x1711", "0x030000", "hibmc-drm");  // of a server's screen
  node.pci("pci0000:00", "0000:02:00.0", "0x1a03", "0x2000", "0x030000", "ast");        // another one
  node.pci("pci0000:00", "0000:03:00.0", "0x8086", "0x1592", "0x020000", "ice");        // a network adapter
  node.pci("pci0000:00", "0000:04:00.0", "0x10de", "0x2330", "0x030200", "nvidia");
  node.pci("pci0000:00", "0000:05:00.0", "0x1d94", "0x1468", "0x108000", "ccp");  // of the processor
  EXPECT_THAT(other_cards(node.seen()), IsEmpty());
  EXPECT_THAT(other_cards(machine_facts{}), IsEmpty());
}

TEST(other_cards, that_sr_iov_has_made_for_guests_are_not_counted_twice) {
  const tree node;
  node.pci("pci0000:00", "0000:01:00.0", "0x1002", "0x740c", "0x038000", "amdgpu");
  node.pci("pci0000:00", "0000:01:02.0", "0x1002", "0x7410", "0x038000", "");
  node.link("sys/devices/pci0000:00/0000:01:02.0/physfn", "../0000:01:00.0");
  EXPECT_EQ(other_cards(node.seen()).size(), 1U);
}

TEST(other_cards, are_as_many_as_the_report_has_room_for) {
  const tree node;
  for (int i = 0; i < 80; ++i) {
    char address[16];
    std::snprintf(&address[0], sizeof address, "0000:%02x:00.0", i);
    node.pci("pci0000:00", &address[0], "0x19e5", "0xd802", "0x120000", "");
  }
  EXPECT_EQ(other_cards(node.seen()).size(), api::most_other_cards);
}

std::vector<row> rows_of(const tree& node) { return judge(node.seen(), nullptr); }

TEST(preflight, of_a_node_with_cards_of_another_vendor_only_asks_for_nothing_of_nvidia) {
  const tree node;
  node.system();
  node.pci("pci0000:00", "0000:01:00.0", "0x1002", "0x740c", "0x038000", "amdgpu");
  node.pci("pci0000:00", "0000:02:00.0", "0x1002", "0x740c", "0x038000", "amdgpu");
  const text::parameter cards{"cards", "2 AMD"};
  EXPECT_THAT(rows_of(node),
              ElementsAre(api::row_of(check::cards, check_state::ok, {}, {check_cause::other_vendors, {cards}})));
  node.pci("pci0000:00", "0000:04:00.0", "0x10de", "0x2330", "0x030200", "nvidia");
  EXPECT_GT(rows_of(node).size(), 5U);
}

TEST(preflight, of_a_node_with_a_screen_still_misses_the_nvidia_card) {
  const tree node;
  node.system();
  node.pci("pci0000:00", "0000:05:00.0", "0x1002", "0x1638", "0x030000", "amdgpu");
  const auto rows = rows_of(node);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].state, check_state::failed);
  EXPECT_EQ(rows[0].cause, "cards_absent");
}

}  // namespace
}  // namespace agent::facts
