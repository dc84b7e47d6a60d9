#include "quota/vocabulary.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quota/resource_keys.hpp"
#include "test/quota/facts.hpp"

namespace quota {
namespace {

service serving(mode mode) {
  return {.modes = static_cast<std::uint16_t>(mode), .plugin_chooses = mode == quota::mode::vgpu};
}

/// One container with these limits; what it needs, or why not.
struct outcome {
  std::optional<refusal> no;
  demand demanded;
  const need& only() const { return demanded.needs().front(); }
};
outcome ask(const service& service, const std::vector<amount>& amounts) {
  const std::vector<limits> pod{amounts};
  outcome out;
  out.no = read(pod, service, out.demanded);
  return out;
}
outcome ask(mode mode, const std::vector<amount>& amounts) { return ask(serving(mode), amounts); }

TEST(vocabulary, S11_vcuda_core_from_0_to_1000_has_its_verdict_and_the_nearest_valid_value) {
  for (std::int64_t core = 0; core <= 1000; ++core) {
    SCOPED_TRACE(core);
    const auto got =
        ask(mode::vgpu, {{"tencent.com/vcuda-core", core}, {"tencent.com/vcuda-memory", core == 0 ? 0 : 4}});
    if (core == 0) {
      EXPECT_FALSE(got.no);
      EXPECT_TRUE(got.demanded.nothing());
    } else if (core < 100) {
      ASSERT_FALSE(got.no);
      EXPECT_FALSE(got.only().whole);
      EXPECT_EQ(got.only().cores, core);
      EXPECT_EQ(got.only().memory_mib, 1024);
    } else if (core % 100 == 0) {
      ASSERT_FALSE(got.no);
      EXPECT_TRUE(got.only().whole);
      EXPECT_EQ(got.only().cards, core / 100);
    } else {
      ASSERT_TRUE(got.no);
      EXPECT_EQ(got.no->kind, wrong::not_legal);
      EXPECT_EQ(got.no->key, "tencent.com/vcuda-core");
      EXPECT_EQ(got.no->value, core);
      EXPECT_EQ(got.no->below, core / 100 * 100);
      EXPECT_EQ(got.no->above, core / 100 * 100 + 100);
    }
  }
}

TEST(vocabulary, S11_the_message_names_key_value_and_the_nearest_valid_ones) {
  EXPECT_EQ(facts_of(*ask(mode::vgpu, {{"tencent.com/vcuda-core", 150}, {"tencent.com/vcuda-memory", 4}}).no),
            "not_legal tencent.com/vcuda-core 150, 100 or 200");
  EXPECT_EQ(facts_of(*ask(mode::vgpu, {{"tencent.com/vcuda-core", 50}}).no),
            "needs_partner tencent.com/vcuda-core 50 tencent.com/vcuda-memory");
  EXPECT_EQ(facts_of(*ask(mode::pgpu, {{"tencent.com/vcuda-core", 50}}).no), "not_served tencent.com/vcuda-core 50");
  EXPECT_EQ(facts_of(*ask(mode::slots, {{"nvidia.com/gpucores", 250}}).no), "not_legal nvidia.com/gpucores 250, 100");
}

/// Key, value, partner; nearest below and above where it is refused, both -1 and legal otherwise.
struct line {
  mode node_mode;
  std::vector<amount> limits;
  bool legal;
  std::int64_t below = -1, above = -1;
};

TEST(vocabulary, S49_S50_S60_S83_every_vocabulary_has_its_steps_and_says_the_nearest) {
  const std::vector<line> lines{
      {mode::vgpu, {{"tencent.com/vcuda-core", -5}}, false, -1, 1},
      {mode::vgpu, {{"tencent.com/vcuda-core", 101}}, false, 100, 200},
      {mode::vgpu, {{"tencent.com/vcuda-core", 200}, {"tencent.com/vcuda-memory", 0}}, true},
      {mode::vgpu,
       {{"tencent.com/vcuda-core", 30}, {"tencent.com/vcuda-memory", 1}, {"tencent.com/vcuda-core-limit", 30}},
       true},
      {mode::vgpu,
       {{"tencent.com/vcuda-core", 30}, {"tencent.com/vcuda-memory", 1}, {"tencent.com/vcuda-core-limit", 29}},
       false,
       -1,
       30},
      {mode::vgpu,
       {{"tencent.com/vcuda-core", 30}, {"tencent.com/vcuda-memory", 1}, {"tencent.com/vcuda-core-limit", 200}},
       false,
       100},
      {mode::vgpu, {{"tencent.com/vcuda-core", 200}, {"tencent.com/vcuda-core-limit", 200}}, true},
      {mode::vgpu, {{"tencent.com/vcuda-core", 200}, {"tencent.com/vcuda-core-limit", 50}}, false, -1, 200},
      {mode::mps, {{"nvidia.com/mps-core", 99}, {"nvidia.com/mps-memory", 1}}, true},
      {mode::mps, {{"nvidia.com/mps-core", 199}}, false, 100, 200},
      {mode::pgpu, {{"nvidia.com/gpu", 8}}, true},
      {mode::pgpu, {{"nvidia.com/gpu", -1}}, false, -1, 1},
      {mode::slots, {{"nvidia.com/gpumem-percentage", 101}}, false, 100},
      {mode::slots, {{"nvidia.com/gpucores", 100}}, true},
      {mode::slots, {{"nvidia.com/priority", 2}}, false, 1},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 3}}, true},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 3}, {"aliyun.com/gpu-core.percentage", 7}}, false, 5, 10},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 3}, {"aliyun.com/gpu-core.percentage", 101}}, false, 100},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 2}}, true},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 3}}, false, 6, 9},
      {mode::memory_shares, {{"aliyun.com/gpu-mem", 2}, {"aliyun.com/gpu-count", 3}}, false, -1, 3},
      {mode::volcano, {{"volcano.sh/vgpu-memory-percentage", 200}}, false, 100},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 5}, {"tke.cloud.tencent.com/qgpu-memory", 1}}, true},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 3}}, false, -1, 5},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 12}}, false, 10, 15},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 97}}, false, 95, 100},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 300}}, true},
      {mode::qgpu, {{"tke.cloud.tencent.com/qgpu-core", 305}}, false, 300, 400},
      {mode::pgpu, {{"nvidia.com/gpu", INT64_MAX}}, false, 1'000'000'000},
      {mode::vgpu, {{"tencent.com/vcuda-core", INT64_MAX}}, false, 1'000'000'000},
      {mode::pgpu, {{"example.com/fpga", INT64_MAX}}, false, 1'000'000'000},
      {mode::pgpu, {{"example.com/fpga", INT64_MIN}}, false, -1, 1},
  };
  for (const auto& line : lines) {
    const auto got = ask(line.node_mode, line.limits);
    SCOPED_TRACE(std::string{line.limits.back().key} + " " + std::to_string(line.limits.back().value));
    ASSERT_EQ(!got.no, line.legal) << facts_of(*got.no);
    if (line.legal) continue;
    EXPECT_EQ(got.no->kind, wrong::not_legal);
    EXPECT_EQ(got.no->below, line.below);
    EXPECT_EQ(got.no->above, line.above);
    // The nearest is a value that is legal by itself.
    if (!known(got.no->key)) continue;
    for (const auto nearest : {got.no->below, got.no->above})
      if (nearest >= 0) EXPECT_FALSE(judge({got.no->key, nearest}, serving(line.node_mode)));
  }
}

TEST(vocabulary, a_share_is_refused_without_its_partner) {
  const auto lonely = [](mode mode, amount amount) {
    const auto got = ask(mode, {amount});
    return got.no && got.no->kind == wrong::needs_partner ? std::string{got.no->other} : "";
  };
  EXPECT_EQ(lonely(mode::vgpu, {"tencent.com/vcuda-core", 50}), "tencent.com/vcuda-memory");
  EXPECT_EQ(lonely(mode::vgpu, {"tencent.com/vcuda-memory", 4}), "tencent.com/vcuda-core");
  EXPECT_EQ(lonely(mode::vgpu, {"tencent.com/vcuda-core-limit", 50}), "tencent.com/vcuda-core");
  EXPECT_EQ(lonely(mode::mps, {"nvidia.com/mps-memory", 4}), "nvidia.com/mps-core");
  EXPECT_EQ(lonely(mode::memory_shares, {"aliyun.com/gpu-core.percentage", 50}), "aliyun.com/gpu-mem");
  EXPECT_EQ(lonely(mode::memory_shares, {"aliyun.com/gpu-count", 2}), "aliyun.com/gpu-mem");
  EXPECT_EQ(lonely(mode::volcano, {"volcano.sh/vgpu-cores", 50}), "volcano.sh/vgpu-number");
}

TEST(vocabulary, S50_nvidia_com_gpu_is_a_card_a_slot_or_a_replica_by_the_nodes_mode) {
  const std::vector<amount> two{{"nvidia.com/gpu", 2}};
  const auto card = ask(mode::pgpu, two).only();
  EXPECT_TRUE(card.whole);
  EXPECT_EQ(card.cards, 2U);

  const auto slot = ask(mode::slots, two).only();
  EXPECT_FALSE(slot.whole);
  EXPECT_TRUE(slot.distinct);
  EXPECT_EQ(slot.memory_percent, 100);

  const auto replica = ask(mode::share, two).only();
  EXPECT_FALSE(replica.whole);
  EXPECT_FALSE(replica.distinct);
  EXPECT_EQ(replica.memory_mib, 0);
  EXPECT_EQ(ask(mode::share, {{"nvidia.com/gpu.shared", 3}}).only().cards, 3U);

  EXPECT_EQ(ask(mode::vgpu, two).no->kind, wrong::not_served);
  EXPECT_EQ(ask(mode::pgpu, {{"nvidia.com/gpu.shared", 1}}).no->kind, wrong::not_served);
}

TEST(vocabulary, S50_S52_a_slot_takes_what_is_not_said_from_the_nodes_defaults) {
  auto service = serving(mode::slots);
  service.default_memory_mib = 5000;
  service.default_cores = 10;
  const auto bare = ask(service, {{"nvidia.com/gpualloc", 2}}).only();
  EXPECT_EQ(bare.cards, 2U);
  EXPECT_EQ(bare.memory_mib, 5000);
  EXPECT_EQ(bare.cores, 10);

  const auto full =
      ask(service, {{"nvidia.com/gpumem", 3000}, {"nvidia.com/gpumem-percentage", 50}, {"nvidia.com/gpucores", 30}});
  EXPECT_EQ(full.only().cards, 1U);
  EXPECT_EQ(full.only().memory_mib, 3000);
  EXPECT_EQ(full.only().memory_percent, 0);
  EXPECT_EQ(full.only().cores, 30);

  service.default_cards = 0;
  EXPECT_EQ(ask(service, {{"nvidia.com/gpumem", 3000}}).no->kind, wrong::needs_partner);
  EXPECT_TRUE(ask(service, {{"nvidia.com/priority", 1}}).demanded.nothing());
}

TEST(vocabulary, two_shares_by_time_are_refused_where_the_plugin_refuses_them) {
  auto service = serving(mode::share);
  EXPECT_EQ(ask(service, {{"nvidia.com/gpu.shared", 2}}).only().cards, 2U);
  service.one_replica = true;
  EXPECT_EQ(ask(service, {{"nvidia.com/gpu.shared", 1}}).only().cards, 1U);
  const auto two = ask(service, {{"nvidia.com/gpu.shared", 2}}).no;
  ASSERT_TRUE(two);
  EXPECT_EQ(facts_of(*two), "not_legal nvidia.com/gpu.shared 2, 1, one share");
}

TEST(vocabulary, whole_cards_beyond_one_are_refused_where_one_server_holds_a_container) {
  auto service = serving(mode::mps);
  EXPECT_EQ(ask(service, {{"nvidia.com/mps-core", 200}}).only().cards, 2U);
  service.one_card = true;
  EXPECT_EQ(ask(service, {{"nvidia.com/mps-core", 100}}).only().cards, 1U);
  const auto two = ask(service, {{"nvidia.com/mps-core", 200}}).no;
  ASSERT_TRUE(two);
  EXPECT_EQ(facts_of(*two), "not_legal nvidia.com/mps-core 200, 100, one card");
}

TEST(vocabulary, memory_of_several_cards_is_refused_where_one_server_holds_a_container) {
  auto service = serving(mode::memory_shares);
  EXPECT_EQ(ask(service, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 2}}).only().cards, 2U);
  service.one_card = true;
  EXPECT_EQ(ask(service, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 1}}).only().memory_mib, 8192);
  const auto two = ask(service, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 2}}).no;
  ASSERT_TRUE(two);
  EXPECT_EQ(facts_of(*two), "not_legal aliyun.com/gpu-count 2, 1, one card");
  auto slots = serving(mode::slots);
  slots.one_card = true;
  EXPECT_EQ(ask(slots, {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 3000}}).only().memory_mib, 3000);
  const auto cards = ask(slots, {{"nvidia.com/gpualloc", 2}, {"nvidia.com/gpumem", 3000}}).no;
  ASSERT_TRUE(cards);
  EXPECT_EQ(facts_of(*cards), "not_legal nvidia.com/gpualloc 2, 1, one card");
}

TEST(vocabulary, S12_units_are_told_in_mib) {
  EXPECT_EQ(ask(mode::vgpu, {{"tencent.com/vcuda-core", 1}, {"tencent.com/vcuda-memory", 30}}).only().memory_mib, 7680);
  EXPECT_EQ(ask(mode::mps, {{"nvidia.com/mps-core", 1}, {"nvidia.com/mps-memory", 3}}).only().memory_mib, 3072);
  EXPECT_EQ(ask(mode::memory_shares, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 2}}).only().memory_mib, 4096);
  auto mib = serving(mode::memory_shares);
  mib.memory_unit_mib = 1;
  EXPECT_EQ(ask(mib, {{"aliyun.com/gpu-mem", 8138}}).only().memory_mib, 8138);
  EXPECT_EQ(ask(mode::volcano, {{"volcano.sh/vgpu-number", 1}, {"volcano.sh/vgpu-memory", 8000}}).only().memory_mib,
            8000);
}

TEST(vocabulary, S49_what_is_written_on_the_pod_is_a_whole_number_from_1) {
  for (const auto* text : {"1", "50", "100", "9999999999"}) EXPECT_EQ(pod_amount_in(text), std::stoll(text)) << text;
  for (const auto* text : {"", "0", "050", "-1", "+1", " 50", "50 ", "50%", "1e2", "0x10", "banana", "99999999999"})
    EXPECT_FALSE(pod_amount_in(text)) << text;
  EXPECT_TRUE(is_pod_amount("tencent.com/vcuda-core-limit", false));
  EXPECT_FALSE(is_pod_amount("tencent.com/vcuda-core-limit", true));
  EXPECT_TRUE(is_pod_amount("aliyun.com/gpu-count", true));
  EXPECT_FALSE(is_pod_amount("", false));
}

TEST(vocabulary, S49_what_is_written_on_the_pod_and_is_no_number_is_refused) {
  const auto refused = [](mode mode, const std::vector<amount>& limits) {
    return facts_of(ask(mode, limits).no.value());
  };
  EXPECT_EQ(refused(mode::vgpu, {{"tencent.com/vcuda-core", 20},
                                 {"tencent.com/vcuda-memory", 4},
                                 {"tencent.com/vcuda-core-limit", not_a_number}}),
            "not_legal tencent.com/vcuda-core-limit no number, 1");
  EXPECT_EQ(refused(mode::memory_shares, {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", not_a_number}}),
            "not_legal aliyun.com/gpu-count no number, 1");
}

// The engine and those who judge a pod before it (admission, lint) hold it to one rule.
TEST(vocabulary, S49_the_engine_allows_what_the_rule_for_pods_allows) {
  for (const std::int64_t cores : {1, 20, 99, 100, 200})
    for (std::int64_t limit = 1; limit <= 210; ++limit) {
      std::vector<amount> limits{{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-core-limit", limit}};
      if (cores < 100) limits.push_back({"tencent.com/vcuda-memory", 4});
      EXPECT_EQ(!ask(mode::vgpu, limits).no, core_limit.allow(limit, cores)) << cores << " " << limit;
    }
  for (std::int64_t memory = 1; memory <= 24; ++memory)
    for (std::int64_t cards = 1; cards <= 26; ++cards)
      EXPECT_EQ(!ask(mode::memory_shares, {{"aliyun.com/gpu-mem", memory}, {"aliyun.com/gpu-count", cards}}).no,
                card_count.allow(cards, memory))
          << memory << " " << cards;
}

TEST(vocabulary, S49_a_core_limit_is_carried_with_the_share) {
  const auto got =
      ask(mode::vgpu,
          {{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 4}, {"tencent.com/vcuda-core-limit", 60}});
  ASSERT_FALSE(got.no);
  EXPECT_EQ(got.only().burst_cores, 60);
}

TEST(vocabulary, two_vocabularies_in_one_container_are_refused_and_in_two_containers_are_not) {
  const auto both = serving(mode::pgpu).modes | serving(mode::vgpu).modes;
  const service service{.modes = static_cast<std::uint16_t>(both)};
  const amount gpu{"nvidia.com/gpu", 1}, core{"tencent.com/vcuda-core", 100};
  EXPECT_EQ(ask(service, {gpu, core}).no->kind, wrong::mixed);
  EXPECT_EQ(ask(mode::slots, {gpu, {"nvidia.com/gpualloc", 1}}).no->kind, wrong::mixed);

  const std::vector<amount> first{gpu}, second{core};
  const std::vector<limits> pod{first, second};
  demand demand;
  ASSERT_FALSE(read(pod, service, demand));
  ASSERT_EQ(demand.needs().size(), 2U);
  EXPECT_EQ(demand.needs()[1].container, 1);
}

TEST(vocabulary, unknown_declared_keys_are_counted_over_containers_and_native_ones_are_passed_over) {
  const std::vector<amount> first{{"example.com/fpga", 2}, {"cpu", 4}, {"memory", INT64_MAX}};
  const std::vector<amount> second{{"example.com/fpga", 1}, {"example.com/dsp", 1}};
  const std::vector<limits> pod{first, second};
  demand demand;
  ASSERT_FALSE(read(pod, serving(mode::pgpu), demand));
  ASSERT_EQ(demand.counts().size(), 2U);
  EXPECT_EQ(demand.counts()[0].key, "example.com/fpga");
  EXPECT_EQ(demand.counts()[0].amount, 3);
  EXPECT_FALSE(known("example.com/fpga"));
  EXPECT_TRUE(known("nvidia.com/gpualloc"));
}

/// What a pod of these containers needs, as "whole cards + shares, fpga".
std::string needed(mode mode, const std::vector<std::pair<bool, std::vector<amount>>>& containers) {
  std::vector<limits> pod;
  for (const auto& [init, amounts] : containers) pod.emplace_back(amounts).init = init;
  demand out;
  if (const auto no = read(pod, serving(mode), out)) return facts_of(*no);
  std::int64_t wholes = 0, shares = 0, fpga = 0;
  for (const auto& need : out.needs()) (need.whole ? wholes : shares) += need.cards;
  for (const auto& count : out.counts()) fpga += count.amount;
  return std::to_string(wholes) + " + " + std::to_string(shares) + ", " + std::to_string(fpga);
}

TEST(vocabulary, whole_cards_and_counts_of_init_containers_are_a_maximum_as_in_kubernetes) {
  const auto cards = [](std::int64_t n) { return std::vector<amount>{{"nvidia.com/gpu", n}}; };
  const auto fpga = [](std::int64_t n) { return std::vector<amount>{{"example.com/fpga", n}}; };
  const bool init = true, other = false;
  EXPECT_EQ(needed(mode::pgpu, {{init, cards(2)}, {other, cards(1)}}), "2 + 0, 0");
  EXPECT_EQ(needed(mode::pgpu, {{init, cards(2)}, {other, cards(1)}, {other, cards(1)}}), "2 + 0, 0");
  EXPECT_EQ(needed(mode::pgpu, {{init, cards(2)}, {init, cards(3)}, {other, cards(1)}}), "3 + 0, 0");
  EXPECT_EQ(needed(mode::pgpu, {{init, cards(1)}, {other, cards(4)}}), "4 + 0, 0");
  // A sidecar that started before it runs next to it; one that starts after it does not.
  EXPECT_EQ(needed(mode::pgpu, {{other, cards(1)}, {init, cards(2)}, {other, cards(1)}}), "3 + 0, 0");
  EXPECT_EQ(needed(mode::pgpu, {{init, cards(2)}, {other, cards(1)}, {other, cards(1)}}), "2 + 0, 0");
  EXPECT_EQ(needed(mode::pgpu, {{init, fpga(5)}, {init, fpga(3)}, {other, fpga(2)}}), "0 + 0, 5");
  EXPECT_EQ(needed(mode::pgpu, {{other, fpga(1)}, {init, fpga(5)}, {other, fpga(2)}}), "0 + 0, 6");
  EXPECT_EQ(needed(mode::pgpu, {{init, fpga(1)}, {other, fpga(2)}, {other, fpga(2)}}), "0 + 0, 4");
}

/// The shares a pod needs, as "MiB/cores".
std::string shares_of(mode mode, const std::vector<std::pair<bool, std::vector<amount>>>& containers) {
  std::vector<limits> pod;
  for (const auto& [init, amounts] : containers) pod.emplace_back(amounts).init = init;
  demand out;
  if (const auto no = read(pod, serving(mode), out)) return facts_of(*no);
  std::string text;
  for (const auto& need : out.needs())
    text += (text.empty() ? "" : " ") + std::to_string(need.memory_mib) + "/" + std::to_string(need.cores);
  return text;
}

TEST(vocabulary, a_share_of_an_init_container_is_lent_by_a_later_one) {
  const auto share = [](std::int64_t cores, std::int64_t mib) {
    return std::vector<amount>{{"nvidia.com/gpucores", cores}, {"nvidia.com/gpumem", mib}};
  };
  const auto vcuda = [](std::int64_t cores, std::int64_t units) {
    return std::vector<amount>{{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", units}};
  };
  const bool init = true, other = false;
  EXPECT_EQ(shares_of(mode::slots, {{init, share(20, 2000)}, {other, share(30, 1000)}}), "2000/30") << "the larger";
  EXPECT_EQ(shares_of(mode::slots, {{init, share(20, 500)}, {other, share(30, 1000)}}), "1000/30");
  EXPECT_EQ(shares_of(mode::slots, {{init, share(0, 3000)}, {other, share(30, 1000)}, {other, share(10, 2000)}}),
            "1000/30 3000/10")
      << "the one that grows least";
  EXPECT_EQ(shares_of(mode::slots, {{init, share(0, 3000)}, {init, share(0, 4000)}, {other, share(10, 1000)}}),
            "4000/10")
      << "init containers run one after the other";
  EXPECT_EQ(shares_of(mode::slots, {{init, share(5, 3000)}, {init, share(0, 4000)}, {init, share(10, 1000)}}),
            "4000/10")
      << "also where only init containers ask";
  EXPECT_EQ(shares_of(mode::vgpu, {{init, vcuda(20, 8)}, {init, vcuda(20, 8)}}), "2048/20");
  EXPECT_EQ(shares_of(mode::slots, {{other, share(30, 1000)}, {init, share(20, 2000)}, {other, share(10, 500)}}),
            "1000/30 2000/20")
      << "a sidecar that started before runs next to it";
  EXPECT_EQ(shares_of(mode::slots, {{init, share(20, 2000)}}), "2000/20");
  EXPECT_EQ(shares_of(mode::slots, {{init, {{"nvidia.com/gpumem-percentage", 50}}}, {other, share(10, 1000)}}),
            "1000/10 0/0")
      << "what cannot be compared is next to it";
  EXPECT_EQ(shares_of(mode::vgpu, {{init, vcuda(20, 8)}, {other, vcuda(10, 4)}}), "1024/10 2048/20")
      << "the plugin would take another card for a larger share";
}

TEST(vocabulary, a_share_of_an_init_container_counts_where_no_later_one_can_lend_it) {
  const auto share = [](std::int64_t cores, std::int64_t mib) {
    return std::vector<amount>{{"nvidia.com/gpucores", cores}, {"nvidia.com/gpumem", mib}};
  };
  const bool init = true, other = false;
  EXPECT_EQ(needed(mode::slots, {{init, share(20, 1000)}, {other, share(20, 1000)}}), "0 + 1, 0");
  const std::vector<amount> two{{"nvidia.com/gpualloc", 2}, {"nvidia.com/gpumem", 1000}};
  EXPECT_EQ(needed(mode::slots, {{init, two}, {other, share(30, 1000)}}), "0 + 3, 0") << "of more cards";
  EXPECT_EQ(needed(mode::slots, {{other, share(20, 1000)}, {init, share(20, 1000)}}), "0 + 2, 0")
      << "a sidecar next to it";
}

TEST(vocabulary, more_containers_than_are_looked_at_are_refused) {
  const std::vector<amount> amounts{{"nvidia.com/gpu", 1}};
  const std::vector<limits> pod(demand::max_needs + 1, amounts);
  demand demand;
  const auto no = read(pod, serving(mode::pgpu), demand);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->kind, wrong::too_many);
}

}  // namespace
}  // namespace quota
