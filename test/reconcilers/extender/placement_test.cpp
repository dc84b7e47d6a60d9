#include "reconcilers/extender/placement.hpp"

#include <gmock/gmock.h>

#include "api/engine_words.hpp"
#include "api/placement.hpp"
#include "quota/place.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using testing::SizeIs;

constexpr std::int64_t timestamp = 1'800'000'000'000'000'000;

/// A node with nothing given out, and what is decided for a pod on it.
struct decision {
  quota::ledger book;
  quota::holding held;
  json written;

  decision(const kube::node& node, const kube::pod& pod, const reconcilers::accelerator_policy* policy = nullptr) {
    book.put(node_of(node, policy, is_fpga));
    const pod_request request(pod, is_fpga);
    quota::demand needs;
    const auto no = quota::read(request.containers(), view().inventory->serves, needs);
    EXPECT_FALSE(no) << api::words_of(*no, text::language::en);
    quota::placement placement;
    EXPECT_TRUE(quota::place(needs, view(), {}, placement).fits());
    held = quota::holding_of(needs, placement, *view().inventory);
    written = annotations_of(held, request, pod, *view().inventory, timestamp);
  }
  quota::node_view view() const { return *book.view("a"); }
};

kube::node hami_node() {
  return node("a",
              {{"quartermaster.io/module", "hami"}, {"nvidia.com/gpu.memory", "16384"}, {"nvidia.com/gpu.count", "2"}},
              {{"nvidia.com/gpualloc", 20}},
              {{"hami.io/node-nvidia-register",
                R"([{"id":"a/0","count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true},)"
                R"({"id":"a/1","index":1,"count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true}])"}});
}
kube::pod hami_pod(const std::string& node_name = {}) {
  return pod(
      "p",
      {container("web", {}),
       container("main", {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 4000}, {"nvidia.com/gpucores", 30}})},
      node_name);
}

TEST(placement, what_is_written_is_read_back) {
  const std::pair<kube::node, kube::pod> cases[] = {
      {vgpu_node("a", 2), share("p", 20, 8)},
      {vgpu_node("a", 2), share("p", 200, 0)},
      {hami_node(), hami_pod()},
      {node("a", {}, {{"nvidia.com/gpu", 8}}), pod("p", {container("main", {{"nvidia.com/gpu", 3}})})},
      {node("a", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}}),
       pod("p", {container("main", {{"aliyun.com/gpu-mem", 6}})})},
      {node("a", {}, {{"example.com/fpga", 4}}), pod("p", {container("main", {{"example.com/fpga", 3}})})},
  };
  for (const auto& [node, pod] : cases) {
    decision made(node, pod);
    auto bound = annotated(pod, made.written);
    bound.node_name = "a";
    const auto got = held_by(bound, made.view(), pod_request(bound, is_fpga));
    EXPECT_EQ(got.origin, source::planned) << made.written.dump();
    EXPECT_EQ(got.holding, made.held) << made.written.dump();
  }
}

TEST(placement, our_annotation_is_readable_by_anyone) {
  const decision made(vgpu_node("a", 2), share("p", 20, 8));
  EXPECT_EQ(
      made.written.at("quartermaster.io/placement").get<std::string>(),
      R"({"v":1,"node":"a","source":"planned","containers":{"main":[{"card":"a/0","cores":20,"memoryMiB":2048}]}})");
  EXPECT_EQ(made.written.at("quartermaster.io/isolation"), "soft");
}

TEST(placement, gpu_manager_reads_its_cards_by_number_and_time) {
  const decision made(vgpu_node("a", 2),
                      pod("p", {container("web", {}), container("main", {{"tencent.com/vcuda-core", 200}})}));
  EXPECT_EQ(made.written.at("tencent.com/predicate-gpu-idx-1"), "0,1");
  EXPECT_EQ(made.written.at("tencent.com/predicate-node"), "a");
  EXPECT_EQ(made.written.at("tencent.com/predicate-time"), std::to_string(timestamp));
  EXPECT_EQ(made.written.at("tencent.com/gpu-assigned"), "false");
  EXPECT_EQ(made.written.at("quartermaster.io/isolation"), "exclusive");
}

TEST(placement, hami_reads_a_list_for_each_container) {
  const decision made(hami_node(), hami_pod());
  EXPECT_EQ(made.written.at("hami.io/vgpu-devices-allocated"), ";a/0,NVIDIA,4000,30:;");
  EXPECT_EQ(made.written.at("hami.io/vgpu-devices-to-allocate"), ";a/0,NVIDIA,4000,30:;");
  EXPECT_EQ(made.written.at("hami.io/vgpu-node"), "a");
  EXPECT_EQ(made.written.at("hami.io/bind-phase"), "allocating");
  EXPECT_EQ(made.written.at("hami.io/bind-time"), "1800000000");
}

TEST(placement, gpushare_reads_one_card_and_its_size) {
  const decision made(node("a", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}}),
                      pod("p", {container("main", {{"aliyun.com/gpu-mem", 6}})}));
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_IDX"), "0");
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_POD"), "6");
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_DEV"), "16");
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_ASSIGNED"), "false");
  EXPECT_EQ(made.written.at("quartermaster.io/isolation"), "none");
}

TEST(placement, of_another_bind_the_plugins_own_words_count) {
  decision empty(vgpu_node("a", 2), share("q", 1, 1));
  const auto bound = annotated(share("p", 20, 8, "a"), {{"tencent.com/predicate-gpu-idx-0", "1"}});
  auto got = held_by(bound, empty.view(), pod_request(bound, is_fpga));
  EXPECT_EQ(got.origin, source::confirmed);
  ASSERT_THAT(got.holding.grants, SizeIs(1));
  EXPECT_EQ(got.holding.grants[0].card, "a/1");

  decision hami(hami_node(), hami_pod());
  const auto foreign = annotated(hami_pod("a"), {{"hami.io/vgpu-devices-allocated", ";a/1,NVIDIA,5000,40:;"}});
  got = held_by(foreign, hami.view(), pod_request(foreign, is_fpga));
  EXPECT_EQ(got.origin, source::confirmed);
  ASSERT_THAT(got.holding.grants, SizeIs(1));
  EXPECT_EQ(got.holding.grants[0].card, "a/1");
  EXPECT_EQ(got.holding.grants[0].memory_mib, 5000);
}

/// Annotations lie one behind the other in memory. The first byte of the next one may look like a digit.
TEST(placement, a_number_ends_where_its_text_ends) {
  const decision empty(vgpu_node("a", 12), share("q", 1, 1));
  const auto card_of = [&](std::string_view text, std::size_t length) {
    const std::string next(length, 'z');
    const auto bound = annotated(share("p", 20, 8, "a"), {{"tencent.com/predicate-gpu-idx-0", text}, {next, "1"}});
    const auto got = held_by(bound, empty.view(), pod_request(bound, is_fpga));
    return got.origin == source::confirmed ? got.holding.grants.at(0).card : std::string(to_string(got.origin));
  };
  for (std::size_t length = 1; length < 64; ++length) ASSERT_EQ(card_of("1", length), "a/1") << length;
  for (const auto* text : {"1x", "x", "", "-1", "+1", " 1", "1 "}) EXPECT_EQ(card_of(text, 8), "guessed") << text;
  EXPECT_EQ(card_of("11", 8), "a/11");
}

TEST(placement, what_gpu_manager_took_wins_over_what_was_planned) {
  decision made(vgpu_node("a", 4), share("p", 100, 0));
  auto bound = annotated(share("p", 100, 0, "a"), made.written);
  bound = annotated(bound, {{"tencent.com/gpu-assigned", "true"}, {"tencent.com/predicate-gpu-idx-0", "3"}});
  const auto got = held_by(bound, made.view(), pod_request(bound, is_fpga));
  EXPECT_EQ(got.origin, source::confirmed);
  EXPECT_EQ(got.holding.grants[0].card, "a/3");
}

TEST(placement, F41_an_annotation_that_holds_less_than_the_limits_is_not_believed) {
  decision made(vgpu_node("a", 2), share("q", 1, 1));
  for (const auto* text : {
           R"({"v":1,"node":"a","containers":{}})",
           R"({"v":1,"node":"a","containers":{"main":[{"card":"a/0","cores":1,"memoryMiB":2048}]}})",
           R"({"v":1,"node":"b","containers":{"main":[{"card":"b/0","cores":20,"memoryMiB":2048}]}})",
           R"({"v":1,"node":"a","containers":{"main":[{"card":"a/0","cores":-20,"memoryMiB":2048}]}})",
           R"({"v":1,"node":"a","containers":{"main":[{"card":"a/0","cores":1e30,"memoryMiB":2048}]}})",
           R"({"v":1,"node":"a","containers":{"main":[{"card":7}]}})",
           R"({"v":1,"node":"a","containers":[1,2]})",
           R"([])",
           R"({"v":1,)",
           R"()",
       }) {
    const auto bound = annotated(share("p", 20, 8, "a"), {{"quartermaster.io/placement", text}});
    const auto got = held_by(bound, made.view(), pod_request(bound, is_fpga));
    EXPECT_EQ(got.origin, source::guessed) << text;
    ASSERT_THAT(got.holding.grants, SizeIs(1)) << text;
    EXPECT_EQ(got.holding.grants[0].cores, 20) << text;
  }
}

TEST(placement, a_pod_that_was_forced_on_a_full_node_is_booked_all_the_same) {
  quota::ledger book;
  book.put(node_of(vgpu_node("a", 1), nullptr, is_fpga));
  const auto first = share("p", 100, 0, "a"), second = share("q", 60, 8, "a");
  book.record("p", held_by(first, *book.view("a"), pod_request(first, is_fpga)).holding);
  const auto got = held_by(second, *book.view("a"), pod_request(second, is_fpga));
  EXPECT_EQ(got.origin, source::guessed);
  EXPECT_EQ(book.record("q", got.holding), quota::booked::over_given);
}

TEST(placement, init_containers_count_where_they_ask_for_more) {
  const auto main = container("main", {{"tencent.com/vcuda-core", 50}, {"tencent.com/vcuda-memory", 8}});
  const auto less =
      container("init", {{"tencent.com/vcuda-core", 50}, {"tencent.com/vcuda-memory", 4}}, kube::container::role::init);
  const auto more =
      container("init", {{"tencent.com/vcuda-core", 60}, {"tencent.com/vcuda-memory", 4}}, kube::container::role::init);
  const auto serves = node_of(vgpu_node("a", 4), nullptr, is_fpga).serves;
  const auto cards_of = [&](const std::vector<kube::container>& containers) {
    const auto workload = pod("p", containers);
    const pod_request request(workload, is_fpga);
    quota::demand needs;
    EXPECT_FALSE(quota::read(request.containers(), serves, needs));
    std::uint32_t sum = 0;
    for (const auto& need : needs.needs()) sum += need.cards;
    return sum;
  };
  EXPECT_EQ(cards_of({less, main}), 1u);
  EXPECT_EQ(cards_of({more, main}), 2u);
  const auto whole = [](const std::string& name, std::int64_t cards, kube::container::role role) {
    return container(name, {{"tencent.com/vcuda-core", cards * 100}}, role);
  };
  EXPECT_EQ(cards_of({whole("i", 2, role::init), whole("a", 1, role::main)}), 2u);
  EXPECT_EQ(cards_of({whole("i", 2, role::init), whole("a", 1, role::main), whole("b", 1, role::main)}), 2u);
}

TEST(placement, S60_a_label_says_over_how_many_cards_memory_is_spread) {
  auto workload = pod("p", {container("main", {{"aliyun.com/gpu-mem", 8}})});
  workload.labels = packed({{"aliyun.com/gpu-count", "2"}});
  const decision made(
      node("a", {{"ack.node.gpu.schedule", "cgpu"}}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}}),
      workload);
  ASSERT_THAT(made.held.grants, SizeIs(2));
  EXPECT_EQ(made.held.grants[0].memory_mib, 4096);
}

/// gpushare-device-plugin reads ALIYUN_COM_GPU_MEM_IDX with strconv.Atoi, and finds the pod by the amount of the one
/// container it is called for (pkg/gpu/nvidia/podutils.go, allocate.go).
TEST(placement, S69_gpushares_plugin_is_told_one_card_or_the_pod_is_refused) {
  auto spread = pod("p", {container("main", {{"aliyun.com/gpu-mem", 8}})});
  spread.labels = packed({{"aliyun.com/gpu-count", "2"}});
  const auto two = pod("q", {container("a", {{"aliyun.com/gpu-mem", 3}}), container("b", {{"aliyun.com/gpu-mem", 5}})});
  const auto try_on = [](const kube::pod& pod, std::int64_t cards) {
    quota::ledger book;
    book.put(node_of(node("a", {}, {{"aliyun.com/gpu-mem", 16 * cards}, {"aliyun.com/gpu-count", cards}}), nullptr,
                     is_fpga));
    const pod_request request(pod, is_fpga);
    const auto view = *book.view("a");
    quota::demand needs;
    EXPECT_FALSE(quota::read(request.containers(), view.inventory->serves, needs));
    EXPECT_EQ(quota::fit(needs, view).fits(), [&] {
      quota::placement placement;
      return quota::place(needs, view, {}, placement).fits();
    }());
    return std::string(api::words_of(quota::fit(needs, view).code, text::language::en));
  };
  EXPECT_EQ(try_on(spread, 4), words::english("engine.reason.one_index"));
  EXPECT_EQ(try_on(two, 4), words::english("engine.reason.one_index"));
  EXPECT_EQ(try_on(two, 1), words::english("engine.reason.fits"))
      << "where there is one card, the plugin does not ask which";
  EXPECT_EQ(try_on(pod("r", {container("main", {{"aliyun.com/gpu-mem", 8}})}), 4),
            words::english("engine.reason.fits"));
  const decision made(node("a", {}, {{"aliyun.com/gpu-mem", 16}, {"aliyun.com/gpu-count", 1}}), two);
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_IDX"), "0");
  EXPECT_EQ(made.written.at("ALIYUN_COM_GPU_MEM_POD"), "8");
}

/// With our own plugin nothing is written for another one: it reads the placement of each container.
TEST(placement, gpushares_words_by_our_own_plugin_are_held_by_MPS_on_one_card) {
  reconcilers::accelerator_policy policy;
  policy.modules["gpushare"].settings["plugin"] = "quartermaster";
  const auto host =
      node("a", {{"quartermaster.io/module", "gpushare"}},
           {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}, {"aliyun.com/gpu-core.percentage", 400}});
  const auto two = pod("q", {container("a", {{"aliyun.com/gpu-mem", 3}}),
                             container("b", {{"aliyun.com/gpu-core.percentage", 30}, {"aliyun.com/gpu-mem", 5}})});
  const decision made(host, two, &policy);
  ASSERT_THAT(made.held.grants, SizeIs(2));
  EXPECT_EQ(made.held.grants[0].cores, 0);
  EXPECT_EQ(made.held.grants[1].cores, 30);
  EXPECT_EQ(made.held.grants[1].memory_mib, 5120);
  EXPECT_EQ(made.written.at("quartermaster.io/isolation"), "mps");
  for (const auto& [annotation, value] : made.written.items())
    EXPECT_FALSE(annotation.starts_with("ALIYUN_COM_GPU_MEM_")) << annotation << " " << value;
  const auto& serves = made.view().inventory->serves;
  EXPECT_FALSE(serves.one_index);
  EXPECT_FALSE(reconcilers::dialects::finds_pods_by_time(serves)) << "no Binding waits for another";
  EXPECT_EQ(made.view().inventory->cards.front().max_sharers, 16) << "clients of an MPS server";

  auto spread = pod("p", {container("main", {{"aliyun.com/gpu-mem", 8}})});
  spread.labels = packed({{"aliyun.com/gpu-count", "2"}});
  quota::demand needs;
  const auto no = quota::read(pod_request(spread, is_fpga).containers(), serves, needs);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->legal, quota::legal_amounts::one_card);
  EXPECT_EQ(no->key, "aliyun.com/gpu-count");

  const auto of_ack = node("a", {{"ack.node.gpu.schedule", "cgpu"}}, {{"aliyun.com/gpu-mem", 64}});
  EXPECT_FALSE(node_of(of_ack, &policy, is_fpga).serves.one_card) << "ACK's own plugin serves that node";
}

/// Neither register nor lock: the cards are those of the agent's report.
TEST(placement, HAMis_words_by_our_own_plugin_need_neither_register_nor_lock) {
  reconcilers::accelerator_policy policy;
  policy.modules["hami"].settings = {{"plugin", "quartermaster"}, {"defaultMem", "0"}};
  const auto host = node("a", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 20}});
  std::vector<api::reported_card> reported(2);
  for (std::size_t i = 0; i < reported.size(); ++i) {
    reported[i].uuid = "GPU-" + std::to_string(i);
    reported[i].memory_mib = 15360;
    reported[i].index = static_cast<std::int32_t>(i);
  }
  quota::ledger book;
  book.put(node_of(host, &policy, is_fpga, reported));
  const auto view = *book.view("a");
  const auto& serves = view.inventory->serves;
  ASSERT_THAT(view.inventory->cards, SizeIs(2));
  EXPECT_EQ(view.inventory->cards[1].uuid, "GPU-1");
  EXPECT_EQ(reconcilers::dialects::lock_of(serves), nullptr);
  const auto workload = hami_pod();
  const pod_request request(workload, is_fpga);
  quota::demand needs;
  ASSERT_FALSE(quota::read(request.containers(), serves, needs));
  quota::placement placement;
  ASSERT_TRUE(quota::place(needs, view, {}, placement).fits());
  const auto held = quota::holding_of(needs, placement, *view.inventory);
  const auto written = annotations_of(held, request, workload, *view.inventory, timestamp);
  EXPECT_EQ(written.at("quartermaster.io/isolation"), "mps");
  EXPECT_THAT(written.at("quartermaster.io/placement").get<std::string>(),
              testing::HasSubstr(R"("cores":30,"memoryMiB":4000)"));
  for (const auto& [annotation, value] : written.items())
    EXPECT_FALSE(annotation.starts_with("hami.io/")) << annotation << " " << value;
  EXPECT_TRUE(node_of(host, nullptr, is_fpga, reported).cards.empty()) << "HAMi's plugin has registered none";
}

/// What gpushare's own extender bound stays booked, whatever its plugin made of it.
TEST(placement, pods_of_gpushare_with_several_containers_are_booked) {
  auto bound = annotated(
      pod("q", {container("a", {{"aliyun.com/gpu-mem", 3}}), container("b", {{"aliyun.com/gpu-mem", 5}})}, "a"),
      {{"ALIYUN_COM_GPU_MEM_IDX", "1"}});
  quota::ledger book;
  book.put(node_of(node("a", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}}), nullptr, is_fpga));
  const auto got = held_by(bound, *book.view("a"), pod_request(bound, is_fpga));
  EXPECT_EQ(got.origin, source::confirmed);
  ASSERT_THAT(got.holding.grants, SizeIs(2));
  EXPECT_EQ(got.holding.grants[1].card, "a/1");
}

/// The label may change when the pod runs, and says nothing of what was given out then.
TEST(placement, S70_a_label_that_changes_under_a_running_pod_changes_nothing_that_is_booked) {
  const auto host = node("a", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}});
  const auto workload = pod("p", {container("main", {{"aliyun.com/gpu-mem", 12}})});
  const decision made(host, workload);
  ASSERT_THAT(made.held.grants, SizeIs(1));
  auto bound = annotated(workload, made.written);
  bound.node_name = "a";
  for (const auto* label : {"1", "2", "3", "7", "garbage"}) {
    bound.labels = packed({{"aliyun.com/gpu-count", label}});
    quota::ledger anew;
    anew.put(node_of(host, nullptr, is_fpga));
    const auto got = held_by(bound, *anew.view("a"), pod_request(bound, is_fpga));
    EXPECT_EQ(got.origin, source::planned) << label;
    EXPECT_EQ(got.holding, made.held) << label;
  }
  auto foreign = annotated(workload, {{"ALIYUN_COM_GPU_MEM_IDX", "2"}});
  foreign.node_name = "a";
  foreign.labels = packed({{"aliyun.com/gpu-count", "2"}});
  quota::ledger anew;
  anew.put(node_of(host, nullptr, is_fpga));
  const auto got = held_by(foreign, *anew.view("a"), pod_request(foreign, is_fpga));
  ASSERT_THAT(got.holding.grants, SizeIs(1));
  EXPECT_EQ(got.holding.grants[0].card, "a/2");
  EXPECT_EQ(got.holding.grants[0].memory_mib, 12288);
}

TEST(placement, an_init_container_is_told_the_card_where_its_share_is) {
  const auto share_of = [](const std::string& name, const char* key, std::int64_t memory, std::int64_t cores,
                           kube::container::role role) {
    return container(name, {{"nvidia.com/gpualloc", 1}, {key, memory}, {"nvidia.com/gpucores", cores}}, role);
  };
  const auto host = node("a", {}, {{"nvidia.com/gpualloc", 20}},
                         {{"hami.io/node-nvidia-register",
                           "GPU-a0,10,16384,100,NVIDIA-T4,0,true,0,hami-core:"
                           "GPU-a1,10,16384,100,NVIDIA-T4,0,true,0,hami-core:"}});
  const auto position = [&](const kube::pod& pod) {
    const decision made(host, pod);
    const auto list = made.written.at("hami.io/vgpu-devices-to-allocate").get<std::string>();
    const auto init = list.substr(0, list.find(','));
    for (const auto& grant : made.held.grants)
      if (grant.card == init && pod_request(pod, is_fpga).names()[grant.container]->name == "b")
        return std::string("with b");
    return list;
  };
  const auto* mib = "nvidia.com/gpumem";
  EXPECT_EQ(position(pod("p", {share_of("i", mib, 1000, 90, role::init), share_of("a", mib, 9000, 20, role::main),
                               share_of("b", mib, 8000, 90, role::main)})),
            "with b");
  const auto* percent = "nvidia.com/gpumem-percentage";
  EXPECT_EQ(position(pod("q", {share_of("i", percent, 80, 0, role::init), share_of("a", percent, 30, 10, role::main),
                               share_of("b", percent, 80, 10, role::main)})),
            "with b");
}

TEST(placement, an_init_container_that_asks_for_more_is_lent_it_and_each_is_told_its_own) {
  const auto asks_for = [](const std::string& name, std::int64_t mib, std::int64_t cores, kube::container::role role) {
    return container(name, {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", mib}, {"nvidia.com/gpucores", cores}},
                     role);
  };
  const auto workload = pod("p", {asks_for("load", 12000, 10, role::init), asks_for("main", 6000, 40, role::main),
                                  asks_for("side", 3000, 20, role::main)});
  const decision made(node("a", {}, {{"nvidia.com/gpualloc", 10}},
                           {{"hami.io/node-nvidia-register", "GPU-a0,10,16000,100,NVIDIA-T4,0,true,0,hami-core:"}}),
                      workload);
  ASSERT_THAT(made.held.grants, SizeIs(2)) << "12000 and 6000 and 3000 would not fit";
  EXPECT_EQ(made.held.grants[0].memory_mib, 12000);
  EXPECT_EQ(made.held.grants[0].cores, 40);
  EXPECT_EQ(made.written.at("hami.io/vgpu-devices-to-allocate"),
            "GPU-a0,NVIDIA,12000,10:;GPU-a0,NVIDIA,6000,40:;GPU-a0,NVIDIA,3000,20:;");
}

TEST(placement, S49_what_is_written_on_the_pod_counts_whole_or_is_refused) {
  auto workload = share("p", 20, 8);
  const auto limit = [&](std::string_view text) {
    workload.annotations = packed({{"tencent.com/vcuda-core-limit", std::string(text)}});
    const pod_request read(workload, is_fpga);
    return std::ranges::find(read.containers()[0], "tencent.com/vcuda-core-limit", &quota::amount::key)->value;
  };
  EXPECT_EQ(limit("50"), 50);
  for (const auto* text : {"banana", "50 cores", "0", "-5", ""}) EXPECT_EQ(limit(text), quota::not_a_number) << text;
  auto spread = pod("p", {container("main", {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 4}})});
  spread.labels = packed({{"aliyun.com/gpu-count", "2"}});
  EXPECT_THAT(pod_request(spread, is_fpga).containers()[0], SizeIs(2)) << "the container's own limit counts";
}

/// Who may annotate a pod could else end every program that reads placements.
TEST(placement, that_is_nested_as_deep_as_an_annotation_can_be_is_none) {
  const std::string deep = std::string(120'000, '[') + std::string(120'000, ']');
  const std::string rest[] = {R"(,"node":"a","containers":{},"counts":{}})", R"(,"v":1,"containers":{},"counts":{}})",
                              R"(,"v":1,"node":"a","counts":{}})", R"(,"v":1,"node":"a","containers":{}})"};
  const std::string keys[] = {"v", "node", "containers", "counts"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(api::placement_in("{\"" + keys[i] + "\":" + deep + rest[i])) << keys[i];
    EXPECT_FALSE(api::placement_in("{\"" + keys[i] + "\":{\"x\":" + deep + "}" + rest[i])) << keys[i];
  }
  EXPECT_FALSE(api::placement_in(R"({"v":1,"node":"a","containers":{"main":[{"card":)" + deep + "}]}}"));
  EXPECT_TRUE(api::placement_in(R"({"v":1,"node":"a","containers":{},"other":)" + deep + "}")) << "unknown fields";
}

TEST(placement, keys_nobody_declared_are_not_ours) {
  EXPECT_FALSE(asks(pod("p", {container("main", {{"rdma/hca", 1}})}), is_fpga));
  EXPECT_TRUE(asks(pod("p", {container("main", {{"example.com/fpga", 1}})}), is_fpga));
  EXPECT_TRUE(asks(share("p", 1, 1), {}));
}

}  // namespace
}  // namespace extender_test
