// XID events as a health check waits for them.
#include <chrono>
#include <thread>

#include "library_under_test.hpp"

namespace {

using namespace nvml_test;
using namespace std::chrono_literals;

/// A set that watches the given cards for XIDs.
class watch {
 public:
  explicit watch(const std::vector<device>& cards) {
    EXPECT_EQ(call("nvmlEventSetCreate", &set_), nvml::success);
    for (const auto card : cards)
      EXPECT_EQ(call("nvmlDeviceRegisterEvents", card, static_cast<std::uint64_t>(nvml::event_xid), set_),
                nvml::success);
  }
  ~watch() { EXPECT_EQ(call("nvmlEventSetFree", set_), nvml::success); }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  return_code wait(nvml::event_data& data, unsigned timeout_ms) {
    return call("nvmlEventSetWait_v2", set_, &data, timeout_ms);
  }
  nvml::event_set* set() { return set_; }

 private:
  nvml::event_set* set_ = nullptr;
};

json xid(unsigned sequence, const std::string& card, unsigned number) {
  return {{"sequence", sequence}, {"card", card}, {"xid", number}};
}

/// Adds the event to the fixture.
void happens(node& node, json event) {
  auto content = node.content();
  content["events"].push_back(std::move(event));
  node.replace(content);
}

TEST(events, an_old_event_is_not_delivered_and_the_timeout_is_kept) {
  session session("t4");
  const auto card = card_at(0);
  happens(session.node, xid(1, text("nvmlDeviceGetUUID", card), 48));
  watch watch({card});
  nvml::event_data data{};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(watch.wait(data, 60), nvml::timeout);
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, 60ms);
}

TEST(events, new_events_come_in_order_and_to_their_own_card) {
  session session("t4_pair");
  const std::vector cards{card_at(0), card_at(1)};
  watch watch(cards);
  auto content = session.node.content();
  content["events"] = {xid(3, text("nvmlDeviceGetUUID", cards[0]), 63),
                       xid(2, text("nvmlDeviceGetUUID", cards[1]), 48)};
  session.node.replace(content);
  nvml::event_data data{};
  ASSERT_EQ(watch.wait(data, 1000), nvml::success);
  EXPECT_EQ(data.card, cards[1]);
  EXPECT_EQ(data.data, 48U);
  EXPECT_EQ(data.type, static_cast<std::uint64_t>(nvml::event_xid));
  EXPECT_EQ(data.gpu_instance, nvml::no_instance);
  ASSERT_EQ(watch.wait(data, 1000), nvml::success);
  EXPECT_EQ(data.card, cards[0]);
  EXPECT_EQ(data.data, 63U);
  EXPECT_EQ(watch.wait(data, 0), nvml::timeout);
}

TEST(events, events_of_unwatched_cards_and_types_are_skipped) {
  session session("t4_pair");
  const auto card = card_at(0);
  watch watch({card});
  auto content = session.node.content();
  auto ecc = xid(2, text("nvmlDeviceGetUUID", card), 0);
  ecc["type"] = "double_bit_ecc";
  content["events"] = {xid(1, text("nvmlDeviceGetUUID", card_at(1)), 48), ecc,
                       xid(3, text("nvmlDeviceGetUUID", card), 31)};
  session.node.replace(content);
  nvml::event_data data{};
  ASSERT_EQ(watch.wait(data, 1000), nvml::success);
  EXPECT_EQ(data.data, 31U);
}

TEST(events, an_event_of_a_mig_device_has_its_instances) {
  session session("a100_mig");
  const auto card = card_at(0);
  watch watch({card});
  auto content = session.node.content();
  auto event = xid(1, text("nvmlDeviceGetUUID", card), 43);
  event["gpu_instance"] = 11;
  event["compute_instance"] = 0;
  content["events"].push_back(event);
  session.node.replace(content);
  nvml::event_data data{};
  ASSERT_EQ(watch.wait(data, 1000), nvml::success);
  EXPECT_EQ(data.gpu_instance, 11U);
  EXPECT_EQ(data.compute_instance, 0U);
}

TEST(events, a_wait_that_has_begun_sees_the_event) {
  session session("t4");
  const auto card = card_at(0);
  watch watch({card});
  auto content = session.node.content();
  content["events"].push_back(xid(5, text("nvmlDeviceGetUUID", card), 79));
  std::thread writer([&] {
    std::this_thread::sleep_for(50ms);
    session.node.replace(content);
  });
  nvml::event_data data{};
  EXPECT_EQ(watch.wait(data, 5000), nvml::success);
  EXPECT_EQ(data.data, 79U);
  writer.join();
}

TEST(events, the_last_words_of_a_lost_card_come_before_the_error) {
  session session("t4_pair");
  const auto card = card_at(1);
  watch watch({card});
  auto content = session.node.content();
  content["events"].push_back(xid(1, text("nvmlDeviceGetUUID", card), 79));
  content["cards"][1]["lost"] = true;
  session.node.replace(content);
  nvml::event_data data{};
  ASSERT_EQ(watch.wait(data, 1000), nvml::success);
  EXPECT_EQ(data.data, 79U);
  EXPECT_EQ(data.card, card);
  EXPECT_EQ(watch.wait(data, 1000), nvml::gpu_is_lost);
}

TEST(events, the_first_form_writes_its_three_members_only) {
  session session("t4");
  const auto card = card_at(0);
  watch watch({card});
  happens(session.node, xid(1, text("nvmlDeviceGetUUID", card), 48));
  nvml::event_data data{};
  data.gpu_instance = 77;
  ASSERT_EQ(call("nvmlEventSetWait", watch.set(), static_cast<void*>(&data), 1000U), nvml::success);
  EXPECT_EQ(data.data, 48U);
  EXPECT_EQ(data.gpu_instance, 77U);
}

TEST(events, what_a_card_can_report_depends_on_ecc) {
  {
    const session session("t4");
    EXPECT_EQ(value<std::uint64_t>("nvmlDeviceGetSupportedEventTypes", card_at(0)), 0x1fU);
  }
  session session("t4");
  auto content = session.node.content();
  content["cards"][0]["ecc"] = nullptr;
  session.node.replace(content);
  EXPECT_EQ(value<std::uint64_t>("nvmlDeviceGetSupportedEventTypes", card_at(0)), 0x1cU);
}

}  // namespace
