#include "agent/allocation/start.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "test/words.hpp"

namespace agent::allocation {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using role = kube::container::role;

const offered_resource whole{"nvidia.com/gpu", device_unit::card}, shared{"nvidia.com/mps-core", device_unit::core};

json card_entry(const char* card) { return {{"card", card}, {"cores", 100}, {"memoryMiB", 16000}, {"whole", true}}; }
json share_entry(const char* card, int cores, int mib) {
  return {{"card", card}, {"cores", cores}, {"memoryMiB", mib}};
}

std::vector<std::string> id_list(int first, int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back("slot-" + std::to_string(100 + first + i));
  return out;
}

struct allocation_start : testing::Test {
  std::deque<kube::running_pod> pods;
  std::vector<kubelet::recorded_devices> recorded;
  std::vector<kubelet::given_devices> listed;
  std::vector<offered_resource> vocabulary;
  std::vector<quota::card> cards{{.uuid = "A", .model = "T4", .memory_mib = 16000},
                                 {.uuid = "B", .model = "T4", .memory_mib = 16000},
                                 {.uuid = "C", .model = "T4", .memory_mib = 16000}};

  kube::running_pod& pod(const char* name, const json& containers, std::int64_t bound_at = 100) {
    auto& out = pods.emplace_back();
    out.key = {"lab", name};
    out.id = kube::uid::parse(uid_of(name));
    out.node_name = "n";
    out.scheduled_at = bound_at;
    for (const auto& [container, shares] : containers.items())
      out.containers.push_back({container, role::main, {}, {}});
    place(out, containers);
    return out;
  }
  static std::string uid_of(const std::string& name) { return "uid-of-" + name; }
  static void place(kube::running_pod& target, const json& containers, const char* node = "n") {
    annotate(target, json{{"v", 1}, {"node", node}, {"containers", containers}}.dump());
  }
  static void annotate(kube::running_pod& target, std::string_view text) {
    target.annotations = kube::packed_map::of({{api::placement_annotation, text}});
  }
  void record(const std::string& pod, const char* container, const std::vector<std::string>& ids,
              const offered_resource& resource = whole) {
    recorded.push_back({uid_of(pod), container, resource.name, ids});
  }
  std::expected<container_start, refused_start> start(const std::vector<std::string>& ids,
                                                      const offered_resource& resource = whole) {
    std::vector<const kube::running_pod*> all;
    for (const auto& entry : pods) all.push_back(&entry);
    return start_of(resource, ids, {"n", recorded, listed, all, cards, vocabulary});
  }
  /// "main: A B" or the code of the refusal.
  std::string answer(const std::vector<std::string>& ids, const offered_resource& resource = whole) {
    const auto out = start(ids, resource);
    if (!out) return std::string(to_string(out.error().code));
    auto text = out->container + ":";
    for (const auto& share : out->shares) text += " " + share.card;
    return text;
  }
};

TEST_F(allocation_start, a_container_gets_the_cards_of_its_placement) {
  pod("p", {{"main", {card_entry("B"), card_entry("C")}}, {"next", {card_entry("A")}}});
  record("p", "main", id_list(0, 2));
  record("p", "next", id_list(2, 1));
  EXPECT_EQ(answer(id_list(0, 2)), "main: B C");
  EXPECT_EQ(answer(id_list(2, 1)), "next: A");
  EXPECT_EQ(answer(id_list(0, 1)), "not_recorded") << "a part of them is not they";
  EXPECT_EQ(answer(id_list(0, 2), shared), "not_recorded") << "of another resource";
}

TEST_F(allocation_start, IDs_of_a_pod_that_has_ended_are_the_next_ones) {
  pod("old", {{"main", {card_entry("A")}}}).phase = kube::pod_phase::succeeded;
  pod("new", {{"main", {card_entry("B")}}}, 200);
  record("old", "main", id_list(0, 1));
  EXPECT_EQ(answer(id_list(0, 1)), "not_recorded");
  record("new", "main", id_list(0, 1));
  EXPECT_EQ(answer(id_list(0, 1)), "main: B");
  pods.front().phase = kube::pod_phase::running;
  EXPECT_EQ(answer(id_list(0, 1)), "recorded_for_several");
}

TEST_F(allocation_start, an_init_container_runs_first_on_cards_of_a_later_one) {
  auto& is = pod("p", {{"a-init", json::array()}, {"main", {card_entry("B"), card_entry("C")}}});
  is.containers.front().kind = role::init;
  record("p", "a-init", id_list(0, 1));
  record("p", "main", id_list(0, 2));
  EXPECT_EQ(answer(id_list(0, 1)), "a-init: B");
  EXPECT_EQ(answer(id_list(0, 2)), "main: B C");
}

TEST_F(allocation_start, an_init_container_that_needs_more_than_the_others_has_its_own_too) {
  auto& is = pod("p", {{"a-init", {card_entry("A")}}, {"main", {card_entry("B"), card_entry("C")}}});
  is.containers.front().kind = role::init;
  record("p", "a-init", id_list(0, 3));
  EXPECT_EQ(answer(id_list(0, 3)), "a-init: A B C");
}

TEST_F(allocation_start, where_init_and_later_container_have_the_same_IDs_both_get_the_later_ones) {
  auto& is = pod("p", {{"a-init", json::array()}, {"main", {card_entry("C")}}});
  is.containers.front().kind = role::init;
  record("p", "a-init", id_list(0, 1));
  record("p", "main", id_list(0, 1));
  EXPECT_EQ(answer(id_list(0, 1)), "main: C");
}

TEST_F(allocation_start, a_sidecar_that_runs_already_lends_nothing) {
  auto& is = pod("p", {{"a-sidecar", {card_entry("A")}}, {"b-init", json::array()}, {"main", {card_entry("B")}}});
  is.containers[0].kind = role::sidecar;
  is.containers[1].kind = role::init;
  record("p", "b-init", id_list(1, 1));
  EXPECT_EQ(answer(id_list(1, 1)), "b-init: B");
  record("p", "b-init", id_list(5, 2));
  EXPECT_EQ(answer(id_list(5, 2)), "amount_differs");
}

TEST_F(allocation_start, shares_of_a_card_fit_together_and_the_first_that_was_bound_has_it) {
  pod("first", {{"main", {share_entry("A", 60, 8000)}}}, 100);
  pod("second", {{"main", {share_entry("A", 40, 8000)}}}, 200);
  auto& third = pod("third", {{"main", {share_entry("A", 10, 0)}}}, 300);
  record("first", "main", id_list(0, 60), shared);
  record("second", "main", id_list(60, 40), shared);
  record("third", "main", id_list(200, 10), shared);
  EXPECT_EQ(answer(id_list(0, 60), shared), "main: A");
  EXPECT_EQ(answer(id_list(60, 40), shared), "main: A");
  EXPECT_EQ(answer(id_list(200, 10), shared), "card_full");
  place(third, {{"main", {share_entry("B", 10, 16001)}}});
  EXPECT_EQ(answer(id_list(200, 10), shared), "card_full") << "more memory than the card has";
  cards[1].memory_scale = 200;
  EXPECT_EQ(answer(id_list(200, 10), shared), "main: B");
  pods.front().phase = kube::pod_phase::failed;
  place(third, {{"main", {share_entry("A", 10, 8000)}}});
  EXPECT_EQ(answer(id_list(200, 10), shared), "main: A");
}

TEST_F(allocation_start, a_whole_card_is_nobody_elses) {
  pod("first", {{"main", {share_entry("A", 1, 1)}}}, 100);
  auto& second = pod("second", {{"main", {card_entry("A")}}}, 200);
  record("second", "main", id_list(0, 1));
  EXPECT_EQ(answer(id_list(0, 1)), "card_full");
  second.scheduled_at = 50;
  EXPECT_EQ(answer(id_list(0, 1)), "main: A") << "it came first";
}

TEST_F(allocation_start, a_card_that_another_plugin_gave_to_a_pod_is_its_until_it_ends) {
  pod("old", json::object(), 50);
  pod("new", {{"main", {card_entry("A")}}}, 100);
  record("new", "main", id_list(0, 1));
  for (const auto* id : {"A", "A::3"}) {
    recorded.resize(1);
    record("old", "main", {id});
    EXPECT_EQ(answer(id_list(0, 1)), "card_full") << id;
  }
  recorded.back().ids = {"A-longer", "B"};
  EXPECT_EQ(answer(id_list(0, 1)), "main: A");
  recorded.back().ids = {"B", "A"};
  EXPECT_EQ(answer(id_list(0, 1)), "card_full");
  pods.front().phase = kube::pod_phase::failed;
  EXPECT_EQ(answer(id_list(0, 1)), "main: A");
}

TEST_F(allocation_start, a_missing_wrong_or_forged_placement_is_refused) {
  auto& is = pod("p", {{"main", {card_entry("A")}}});
  record("p", "main", id_list(0, 1));
  const auto annotated = [&](std::string_view text) {
    annotate(is, text);
    return answer(id_list(0, 1));
  };
  EXPECT_EQ(annotated(""), "not_placed");
  EXPECT_EQ(annotated("{"), "placement_unreadable");
  EXPECT_EQ(annotated(R"({"v":2,"node":"n","containers":{}})"), "placement_unreadable");
  EXPECT_EQ(annotated(R"({"v":1,"node":"n","containers":{}})"), "container_not_placed");
  EXPECT_EQ(annotated(R"({"v":1,"node":"n","containers":{"other":[{"card":"A","whole":true}]}})"),
            "container_not_placed");
  place(is, {{"main", {card_entry("A")}}}, "m");
  EXPECT_EQ(answer(id_list(0, 1)), "placed_elsewhere");
  place(is, {{"main", {card_entry("A"), card_entry("B")}}});
  EXPECT_EQ(answer(id_list(0, 1)), "amount_differs");
  place(is, {{"main", {share_entry("A", 100, 16000)}}});
  EXPECT_EQ(answer(id_list(0, 1)), "amount_differs") << "a share is no whole card";
  place(is, {{"main", {card_entry("GPU-of-another-node")}}});
  EXPECT_EQ(answer(id_list(0, 1)), "card_unknown");
  place(is, {{"main", {card_entry("A"), card_entry("A")}}});
  recorded.front().ids = id_list(0, 2);
  EXPECT_EQ(answer(id_list(0, 2)), "card_twice");
}

TEST_F(allocation_start, the_API_and_the_kubelet_must_agree_about_the_pod) {
  record("p", "main", id_list(0, 1));
  EXPECT_EQ(answer(id_list(0, 1)), "pod_unknown");
  EXPECT_TRUE(start(id_list(0, 1)).error().may_pass());
  auto& is = pod("p", {{"main", {card_entry("A")}}});
  listed = {{"lab", "other", "main", id_list(0, 1)}};
  EXPECT_EQ(answer(id_list(0, 1)), "kubelet_disagrees");
  listed = {{"lab", "p", "main", {"net-1", id_list(0, 1).front()}}};
  EXPECT_EQ(answer(id_list(0, 1)), "main: A") << "and it has a device of another resource";
  is.node_name = "m";
  EXPECT_EQ(answer(id_list(0, 1)), "bound_elsewhere");
  is.node_name = "n";
  recorded.front().container = "side";
  EXPECT_EQ(answer(id_list(0, 1)), "container_unknown");
  EXPECT_FALSE(start(id_list(0, 1)).error().may_pass());
}

TEST(allocation_words, are_there_for_every_doubt) {
  for (int i = 0; i <= static_cast<int>(start_doubt::card_full); ++i) {
    const auto key = "start." + std::string(to_string(static_cast<start_doubt>(i)));
    for (const auto locale : {text::language::en, text::language::zh})
      EXPECT_NE(text::pattern_of(key, locale), "") << key;
  }
  const refused_start no{start_doubt::not_placed, {{"pod", "lab/p"}}};
  EXPECT_EQ(no.text(), words::english("start.not_placed", {{"pod", "lab/p"}}));
}

TEST_F(allocation_start, memory_is_counted_in_its_units) {
  const offered_resource memory{"nvidia.com/mps-memory", device_unit::memory, 1024};
  auto& is = pod("p", {{"a-init", json::array()}, {"main", {share_entry("B", 30, 4096)}}});
  is.containers.front().kind = role::init;
  record("p", "main", id_list(0, 4), memory);
  EXPECT_EQ(answer(id_list(0, 4), memory), "main: B");
  record("p", "a-init", id_list(0, 2), memory);
  EXPECT_EQ(answer(id_list(0, 2), memory), "a-init: B") << "it runs in the larger share of the container after it";
  place(is, {{"main", {share_entry("B", 30, 3072)}}});
  EXPECT_EQ(answer(id_list(0, 4), memory), "amount_differs");
  pod("whole", {{"main", {card_entry("C")}}});
  record("whole", "main", id_list(10, 1), memory);
  EXPECT_EQ(answer(id_list(10, 1), memory), "main: C") << "all of its memory comes with it";
}

TEST_F(allocation_start, a_placement_agrees_with_the_limits_of_its_container_by_every_key_of_the_vocabulary) {
  const offered_resource memory{"aliyun.com/gpu-mem", device_unit::memory, 1024};
  const offered_resource cores{"aliyun.com/gpu-core.percentage", device_unit::core};
  const offered_resource count{"aliyun.com/gpu-count", device_unit::slot};
  vocabulary = {memory, cores, count};
  auto& is = pod("p", {{"a-init", json::array()}, {"main", {share_entry("B", 0, 3072)}}});
  is.containers.front().kind = role::init;
  auto& main = is.containers.back();
  record("p", "main", id_list(0, 3), memory);
  EXPECT_EQ(answer(id_list(0, 3), memory), "main: B") << "memory alone";
  place(is, {{"main", {share_entry("B", 80, 3072)}}});
  EXPECT_EQ(answer(id_list(0, 3), memory), "amount_differs") << "compute that it did not ask for";
  main.limits = {{"aliyun.com/gpu-core.percentage", 80}, {"aliyun.com/gpu-mem", 3}};
  EXPECT_EQ(answer(id_list(0, 3), memory), "main: B");
  record("p", "main", id_list(0, 80), cores);
  EXPECT_EQ(answer(id_list(0, 80), cores), "main: B");
  place(is, {{"main", {share_entry("B", 80, 9216)}}});
  EXPECT_EQ(answer(id_list(0, 80), cores), "amount_differs") << "memory that it did not ask for";
  place(is, {{"main", {share_entry("B", 80, 3072)}}});
  main.limits = {{"aliyun.com/gpu-core.percentage", 80}, {"aliyun.com/gpu-count", 1}, {"aliyun.com/gpu-mem", 3}};
  EXPECT_EQ(answer(id_list(0, 3), memory), "main: B");
  record("p", "main", id_list(0, 1), count);
  EXPECT_EQ(answer(id_list(0, 1), count), "main: B");
  main.limits = {{"aliyun.com/gpu-core.percentage", 80}, {"aliyun.com/gpu-count", 2}, {"aliyun.com/gpu-mem", 3}};
  EXPECT_EQ(answer(id_list(0, 3), memory), "amount_differs") << "a card more than it was placed on";
  is.containers.front().limits = {{"aliyun.com/gpu-mem", 2}};
  record("p", "a-init", id_list(0, 2), memory);
  EXPECT_EQ(answer(id_list(0, 2), memory), "a-init: B") << "the share that is lent may be larger by each key";
}

TEST_F(allocation_start, a_share_is_lent_by_a_container_that_has_enough_by_each_key) {
  const offered_resource seat{.name = "nvidia.com/gpu", .unit = device_unit::slot, .per_card = 10};
  vocabulary = {seat,
                {.name = "nvidia.com/gpumem", .unit = device_unit::memory, .unit_mib = 1, .is_offered = false},
                {.name = "nvidia.com/gpucores", .unit = device_unit::core, .is_offered = false}};
  auto& is = pod(
      "p",
      {{"a-init", json::array()}, {"b-small", {share_entry("A", 40, 1000)}}, {"c-large", {share_entry("B", 0, 8000)}}});
  is.containers[0].kind = role::init;
  is.containers[0].limits = {{"nvidia.com/gpu", 1}, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 6000}};
  record("p", "a-init", id_list(0, 1), seat);
  EXPECT_EQ(answer(id_list(0, 1), seat), "a-init: B") << "which has all of the card's compute";
  is.containers[0].limits = {{"nvidia.com/gpu", 1}, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 600}};
  EXPECT_EQ(answer(id_list(0, 1), seat), "a-init: A");
  is.containers[0].limits = {{"nvidia.com/gpu", 1}, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 9000}};
  EXPECT_EQ(answer(id_list(0, 1), seat), "container_not_placed");
  place(is, {{"a-init", {share_entry("C", 30, 9000)}}, {"b-small", {share_entry("A", 40, 1000)}}});
  EXPECT_EQ(answer(id_list(0, 1), seat), "a-init: C") << "its own";
}

/// The kubelet counts seats alone; memory and compute stand in limits, and what they leave out has a default.
TEST_F(allocation_start, limits_that_no_kubelet_counts_are_those_of_the_placement_too) {
  const offered_resource seat{.name = "nvidia.com/gpu", .unit = device_unit::slot, .per_card = 10};
  vocabulary = {seat,
                {.name = "nvidia.com/gpumem",
                 .unit = device_unit::memory,
                 .unit_mib = 1,
                 .is_offered = false,
                 .by_default = 5000},
                {.name = "nvidia.com/gpumem-percentage", .unit = device_unit::percent, .is_offered = false},
                {.name = "nvidia.com/gpucores", .unit = device_unit::core, .is_offered = false, .by_default = 10}};
  auto& is = pod("p", {{"main", json::array()}});
  record("p", "main", id_list(0, 1), seat);
  const auto answer_with = [&](kube::quantities limits, int cores, int mib) {
    is.containers.front().limits = std::move(limits);
    place(is, {{"main", {share_entry("B", cores, mib)}}});
    return answer(id_list(0, 1), seat);
  };
  const std::pair<std::string, std::int64_t> count{"nvidia.com/gpu", 1};
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 3000}}, 30, 3000), "main: B");
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 3000}}, 31, 3000), "amount_differs");
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpucores", 30}, {"nvidia.com/gpumem", 3000}}, 30, 3001), "amount_differs");
  EXPECT_EQ(answer_with({count}, 10, 5000), "main: B") << "by default";
  EXPECT_EQ(answer_with({count}, 10, 5001), "amount_differs");
  EXPECT_EQ(answer_with({count}, 11, 5000), "amount_differs");
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpumem-percentage", 50}}, 10, 8000), "main: B");
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpumem-percentage", 50}}, 10, 8001), "amount_differs");
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpumem", 3000}, {"nvidia.com/gpumem-percentage", 50}}, 10, 3000),
            "main: B")
      << "MiB count where both are named";
  EXPECT_EQ(answer_with({count, {"nvidia.com/gpumem", 3000}, {"nvidia.com/gpumem-percentage", 50}}, 10, 8000),
            "amount_differs");
  vocabulary[1].by_default = 0;
  EXPECT_EQ(answer_with({count}, 10, 16000), "main: B") << "all of the card";
  EXPECT_EQ(answer_with({count}, 10, 16001), "card_full");
}

TEST_F(allocation_start, of_memory_in_MiB_the_kubelets_list_of_thousands_is_read) {
  const offered_resource memory{"aliyun.com/gpu-mem", device_unit::memory, 1};
  pod("p", {{"main", {share_entry("B", 0, 8138)}}});
  auto ids = id_list(0, 8138);
  std::ranges::sort(ids);
  record("p", "main", ids, memory);
  listed = {{"lab", "other", "main", {ids.rbegin(), ids.rend() - 1}}, {"lab", "p", "main", {ids.rbegin(), ids.rend()}}};
  EXPECT_EQ(answer(ids, memory), "main: B");
  listed.pop_back();
  EXPECT_EQ(answer(ids, memory), "kubelet_disagrees");
}

TEST_F(allocation_start, the_largest_share_of_a_card_is_the_most_of_each_that_pods_there_have) {
  pod("many-cores", {{"main", {share_entry("A", 50, 1000)}}, {"next", {share_entry("B", 90, 9000)}}});
  pod("much-memory", {{"main", {share_entry("A", 10, 7000)}}});
  pod("ended", {{"main", {share_entry("A", 40, 8000)}}}).phase = kube::pod_phase::succeeded;
  std::vector<const kube::running_pod*> all;
  for (const auto& entry : pods) all.push_back(&entry);
  const node_records known{"n", recorded, listed, all, cards};
  const auto of_a = largest_share("A", known);
  EXPECT_EQ(of_a.cores, 50);
  EXPECT_EQ(of_a.memory_mib, 7000);
  EXPECT_EQ(largest_share("C", known).cores, 0);
  place(pods[1], {{"main", {share_entry("A", 0, 7000)}}});
  EXPECT_EQ(largest_share("A", known).cores, 100) << "a share of memory alone has all of the card's compute";
}

}  // namespace
}  // namespace agent::allocation
