// The named change works, and nothing smaller does: by hand, and by trying every smaller one with the model of
// brute_force.hpp. QM_QUOTA_OPERATIONS for the long form, QM_SEED to repeat one.
#include "quota/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "small_world.hpp"
#include "test/quota/facts.hpp"
#include "test/rounds.hpp"

namespace {

using quota::amount;
using quota::change;
using quota::mode;
using kind = quota::change::kind;
using testing::ElementsAre;

quota::node_inventory with(const char* name, mode mode, std::vector<std::int64_t> memory_mib, int sharers = 16) {
  quota::node_inventory out{.name = name, .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  out.serves.modes = static_cast<std::uint16_t>(mode);
  out.serves.plugin_chooses = mode == quota::mode::vgpu;
  for (std::size_t i = 0; i < memory_mib.size(); ++i)
    out.cards.push_back(
        {.uuid = out.name + "-" + std::to_string(i), .model = {}, .memory_mib = memory_mib[i], .max_sharers = sharers});
  return out;
}

class why : public testing::Test {
 protected:
  void put(const quota::node_inventory& node) {
    names_.push_back(node.name);
    book_.put(node);
  }
  void hold(const char* node, const char* card, std::int32_t cores, std::int64_t mib, bool whole = false) {
    const quota::holding held{
        .node = node, .grants = {{.whole = whole, .cores = cores, .memory_mib = mib, .card = card}}, .counts = {}};
    ASSERT_EQ(book_.assume("pod-" + std::to_string(++made_), held, 1), quota::booked::done);
  }
  const quota::explanation& ask(const std::vector<std::vector<amount>>& pod) {
    nodes_.clear();
    for (const auto& name : names_) nodes_.push_back(book_.view(name).value_or(quota::node_view{}));
    const std::vector<quota::limits> limits{pod.begin(), pod.end()};
    return explanation_ = quota::explain(limits, nodes_);
  }
  std::string text(const std::optional<change>& change) const { return change ? facts_of(*change, nodes_) : "none"; }
  std::string pod_text() const { return text(explanation_.of_pod); }
  std::string node_text() const { return text(explanation_.of_node); }

  static std::vector<amount> share(std::int64_t cores, std::int64_t blocks) {
    return {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", blocks}};
  }
  static std::vector<amount> whole(std::int64_t cards) { return {{"tencent.com/vcuda-core", 100 * cards}}; }

  quota::ledger book_;
  std::vector<std::string> names_;
  std::vector<quota::node_view> nodes_;
  quota::explanation explanation_;
  int made_ = 0;
};

TEST_F(why, counts_are_by_need_and_reason_and_the_smallest_change_has_its_number) {
  put(with("a", mode::vgpu, {8192, 8192}));
  put(with("b", mode::vgpu, {8192}));
  put(with("c", mode::pgpu, {8192}));
  names_.emplace_back("gone");
  hold("a", "a-0", 50, 4096);
  hold("a", "a-1", 50, 4096);
  hold("b", "b-0", 70, 256);
  const std::vector<std::vector<amount>> pod{share(60, 8), share(10, 17)};
  ask(pod);
  EXPECT_THAT(explanation_.causes,
              ElementsAre(quota::cause{quota::reason::cores, 0, {}, 2}, quota::cause{quota::reason::no_node, -1, {}, 1},
                          quota::cause{quota::reason::not_offered, 0, "tencent.com/vcuda-core", 1},
                          quota::cause{quota::reason::memory, 1, {}, 1}));
  EXPECT_EQ(pod_text(), "lower 0 tencent.com/vcuda-core 60 -> 20, b b-0");
  EXPECT_EQ(node_text(), "free_cores 40, b b-0");
  EXPECT_EQ(std::pair(explanation_.fitting, explanation_.nodes), (std::pair<std::size_t, std::size_t>(0, 4)));
  EXPECT_EQ(explanation_.nearest, 1U);
  EXPECT_EQ(explanation_.smallest(), &*explanation_.of_node);
}

TEST_F(why, a_pod_that_fits_somewhere_is_told_of_the_other_nodes_and_no_change) {
  put(with("a", mode::vgpu, {8192}));
  put(with("b", mode::vgpu, {1024}));
  ask({share(10, 8)});
  EXPECT_EQ(std::pair(explanation_.fitting, explanation_.nodes), (std::pair<std::size_t, std::size_t>(1, 2)));
  EXPECT_THAT(explanation_.causes, ElementsAre(quota::cause{quota::reason::memory, 0, {}, 1, 2048, 1024, true}));
  EXPECT_EQ(pod_text() + " " + node_text(), "none none");
  EXPECT_EQ(explanation_.smallest(), nullptr);
}

TEST_F(why, the_smaller_of_two_amounts_is_named_and_the_pods_where_they_are_equal) {
  put(with("a", mode::vgpu, {8192}));
  hold("a", "a-0", 50, 4096);
  ask({share(60, 16)});
  EXPECT_EQ(pod_text(), "lower 0 tencent.com/vcuda-core 60 -> 50, a a-0");
  EXPECT_EQ(explanation_.of_pod->size, 166'667);
  EXPECT_EQ(node_text(), "free_cores 10, a a-0");
  EXPECT_EQ(explanation_.smallest(), &*explanation_.of_node);
  hold("a", "a-0", 50, 0);
  ask({share(100, 1)});
  EXPECT_EQ(pod_text(), "none");
  EXPECT_EQ(node_text(), "empty_card, a a-0");
}

TEST_F(why, amounts_go_down_by_the_steps_of_their_vocabulary) {
  put(with("a", mode::qgpu, {8192}));
  hold("a", "a-0", 38, 0);
  ask({{{"tke.cloud.tencent.com/qgpu-core", 95}, {"tke.cloud.tencent.com/qgpu-memory", 1}}});
  EXPECT_EQ(explanation_.of_pod->amount, 60);
  put(with("b", mode::memory_shares, {4096, 4096, 4096}));
  ask({{{"aliyun.com/gpu-mem", 30}, {"aliyun.com/gpu-count", 3}}});
  EXPECT_EQ(explanation_.of_pod->amount, 12);  // multiples of the count
}

TEST_F(why, an_amount_that_is_refused_goes_to_the_next_on_either_side) {
  put(with("a", mode::vgpu, {8192, 8192}));
  ask({share(170, 1)});
  EXPECT_EQ(pod_text(), "raise 0 tencent.com/vcuda-core 170 -> 200, a");
  ask({share(130, 1)});
  EXPECT_EQ(explanation_.of_pod->amount, 100);
  ask({share(150, 1)});
  EXPECT_EQ(explanation_.of_pod->amount, 100);
  ask({{{"tencent.com/vcuda-core", 300}, {"tencent.com/vcuda-core-limit", 200}}});
  EXPECT_EQ(explanation_.of_pod->amount, 200);
  EXPECT_EQ(explanation_.of_pod->limit, 0U);
}

TEST_F(why, fewer_whole_cards_or_a_share_and_one_card_more_or_put_back) {
  auto node = with("a", mode::vgpu, {8192, 16384});
  node.cards[1].cordoned = true;
  put(node);
  ask({whole(2)});
  EXPECT_EQ(explanation_.of_pod->amount, 100);
  EXPECT_EQ(node_text(), "uncordon_card, a a-1");
  node.cards[1].cordoned = false;
  node.cards[1].healthy = false;
  book_.put(node);
  ask({whole(2)});
  EXPECT_EQ(node_text(), "heal_card, a a-1");
  node.cards[1].healthy = true;
  book_.put(node);
  ask({whole(3)});
  EXPECT_EQ(node_text(), "add_card, a");
  hold("a", "a-0", 0, 1);
  hold("a", "a-1", 0, 1);
  ask({{{"tencent.com/vcuda-core", 100}, {"tencent.com/vcuda-memory", 33}}});
  // A share of 99 cores has its own memory, and there are 63.99 blocks on the larger card.
  EXPECT_EQ(pod_text(), "lower 0 tencent.com/vcuda-core 100 -> 99, a a-1");
}

TEST_F(why, one_card_more_is_no_change_of_a_node_whose_cards_are_all_cut_by_mig) {
  auto node = with("a", mode::vgpu, {8192, 16384});
  node.cards[0].mig = node.cards[1].mig = true;
  put(node);
  ask({whole(3)});
  EXPECT_EQ(node_text(), "none");
  node.cards[0].mig = node.cards[1].mig = false;
  book_.put(node);
  ask({whole(3)});
  EXPECT_EQ(node_text(), "add_card, a");
}

TEST_F(why, a_declared_key_is_explained_without_code) {
  put(with("a", mode::vgpu, {8192}));
  ask({{{"example.com/fpga", 2}}});
  EXPECT_THAT(explanation_.causes, ElementsAre(quota::cause{quota::reason::counted, -1, "example.com/fpga", 1}));
  EXPECT_EQ(pod_text(), "none");
  EXPECT_EQ(node_text(), "free_counted 2 example.com/fpga, a");
  auto node = with("a", mode::vgpu, {8192});
  node.counts = {{"example.com/fpga", 900'000'000}};
  book_.put(node);
  ask({{{"example.com/fpga", 900'000'001}}});
  EXPECT_EQ(explanation_.of_pod->amount, 900'000'000);
}

TEST_F(why, a_share_without_cores_lies_beside_the_last_cores_of_its_own_pod) {
  put(with("a", mode::slots, {8192}));
  hold("a", "a-0", 60, 0);
  ask({{{"nvidia.com/gpumem", 9000}}, {{"nvidia.com/gpumem", 100}, {"nvidia.com/gpucores", 40}}});
  EXPECT_EQ(pod_text(), "lower 0 nvidia.com/gpumem 9000 -> 8092, a a-0");
}

TEST_F(why, less_may_be_worse_where_gpu_manager_would_then_take_a_card_out_of_use) {
  auto node = with("a", mode::vgpu, {65536, 65536});
  put(node);
  hold("a", "a-0", 40, 25600);
  hold("a", "a-1", 70, 0);
  node.cards[1].cordoned = true;
  book_.put(node);
  // With 30 cores or fewer it would take card 1, which has as many left.
  ask({share(80, 1)});
  EXPECT_EQ(explanation_.of_pod->amount, 60);
  // Card 1 has fewer cores left, and all its memory: with 10 cores no amount of memory is small enough.
  ask({share(10, 200)});
  EXPECT_EQ(pod_text(), "none");
  ask({share(40, 200)});
  EXPECT_EQ(explanation_.of_pod->amount, 156);
}

TEST_F(why, bytes_of_a_key_that_counts_MiB_come_to_what_they_are_in_it) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  put(with("a", mode::slots, {16384}));
  ask({{{"nvidia.com/gpumem", 4 * gib}}});
  EXPECT_EQ(pod_text(), "lower 0 nvidia.com/gpumem 4294967296 -> 4096, a a-0") << "and not to all of the card";
  ask({{{"nvidia.com/gpumem", 40 * gib}}});
  EXPECT_EQ(pod_text(), "lower 0 nvidia.com/gpumem 42949672960 -> 16384, a a-0") << "no card has what was meant";
}

TEST_F(why, amounts_beyond_every_card_end_at_what_there_is) {
  put(with("a", mode::slots, {81'920}));
  hold("a", "a-0", 0, 1'920);
  ask({{{"nvidia.com/gpumem", 50'000'000}}});
  EXPECT_EQ(explanation_.of_pod->amount, 80'000);
  EXPECT_EQ(node_text(), "none");
  ask({{{"nvidia.com/gpumem", 1'000'000'000}}});
  EXPECT_EQ(explanation_.of_pod->amount, 954) << "so many bytes";
  ask({{{"nvidia.com/gpumem", INT64_MAX}}});
  EXPECT_EQ(explanation_.of_pod->amount, 80'000);
  ask({{{"nvidia.com/gpumem", INT64_MIN}, {"nvidia.com/gpu", -1}}});
  ASSERT_EQ(explanation_.causes.size(), 1U);
  EXPECT_EQ(explanation_.causes[0].code, quota::reason::refused);
  ASSERT_TRUE(explanation_.causes[0].refused);
  EXPECT_EQ(explanation_.causes[0].refused->key, "nvidia.com/gpumem");
  EXPECT_EQ(explanation_.smallest(), nullptr);
}

TEST_F(why, a_node_that_would_not_do_when_empty_is_too_small_and_the_largest_is_named) {
  put(with("a", mode::vgpu, {8192, 8192, 8192, 8192}));
  put(with("b", mode::vgpu, {8192, 16384}));
  hold("a", "a-0", 50, 4096);
  ask({whole(4)});
  EXPECT_THAT(explanation_.causes, ElementsAre(quota::cause{quota::reason::whole_cards, 0, {}, 1},
                                               quota::cause{quota::reason::whole_cards, 0, {}, 1, 4, 2, true}))
      << "a has enough, and they are taken";
  ask({whole(9)});
  EXPECT_THAT(explanation_.causes, ElementsAre(quota::cause{quota::reason::whole_cards, 0, {}, 2, 9, 4, true}));
  ask({share(10, 100)});
  EXPECT_THAT(explanation_.causes, ElementsAre(quota::cause{quota::reason::memory, 0, {}, 2, 25'600, 16'384, true}));
  ask({whole(2), whole(3)});
  EXPECT_THAT(explanation_.causes, testing::Contains(testing::Field(&quota::cause::container, -1)));
  for (const auto& cause : explanation_.causes) EXPECT_TRUE(cause.too_small) << "four cards, and five are asked for";
  auto sick = with("b", mode::vgpu, {8192, 16384});
  sick.cards[0].healthy = false;
  sick.cards[1].cordoned = true;
  book_.put(sick);
  ask({whole(2)});
  for (const auto& cause : explanation_.causes) EXPECT_FALSE(cause.too_small) << "its cards are out of use for now";
}

// ---- every smaller change, tried
// ---------------------------------------------------------------------------------------

/// The order of the header, written once more.
long rounded_up(long part, long total) { return part * 1'000'000 / total + (part * 1'000'000 % total != 0 ? 1 : 0); }
using pod_order = std::tuple<long, std::size_t, std::size_t, long, long, std::size_t>;
using node_order = std::tuple<long, kind, std::size_t, std::size_t>;

class scene {
 public:
  explicit scene(unsigned long seed) : random_(seed) {
    const std::vector<std::set<std::string>> served{
        {"pgpu", "vgpu"}, {"hami"}, {"share"}, {"gpushare", "pgpu"}, {"vgpu", "mps", "pgpu"}, {"hami", "vgpu"}};
    const int nodes = 1 + below(2);
    for (int i = 0; i < nodes; ++i)
      add_node("n" + std::to_string(i), served[static_cast<std::size_t>(below(static_cast<int>(served.size())))]);
    for (int i = below(8); i > 0; --i) fill();
  }

  void judge() {
    const auto pod = make_pod(names_[static_cast<std::size_t>(below(static_cast<int>(names_.size())))]);
    if (pod.empty()) return;
    const auto amounts = amounts_of(pod);
    const std::vector<quota::limits> limits{amounts.begin(), amounts.end()};
    const auto book = book_of(world_, engine_);
    std::vector<quota::node_view> nodes;
    for (const auto& name : names_) nodes.push_back(book.view(name).value_or(quota::node_view{}));
    selects();
    const auto wanted = quota::selector::of(notes_);
    const auto explanation = quota::explain(limits, nodes, &wanted);
    std::size_t fitting = 0;
    for (const auto& name : names_) fitting += fits(world_, pod, name) ? 1 : 0;
    std::string context;
    for (const auto& [key, value] : notes_) context += "; " + key + "=" + value;
    ASSERT_EQ(explanation.fitting, fitting) << api::words_of(explanation, nodes, {}, text::language::en) << context;
    counts_hold(explanation, pod);
    if (fitting > 0) {
      ASSERT_EQ(explanation.smallest(), nullptr);
      return;
    }
    ++tried;
    const auto text = api::words_of(explanation, nodes, {}, text::language::en);
    SCOPED_TRACE(text);
    pods_change(explanation.of_pod, pod, limits);
    nodes_change(explanation.of_node, pod, limits);
    if (explanation.smallest() != nullptr) {
      ASSERT_EQ(*explanation.nearest, explanation.smallest()->node);
      ++(explanation.smallest() == &*explanation.of_node ? of_nodes : of_pods);
    }
  }

  long tried = 0, of_pods = 0, of_nodes = 0;
  std::map<kind, long> kinds;

 private:
  using pod = std::vector<brute::request>;

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned long>(n)); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }

  void add_node(const std::string& name, const std::set<std::string>& serves) {
    names_.push_back(name);
    auto& node = world_.nodes[name];
    node.modes = serves;
    quota::node_inventory same{.name = name, .serves = {}, .cards = {}, .counts = {}, .placement = {}};
    for (const auto& serve : serves) same.serves.modes |= static_cast<std::uint16_t>(small::modes.at(serve));
    node.plugin_chooses = below(2) == 0;
    same.serves.plugin_chooses = serves.contains("vgpu") && node.plugin_chooses;
    for (int i = 1 + below(3); i > 0; --i) {
      quota::card card{.uuid = name + "-" + std::to_string(i),
                       .model = pick({"Tesla T4", "A100"}),
                       .memory_mib = pick<long>({1024, 1536, 2048}),
                       .max_sharers = pick({1, 2, 16, 16})};
      card.cordoned = below(8) == 0;
      card.healthy = below(8) != 0;
      card.mig = below(16) == 0;
      node.cards.push_back({card.uuid, card.memory_mib, card.max_sharers, card.usable(), card.model});
      same.cards.push_back(card);
    }
    if (below(2) == 0) {
      node.counts["example.com/fpga"] = 2;
      same.counts.push_back({"example.com/fpga", 2});
    }
    engine_[name] = same;
  }

  brute::request container() {
    switch (below(9)) {
      case 7:  // cores are what is short
        if (below(2) == 0) return {{"nvidia.com/gpumem", 100}, {"nvidia.com/gpucores", pick<long>({20, 40, 45, 60})}};
        return {{"tencent.com/vcuda-core", pick<long>({20, 40, 45, 60})}, {"tencent.com/vcuda-memory", 1}};
      case 0:
        return {{"nvidia.com/gpu", pick<long>({1, 2, 3, 4})}};
      case 1:
      case 2:
        return {{"tencent.com/vcuda-core", pick<long>({10, 30, 50, 70, 99, 100, 200, 300, 130, 170})},
                {"tencent.com/vcuda-memory", pick<long>({0, 1, 1, 1, 2, 4, 5, 8, 12})},
                {"tencent.com/vcuda-core-limit", pick<long>({0, 0, 0, 50, 100, 200, 150})}};
      case 3:
        return {{"nvidia.com/mps-core", pick<long>({5, 25, 50, 75, 100, 120})},
                {"nvidia.com/mps-memory", pick<long>({0, 1, 2, 4})}};
      case 4:
        return {{pick({"nvidia.com/gpu", "nvidia.com/gpualloc"}), pick<long>({1, 1, 2, 3})},
                {"nvidia.com/gpumem", pick<long>({0, 100, 100, 512, 1024, 1500, 2049})},
                {"nvidia.com/gpucores", pick<long>({0, 0, 20, 50, 60, 100, 101})}};
      case 5:
        return {{"nvidia.com/gpumem-percentage", pick<long>({0, 25, 33, 50, 100, 101})},
                {"nvidia.com/gpucores", pick<long>({0, 10, 50, 90})},
                {"nvidia.com/priority", pick<long>({0, 1, 2})}};
      case 6:
        return {{"aliyun.com/gpu-mem", pick<long>({1, 2, 3, 4, 6, 9})},
                {"aliyun.com/gpu-count", pick<long>({0, 0, 1, 2, 3, 4})},
                {"aliyun.com/gpu-core.percentage", pick<long>({0, 0, 5, 50, 95, 100, 7})}};
      default:
        return {{"example.com/fpga", pick<long>({1, 2, 3})}};
    }
  }

  void selects() {
    notes_.clear();
    if (below(6) == 0)
      notes_[pick({"nvidia.com/use-gputype", "nvidia.com/nouse-gputype"})] = pick({"t4", "A100"});
    else if (below(8) == 0)
      notes_[pick({"nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"})] = pick({"n0-1,n1-1", "n0-1,n0-2,n1-2", "x"});
  }

  /// Mostly in words the node knows.
  pod make_pod(const std::string& name) {
    pod out;
    for (int wanted = 1 + below(3), tries = 0; std::ssize(out) < wanted && tries < 30; ++tries) {
      auto candidate = container();
      if (below(12) == 0 || brute::understand({candidate}, world_.nodes.at(name).modes))
        out.push_back(std::move(candidate));
    }
    return out;
  }

  static std::vector<std::vector<amount>> amounts_of(const pod& pod) {
    std::vector<std::vector<amount>> out;
    for (const auto& entry : pod) {
      out.emplace_back();
      for (const auto& [key, value] : entry) out.back().push_back({key, value});
    }
    return out;
  }

  static quota::ledger book_of(const brute::world& world, const std::map<std::string, quota::node_inventory>& nodes) {
    quota::ledger out;
    for (const auto& [name, node] : nodes) out.put(node);
    for (const auto& [uid, pod] : world.pods) {
      quota::holding held{.node = pod.node, .grants = {}, .counts = {}};
      for (const auto& part : pod.pieces)
        held.grants.push_back({.whole = part.whole, .cores = part.cores, .memory_mib = part.mib, .card = part.card});
      for (const auto& [key, value] : pod.counts) held.counts.push_back({key, value});
      out.record(uid, held);
    }
    return out;
  }

  void fill() {
    const auto name = names_[static_cast<std::size_t>(below(static_cast<int>(names_.size())))];
    const pod pod = make_pod(name);
    const auto amounts = amounts_of(pod);
    const std::vector<quota::limits> limits{amounts.begin(), amounts.end()};
    const auto book = book_of(world_, engine_);
    const auto view = book.view(name);
    quota::demand demand;
    quota::placement placement;
    ASSERT_TRUE(view.has_value());
    if (quota::read(limits, view->inventory->serves, demand) ||
        !quota::place(demand, *view, pick({quota::policy::binpack, quota::policy::spread}), placement).fits())
      return;
    auto& now = world_.pods["pod-" + std::to_string(world_.pods.size())];
    now.node = name;
    for (const auto& count : demand.counts()) now.counts[std::string{count.key}] = count.amount;
    for (const auto& entry : placement.all())
      now.pieces.push_back({entry.container, view->inventory->cards[entry.card].uuid, entry.whole, entry.cores,
                            entry.whole ? 0 : entry.memory_mib});
  }

  bool fits(const brute::world& world, const pod& pod, const std::string& name) const {
    const auto meant = brute::understand(pod, world.nodes.at(name).modes);
    return meant && world.fits(name, meant->asks, meant->counts, notes_);
  }

  /// The book says so too.
  void really(const brute::world& world, const std::map<std::string, quota::node_inventory>& nodes, const pod& pod,
              const std::string& name) const {
    ASSERT_TRUE(fits(world, pod, name));
    auto book = book_of(world, nodes);
    const auto view = book.view(name);
    const auto amounts = amounts_of(pod);
    const std::vector<quota::limits> limits{amounts.begin(), amounts.end()};
    const auto wanted = quota::selector::of(notes_);
    quota::demand demand;
    quota::placement placement;
    ASSERT_TRUE(view.has_value());
    ASSERT_FALSE(quota::read(limits, view->inventory->serves, demand));
    ASSERT_TRUE(
        quota::place(demand, *view, {.default_policy = quota::policy::spread, .only = &wanted}, placement).fits());
    ASSERT_EQ(book.assume("this", quota::holding_of(demand, placement, *view->inventory), 1), quota::booked::done);
  }

  /// Each need alone, on each node, counted by the model.
  void counts_hold(const quota::explanation& explanation, const pod& pod) const {
    std::map<int, std::size_t> failing;
    std::size_t refused = 0, keys = 0, together = 0;
    for (const auto& name : names_) {
      const auto meant = brute::understand(pod, world_.nodes.at(name).modes);
      if (!meant) {
        ++refused;
        continue;
      }
      if (fits(world_, pod, name)) continue;
      bool any = false;
      for (std::size_t i = 0; i < meant->asks.size(); ++i)
        if (!world_.fits(name, {meant->asks[i]}, {}, notes_)) ++failing[static_cast<int>(i)], any = true;
      for (const auto& [key, value] : meant->counts)
        if (!world_.fits(name, {}, {{key, value}})) ++keys, any = true;
      if (!any) ++together;
    }
    std::map<int, std::size_t> got;
    for (const auto& cause : explanation.causes) {
      ASSERT_GT(cause.nodes, 0U);
      if (cause.code == quota::reason::refused || cause.code == quota::reason::not_offered)
        refused -= cause.nodes;
      else if (cause.code == quota::reason::counted)
        keys -= cause.nodes;
      else if (cause.container < 0)
        together -= cause.nodes;
      else
        got[cause.container] += cause.nodes;
    }
    ASSERT_EQ(refused + together + keys, 0U);
    ASSERT_EQ(got, failing);
  }

  void pods_change(const std::optional<change>& named, const pod& original, const std::vector<quota::limits>& limits) {
    pod_order bound{LONG_MAX, 0, 0, 0, 0, 0};
    if (named) {
      ++kinds[named->action];
      ASSERT_EQ(named->action, kind::amount);
      pod changed = original;
      long& value = changed.at(named->container).at(std::string{named->key});
      ASSERT_EQ(value, named->current);
      value = named->amount;
      ASSERT_GT(named->amount, 0);
      ASSERT_EQ(named->size, rounded_up(std::labs(named->current - named->amount), named->current));
      really(world_, engine_, changed, names_.at(named->node));
      bound = {named->size,   named->container, named->limit, std::labs(named->current - named->amount),
               named->amount, named->node};
    }
    for (std::size_t c = 0; c < original.size(); ++c) {
      std::size_t limit = 0;
      for (const auto& [key, current] : original[c]) {
        for (std::size_t n = 0; n < names_.size() && current > 0; ++n) {
          const auto smaller = [&](long target) {
            const long difference = std::labs(current - target);
            return pod_order{rounded_up(difference, current), c, limit, difference, target, n} < bound;
          };
          pod changed = original;
          long& target = changed[c][key];
          for (target = current - 1; target > 0 && smaller(target); --target)
            ASSERT_FALSE(fits(world_, changed, names_[n])) << key << " " << target << " is smaller";
          quota::demand unused;
          const auto no = quota::read(limits, engine_.at(names_[n]).serves, unused);
          if (!no || no->kind != quota::wrong::not_legal || no->key != key || no->container != c) continue;
          for (target = current + 1; target <= 2 * current + 200; ++target)
            if (brute::understand(changed, world_.nodes.at(names_[n]).modes)) break;
          if (smaller(target)) ASSERT_FALSE(fits(world_, changed, names_[n])) << key << " " << target << " is smaller";
        }
        ++limit;
      }
    }
  }

  /// One less of what is in use on the card. False where nothing is.
  static bool take_one(brute::world& world, const std::string& uuid, bool cores) {
    for (auto& [uid, pod] : world.pods)
      for (auto& part : pod.pieces) {
        if (part.card != uuid || part.whole || (cores ? part.cores : part.mib) == 0) continue;
        if (cores)
          --part.cores;
        else
          --part.mib;
        return true;
      }
    return false;
  }
  static void empty(brute::world& world, const std::string& uuid) {
    for (auto& [uid, pod] : world.pods) std::erase_if(pod.pieces, [&](const auto& part) { return part.card == uuid; });
  }

  /// The same change to the model and to the node the engine sees. False where it means nothing there.
  static bool apply(kind action, const std::string& name, std::size_t card, brute::world& world,
                    quota::node_inventory& node) {
    auto& cards = world.nodes.at(name).cards;
    if (action == kind::add_card) {
      auto more = *std::ranges::max_element(cards, {}, &brute::card::mib);
      more.uuid = "new";
      more.in_use_allowed = true;
      cards.push_back(more);
      node.cards.push_back({.uuid = "new", .model = more.model, .memory_mib = more.mib, .max_sharers = more.seats});
      return true;
    }
    auto& target = node.cards.at(card);
    if (action == kind::empty_card) {
      const bool something = !world.on(target.uuid).empty();
      empty(world, target.uuid);
      return target.usable() && something;
    }
    if (target.mig ||
        (action == kind::heal_card ? target.healthy || target.cordoned : !target.healthy || !target.cordoned))
      return false;
    target.healthy = true;
    target.cordoned = false;
    return cards.at(card).in_use_allowed = true;
  }

  void nodes_change(const std::optional<change>& named, const pod& pod, const std::vector<quota::limits>&) {
    node_order bound{LONG_MAX, {}, 0, 0};
    if (named) {
      ++kinds[named->action];
      bound = {named->size, named->action, named->node, named->card.value_or(0)};
      auto world = world_;
      auto nodes = engine_;
      const auto& name = names_.at(named->node);
      auto& node = nodes.at(name);
      long size = 1'000'000;
      if (named->action == kind::free_counted) {
        const std::string key{named->key};
        const auto meant = brute::understand(pod, world.nodes.at(name).modes);
        world.nodes.at(name).counts[key] += named->amount;
        if (node.counts.empty()) node.counts.push_back({key, 0});
        node.counts.front().amount += named->amount;
        size = rounded_up(named->amount, meant->counts.at(key));
      } else if (named->action == kind::free_cores || named->action == kind::free_memory) {
        const bool cores = named->action == kind::free_cores;
        const auto& card = node.cards.at(named->card.value_or(99));
        for (long i = 0; i < named->amount; ++i) ASSERT_TRUE(take_one(world, card.uuid, cores));
        size = rounded_up(named->amount, cores ? 100 : card.memory_mib);
      } else {
        ASSERT_TRUE(apply(named->action, name, named->card.value_or(0), world, node));
      }
      ASSERT_EQ(named->size, size);
      really(world, nodes, pod, name);
    }
    for (std::size_t n = 0; n < names_.size(); ++n) {
      const auto& name = names_[n];
      const auto meant = brute::understand(pod, world_.nodes.at(name).modes);
      if (!meant) continue;
      const auto& cards = engine_.at(name).cards;
      for (std::size_t c = 0; c < cards.size(); ++c) {
        for (const auto entry : {kind::free_cores, kind::free_memory}) {
          auto world = world_;
          const bool cores = entry == kind::free_cores;
          for (long i = 1; take_one(world, cards[c].uuid, cores); ++i) {
            if (node_order{rounded_up(i, cores ? 100 : cards[c].memory_mib), entry, n, c} >= bound) break;
            ASSERT_FALSE(world.fits(name, meant->asks, meant->counts, notes_)) << i << " of " << cards[c].uuid;
          }
        }
        for (const auto entry : {kind::uncordon_card, kind::heal_card, kind::empty_card}) {
          auto world = world_;
          auto node = engine_.at(name);
          if (node_order{1'000'000, entry, n, c} >= bound || !apply(entry, name, c, world, node)) continue;
          ASSERT_FALSE(world.fits(name, meant->asks, meant->counts, notes_))
              << static_cast<int>(entry) << cards[c].uuid;
        }
      }
      const bool is_all_cut = std::ranges::all_of(cards, &quota::card::mig);  // one more would be cut, too
      if (!is_all_cut && node_order{1'000'000, kind::add_card, n, 0} < bound) {
        auto world = world_;
        auto node = engine_.at(name);
        apply(kind::add_card, name, 0, world, node);
        ASSERT_FALSE(world.fits(name, meant->asks, meant->counts, notes_)) << "one more card";
      }
      for (const auto& [key, value] : meant->counts) {
        auto world = world_;
        for (long i = 1; i <= 20 && node_order{rounded_up(i, value), kind::free_counted, n, 0} < bound; ++i) {
          ++world.nodes.at(name).counts[key];
          ASSERT_FALSE(world.fits(name, meant->asks, meant->counts, notes_)) << i << " " << key;
        }
      }
    }
  }

  std::mt19937_64 random_;
  brute::world world_;
  std::map<std::string, quota::node_inventory> engine_;
  std::vector<std::string> names_;
  brute::notes notes_;
};

TEST(explain_property, the_named_change_works_and_nothing_smaller_does) {
  const long scenes = small::number_from("QM_QUOTA_OPERATIONS", test::rounds(20'000, 100'000)) / 100;
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  long tried = 0, of_pods = 0, of_nodes = 0;
  std::map<kind, long> kinds;
  for (long number = 0; number < scenes; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", scene " + std::to_string(number));
    scene scene{seed * 1'000'003 + static_cast<unsigned long>(number)};
    for (int i = 0; i < 2; ++i) {
      scene.judge();
      if (testing::Test::HasFatalFailure()) return;
    }
    tried += scene.tried, of_pods += scene.of_pods, of_nodes += scene.of_nodes;
    for (const auto& [kind, often] : scene.kinds) kinds[kind] += often;
  }
  // The scenes have to be about something.
  if (scenes < 100) return;
  EXPECT_GT(tried, scenes / 2);
  EXPECT_GT(of_pods, scenes / 5);
  EXPECT_GT(of_nodes, scenes / 20);
  if (scenes < 1000) return;
  for (const auto entry : {kind::amount, kind::free_cores, kind::free_memory, kind::free_counted, kind::uncordon_card,
                           kind::heal_card, kind::empty_card, kind::add_card})
    EXPECT_GT(kinds[entry], 2) << static_cast<int>(entry);
}

}  // namespace
