// Each rule of attribution.hpp by one example; property_test.cpp has the rest.
#include "agent/exporter/attribution.hpp"

#include <gtest/gtest.h>

namespace agent::exporter {
namespace {

using cards::owner_kind;

const container_name a{"ns", "a", "main"}, b{"ns", "b", "main"};

cards::process_usage usage_of(unsigned pid, owner_kind kind, const std::string& container, std::uint64_t memory,
                              std::uint64_t busy) {
  cards::process_usage out;
  out.pid = pid;
  out.owner = {kind, container, container.empty() ? "" : "some"};
  out.memory = memory;
  out.utilization_ppm = busy;
  return out;
}

class attribution : public testing::Test {
 protected:
  attribution() {
    card.uuid = "GPU-1";
    card.memory_total = 1000;
    card.memory_used = 600;
    card.utilization_ppm = 500'000;
    card.lists_processes = card.samples_processes = true;
    pod_a.key = {"ns", "a"};
    pod_a.ids = {{"main", "aaa"}};
    pod_b.key = {"ns", "b"};
    pod_b.ids = {{"main", "bbb"}};
  }
  void give(pod& pod, int cores, std::uint64_t memory) { pod.planned.push_back({"main", "GPU-1", cores, memory}); }
  attributed_card take() { return attribute(std::span(&card, 1), devices, &pods).at(0); }

  cards::card_usage card;
  std::vector<given_devices> devices;
  pod pod_a, pod_b;
  std::vector<const pod*> pods{&pod_a, &pod_b};
};

TEST_F(attribution, a_process_counts_for_its_container) {
  give(pod_a, 20, 200);
  give(pod_b, 30, 300);
  card.processes = {usage_of(1, owner_kind::pod, "aaa", 100, 200'000),
                    usage_of(2, owner_kind::pod, "aaa", 50, 100'000)};
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares, (std::vector<share>{{a, 20, 200, 150, 300'000, 2, 0}, {b, 30, 300, 0, 0, 0, 0}}));
  EXPECT_EQ(memory, (unattributed{0, 0, 0, 450}));
  EXPECT_EQ(busy, (unattributed{0, 0, 0, 200'000}));
}

TEST_F(attribution, one_container_alone_has_all_where_no_process_is_seen) {
  give(pod_a, 100, 1000);
  card.processes = {usage_of(1, owner_kind::unseen, "", 100, 0)};
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares, (std::vector<share>{{a, 100, 1000, 600, 500'000, 0, 0}}));
  EXPECT_EQ(memory, unattributed());
  EXPECT_EQ(busy, unattributed());
}

TEST_F(attribution, of_several_containers_nothing_is_known_where_no_process_is_seen) {
  give(pod_a, 20, 200);
  give(pod_b, 30, 300);
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares, (std::vector<share>{{a, 20, 200, {}, {}, 0, 0}, {b, 30, 300, {}, {}, 0, 0}}));
  EXPECT_EQ(memory, (unattributed{0, 0, 0, 600}));
  EXPECT_EQ(busy, (unattributed{0, 0, 0, 500'000}));
}

TEST_F(attribution, the_server_of_mps_works_for_one_container_or_for_no_one_in_particular) {
  give(pod_a, 20, 200);
  card.processes = {usage_of(1, owner_kind::mps_server, "ccc", 300, 400'000)};
  EXPECT_EQ(take().shares, (std::vector<share>{{a, 20, 200, 300, 400'000, 0, 0}}));
  give(pod_b, 30, 300);
  card.processes.push_back(usage_of(2, owner_kind::pod, "bbb", 10, 0));
  card.processes.back().is_mps_client = true;
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares, (std::vector<share>{{a, 20, 200, 0, 0, 0, 0}, {b, 30, 300, 10, 0, 1, 1}}));
  EXPECT_EQ(memory, (unattributed{0, 300, 0, 290}));
  EXPECT_EQ(busy, (unattributed{0, 400'000, 0, 100'000}));
}

TEST_F(attribution, processes_with_more_than_the_card_are_scaled_down) {
  card.processes = {usage_of(1, owner_kind::pod, "aaa", 600, 500'000), usage_of(2, owner_kind::host, "", 600, 500'001)};
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares.at(0).memory_used, 300U);
  EXPECT_EQ(memory, (unattributed{300, 0, 0, 0}));
  EXPECT_EQ(*shares.at(0).utilization_ppm + busy->host + busy->unseen, 500'000U);
}

TEST_F(attribution, pods_that_no_one_knows_and_containers_without_a_name) {
  card.processes = {usage_of(1, owner_kind::pod, "zzz", 10, 0), usage_of(2, owner_kind::pod, "new", 20, 0)};
  card.processes[1].owner.pod_uid = pod_a.id.to_string();
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares.at(0).name, (container_name{"ns", "a", ""}));
  EXPECT_EQ(memory, (unattributed{0, 0, 10, 570}));
}

TEST_F(attribution, a_process_that_hides_its_memory_hides_that_of_its_container) {
  card.processes = {usage_of(1, owner_kind::pod, "aaa", 10, 7), usage_of(2, owner_kind::pod, "bbb", 20, 0)};
  card.processes[0].memory.reset();
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares.at(0).memory_used, std::nullopt);
  EXPECT_EQ(shares.at(0).utilization_ppm, 7U);
  EXPECT_EQ(shares.at(1).memory_used, 20U);
  EXPECT_EQ(memory, (unattributed{0, 0, 0, 580}));
}

TEST_F(attribution, what_the_card_does_not_say_no_share_has) {
  give(pod_a, 100, 1000);
  card.utilization_ppm.reset();
  const auto [shares, memory, busy] = take();
  EXPECT_EQ(shares.at(0).utilization_ppm, std::nullopt);
  EXPECT_EQ(shares.at(0).memory_used, 600U);
  EXPECT_FALSE(busy);
}

TEST_F(attribution, the_kubelet_counts_where_its_ids_are_cards) {
  give(pod_a, 40, 400);
  card.mig_uuids = {"MIG-1"};
  const auto cards_of = [&](const char* id) {
    devices = {{"ns", "a", "main", {id}}};
    return given_cards(devices, &pods, std::span(&card, 1));
  };
  EXPECT_EQ(cards_of("GPU-1"), (std::vector<given_card>{{a, "GPU-1", 100, 1000}}));
  EXPECT_EQ(cards_of("GPU-1::4"), (std::vector<given_card>{{a, "GPU-1", 40, 400}}));
  EXPECT_EQ(cards_of("MIG-1"), (std::vector<given_card>{{a, "GPU-1", {}, {}}}));
  for (const auto* number : {"GPU-1-0", "GPU-1-_-17", "tencent.com/vcuda-core-3", "GPU-12", ""})
    EXPECT_EQ(cards_of(number), (std::vector<given_card>{{a, "GPU-1", 40, 400}})) << number;
  pod_a.planned.clear();
  EXPECT_EQ(cards_of("GPU-1::4"), (std::vector<given_card>{{a, "GPU-1", {}, {}}})) << "no one limits it";
  EXPECT_TRUE(cards_of("GPU-1-0").empty());
  pod_a.phase = kube::pod_phase::succeeded;
  EXPECT_TRUE(cards_of("GPU-1").empty());
  devices = {{"ns", "gone", "main", {"GPU-1"}}};
  EXPECT_TRUE(given_cards(devices, &pods, std::span(&card, 1)).empty());
  EXPECT_EQ(given_cards(devices, nullptr, std::span(&card, 1)).size(), 1U) << "while pods are not known";
}

}  // namespace
}  // namespace agent::exporter
