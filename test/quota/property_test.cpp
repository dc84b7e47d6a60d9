// Random lives of pods on mixed nodes, the engine against a model that tries everything. QM_QUOTA_OPERATIONS for the
// long form, QM_SEED to repeat one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "quota/filter.hpp"
#include "small_world.hpp"
#include "test/quota/facts.hpp"
#include "test/rounds.hpp"

namespace {

using quota::mode;

/// What a pod holds, in a fixed order.
quota::holding sorted(quota::holding held) {
  std::ranges::sort(held.grants, {}, [](const auto& grant) {
    return std::tuple{std::string_view{grant.card}, grant.container, grant.whole, grant.cores, grant.memory_mib};
  });
  std::ranges::sort(held.counts, {}, &quota::count::key);
  return held;
}

/// Every confirmed entry of `before` is in `after`, and `after` has no other.
void expect_same_entries(const quota::ledger& before, const quota::ledger& after) {
  std::size_t confirmed = 0;
  before.for_each([&](const auto& uid, const auto& entry) {
    if (!entry.confirmed) return;
    ++confirmed;
    const auto* const found = after.find(uid);
    ASSERT_NE(found, nullptr) << uid;
    ASSERT_EQ(sorted(found->held), sorted(entry.held)) << uid;
  });
  ASSERT_EQ(after.size(), confirmed);
}

class life {
 public:
  explicit life(unsigned long seed) : random_(seed) {
    const std::vector<std::set<std::string>> served{
        {"pgpu", "vgpu"},        {"hami"},         {"share"}, {"gpushare", "pgpu"},
        {"vgpu", "mps", "pgpu"}, {"hami", "vgpu"}, {"vgpu"},  {"pgpu"}};
    for (std::size_t i = 0; i < served.size(); ++i) add_node("n" + std::to_string(i), served[i]);
    for (const auto& [name, node] : engine_) ledger_.put(node);
  }

  void step() {
    const int roll = below(100);
    if (roll < 50)
      arrive();
    else if (roll < 65)
      confirm();
    else if (roll < 85)
      leave();
    else if (roll < 94)
      expire();
    else if (roll < 97)
      say_again();
    else if (roll < 99)
      change_a_node();
    else if (below(4) == 0)
      restart();
  }

  void compare() const {
    for (const auto& [name, node] : world_.nodes) compare(name);
    ASSERT_EQ(ledger_.size(), world_.pods.size());
  }

  long fitted = 0, refused = 0, full = 0, followed = 0, chosen = 0, restarts = 0;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned long>(n)); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }

  void add_node(const std::string& name, const std::set<std::string>& serves) {
    auto& node = world_.nodes[name];
    node.modes = serves;
    quota::node_inventory same{.name = name, .serves = {}, .cards = {}, .counts = {}, .placement = {}};
    for (const auto& serve : serves) same.serves.modes |= static_cast<std::uint16_t>(small::modes.at(serve));
    node.plugin_chooses = below(3) > 0;
    same.serves.plugin_chooses = serves.contains("vgpu") && node.plugin_chooses;
    if (below(3) == 0) same.placement = quota::policy::spread;
    node.pool = same.pool = pick({"", "red", "blue"});
    const int cards = 1 + below(serves.contains("vgpu") ? 6 : 4);
    const bool linked = below(2) == 0;
    const auto one_model = pick({0, 1, 2, 3, 4});
    const long equal = pick<long>({2048, 4096, 10000});
    const bool mixed = below(2) == 0;
    for (int i = 0; i < cards; ++i) {
      const long mib = mixed ? pick<long>({1024, 2048, 4096, 10000}) : equal;
      const int seats = pick({1, 2, 3, 16});
      const auto uuid = name + "-" + std::to_string(i);
      const std::vector<std::string> models{"", "Tesla V100-SXM2-16GB", "NVIDIA A100-PCIE-40GB", "Tesla T4"};
      const auto& model = models.at(static_cast<std::size_t>(one_model < 4 ? one_model : below(4)));
      // Where it is switched on, shares may be larger together than the card. gpu-manager knows no such thing.
      const int scale = below(4) == 0 && !serves.contains("vgpu") ? 150 : 100;
      node.cards.push_back({uuid, mib * scale / 100, seats, true, model, {}});
      if (linked) node.cards.back().slot = {below(2), below(2), below(2), below(2)};
      same.cards.push_back({.uuid = uuid, .model = model, .memory_mib = mib, .max_sharers = seats});
      same.cards.back().memory_scale = scale;
    }
    same.links = links_of(node);
    if (below(2) == 0) {
      node.counts["example.com/fpga"] = 3;
      same.counts.push_back({"example.com/fpga", 3});
    }
    engine_[name] = same;
  }

  static std::vector<quota::link> links_of(const brute::node& node) {
    std::vector<quota::link> out;
    for (const auto& a : node.cards)
      for (const auto& b : node.cards) {
        if (a.slot.empty()) return {};
        auto digit = std::ranges::mismatch(a.slot, b.slot).in1 - a.slot.begin();
        out.push_back({.pci = static_cast<quota::path>(1 + digit)});
      }
    return out;
  }

  /// Sometimes a pod minds which cards it gets.
  brute::notes selection() {
    switch (below(12)) {
      case 0:
        return {{"nvidia.com/use-gputype", pick({"v100", "A100, T4", "H100", " ,tesla_t4", ""})}};
      case 1:
        return {{"nvidia.com/nouse-gputype", pick({"v100", "a100,t4", "nvidia", ",", "Tesla"})}};
      case 2:
        return {{pick({"nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"}),
                 pick({"n0-0, n1-0,n2-0,n3-0,n4-0,n5-0,n6-0", "n1-1,n6-0,n6-1", "n5-2"})},
                {"nvidia.com/nouse-gputype", "T4"}};
      case 3:
        return {{pick({"aliyun.accelerator/nvidia_name", "tkestack.io/gpu-model"}), pick({"Tesla-T4", "V100"})},
                {pick({"gaia.tencent.com/gpu-pool", "tkestack.io/gpu-pool"}), pick({"red", "red,blue", "green"})}};
      case 4:
        return {{"aliyun.accelerator/nvidia_count", pick({"1", "2", "3,4"})}};
      default:
        return {};
    }
  }

  brute::request container() {
    switch (below(9)) {
      case 0:
        return {{"nvidia.com/gpu", pick<long>({1, 1, 2, 3, -1, 0})}};
      case 1:
      case 2:
        return {{"tencent.com/vcuda-core", pick<long>({1, 10, 30, 50, 70, 99, 100, 200, 101, 150, 0})},
                {"tencent.com/vcuda-memory", pick<long>({0, 1, 2, 4, 5, 8, 16, 39})},
                {"tencent.com/vcuda-core-limit", pick<long>({0, 0, 0, 50, 100, 200})}};
      case 3:
        return {{"nvidia.com/mps-core", pick<long>({5, 25, 50, 75, 100, 120})},
                {"nvidia.com/mps-memory", pick<long>({0, 1, 2, 4, 9})}};
      case 4:
        return {{pick({"nvidia.com/gpu", "nvidia.com/gpualloc"}), pick<long>({1, 1, 2, 3})},
                {"nvidia.com/gpumem", pick<long>({0, 100, 512, 1024, 2000, 4096, 10001})},
                {"nvidia.com/gpucores", pick<long>({0, 0, 20, 50, 60, 100, 101})}};
      case 5:
        return {{"nvidia.com/gpumem-percentage", pick<long>({0, 25, 33, 50, 100, 101})},
                {"nvidia.com/gpucores", pick<long>({0, 10, 50, 90})},
                {"nvidia.com/priority", pick<long>({0, 1})}};
      case 6:
        return {{pick({"nvidia.com/gpu.shared", "nvidia.com/gpu"}), pick<long>({1, 1, 2, 4})}};
      case 7:
        return {{"aliyun.com/gpu-mem", pick<long>({1, 2, 3, 4, 6, 0})},
                {"aliyun.com/gpu-count", pick<long>({0, 0, 1, 2, 3})},
                {"aliyun.com/gpu-core.percentage", pick<long>({0, 0, 5, 50, 95, 100, 7})}};
      default:
        return {{"example.com/fpga", pick<long>({1, 2})}, {"cpu", 2}};
    }
  }

  void arrive() {
    const auto name = "n" + std::to_string(below(static_cast<int>(world_.nodes.size())));
    const brute::node& node = world_.nodes.at(name);
    std::vector<brute::request> pod;
    // Mostly in words the node knows, so that most tries are about room.
    for (int wanted = 1 + below(3), tries = 0; std::ssize(pod) < wanted && tries < 30; ++tries) {
      auto candidate = container();
      if (below(20) == 0 || brute::understand({candidate}, node.modes)) pod.push_back(std::move(candidate));
    }
    std::vector<std::vector<quota::amount>> amounts;
    for (auto& entry : pod) {
      if (entry.erase("cpu") > 0)
        amounts.push_back({{"cpu", 2}});
      else
        amounts.emplace_back();
      for (const auto& [key, value] : entry) amounts.back().push_back({key, value});
    }
    const std::vector<quota::limits> limits{amounts.begin(), amounts.end()};

    const auto meant = brute::understand(pod, node.modes);
    quota::demand demand;
    const auto no = quota::read(limits, engine_.at(name).serves, demand);
    ASSERT_EQ(no.has_value(), !meant.has_value()) << (no ? facts_of(*no) : "read");
    const auto notes = selection();
    const auto wanted = quota::selector::of(notes);
    EXPECT_EQ(wanted.problem(), "");
    quota::shortfall by_filter;
    const auto view = ledger_.view(name);
    ASSERT_TRUE(view.has_value());
    quota::filter(limits, {&*view, 1}, {&by_filter, 1}, &wanted);
    if (no) {
      ++refused;
      EXPECT_EQ(by_filter.code, quota::reason_of(*no));
      return;
    }
    quota::placement placement;
    const auto policy = pick({quota::policy::binpack, quota::policy::spread});
    const auto result = quota::place(demand, *view, {.default_policy = policy, .only = &wanted}, placement);
    const bool can = world_.fits(name, meant->asks, meant->counts, notes);
    ASSERT_EQ(result.fits(), can) << facts_of(result);
    ASSERT_EQ(by_filter.fits(), can);
    ASSERT_NE(result.code, quota::reason::search_limit);
    if (!can) {
      ++full;
      ASSERT_TRUE(placement.all().empty());
      return;
    }
    ++fitted;
    const auto score = quota::score(placement, *view, policy);
    ASSERT_GE(score, 0);
    ASSERT_LE(score, 10);
    const auto held = quota::holding_of(demand, placement, engine_.at(name));
    brute::pod now{
        .node = name, .pieces = {}, .counts = meant->counts, .confirmed = false, .until = time_ + 1 + below(40)};
    for (const auto& grant : held.grants)
      now.pieces.push_back({grant.container, grant.card, grant.whole, grant.cores, grant.whole ? 0 : grant.memory_mib});
    ASSERT_TRUE(world_.accepts(name, now.pieces, now.counts)) << "the engine would over-commit";
    as_asked(now, meant->asks);
    as_wanted(now, meant->asks, notes);
    const auto uid = "pod-" + std::to_string(++made_);
    ASSERT_EQ(ledger_.assume(uid, held, now.until), quota::booked::done);
    world_.pods[uid] = now;
    compare(name);
  }

  /// Each container has as many pieces as it asked for, of the size it asked for, on different cards where it must.
  static void as_asked(const brute::pod& got, const std::vector<std::optional<brute::ask>>& asks) {
    std::vector<int> copies(asks.size());
    std::set<std::pair<int, std::string>> cards;
    for (const auto& piece : got.pieces) {
      const auto& ask = asks.at(static_cast<std::size_t>(piece.container));
      ASSERT_TRUE(ask.has_value());
      ++copies[static_cast<std::size_t>(piece.container)];
      ASSERT_TRUE(cards.emplace(piece.container, piece.card).second || !ask->apart);
      ASSERT_EQ(piece.whole, ask->whole);
      if (ask->whole) continue;
      ASSERT_EQ(piece.cores, ask->cores);
      if (ask->percent == 0) ASSERT_EQ(piece.mib, ask->mib);
    }
    for (std::size_t i = 0; i < asks.size(); ++i) ASSERT_EQ(copies[i], asks[i] ? asks[i]->copies : 0);
  }

  /// On cards the pod wants, and where a plugin that chooses will say they are.
  void as_wanted(const brute::pod& got, const std::vector<std::optional<brute::ask>>& asks, const brute::notes& notes) {
    const auto& node = world_.nodes.at(got.node);
    std::multiset<std::pair<int, std::string>> there, foretold;
    for (const auto& piece : got.pieces) {
      const auto card = std::ranges::find(node.cards, piece.card, &brute::card::uuid);
      ASSERT_TRUE(card != node.cards.end() && brute::wanted(node, *card, notes));
      const auto& ask = asks.at(static_cast<std::size_t>(piece.container));
      if (ask && ask->foretold && node.plugin_chooses) there.emplace(piece.container, piece.card);
    }
    const auto model = world_.foretold(got.node, asks, notes);
    ASSERT_TRUE(model.has_value());
    for (const auto& entry : *model) foretold.emplace(entry.container, entry.card);
    ASSERT_EQ(there, foretold);
    if (!there.empty()) ++followed;
    if (!notes.empty()) ++chosen;
  }

  auto somebody() {
    auto position = world_.pods.begin();
    std::advance(position, below(static_cast<int>(world_.pods.size())));
    return position;
  }

  void confirm() {
    if (world_.pods.empty()) return;
    const auto position = somebody();
    ASSERT_TRUE(ledger_.confirm(position->first));
    position->second.confirmed = true;
  }

  void leave() {
    ASSERT_FALSE(ledger_.release("nobody"));
    if (world_.pods.empty()) return;
    const auto position = somebody();
    const auto name = position->second.node;
    ASSERT_TRUE(ledger_.release(position->first));
    world_.pods.erase(position);
    compare(name);
  }

  void expire() {
    time_ += 1 + below(20);
    std::vector<std::string> due;
    std::erase_if(world_.pods, [&](const auto& pod) {
      const bool out = !pod.second.confirmed && pod.second.until <= time_;
      if (out) due.push_back(pod.first);
      return out;
    });
    auto gone = ledger_.expire(time_);
    std::ranges::sort(gone);
    ASSERT_EQ(gone, due);
  }

  /// The earlier answer changes nothing, and another holding for the same pod is not taken.
  void say_again() {
    if (world_.pods.empty()) return;
    const auto position = somebody();
    auto held = ledger_.find(position->first)->held;
    const long until = time_ + 1 + below(40);
    ASSERT_EQ(ledger_.assume(position->first, held, until), quota::booked::already);
    if (!position->second.confirmed) position->second.until = std::max(position->second.until, until);
    held.node = "elsewhere";
    ASSERT_EQ(ledger_.assume(position->first, held, until), quota::booked::elsewhere);
    compare(position->second.node);
  }

  void change_a_node() {
    const auto name = "n" + std::to_string(below(static_cast<int>(world_.nodes.size())));
    auto& node = engine_.at(name);
    auto& model = world_.nodes.at(name);
    std::ranges::shuffle(node.cards, random_);
    std::ranges::sort(model.cards, {}, [&](const brute::card& card) {
      return std::ranges::find(node.cards, card.uuid, &quota::card::uuid) - node.cards.begin();
    });
    node.links = links_of(model);
    auto& card = node.cards.front();
    (below(2) == 0 ? card.cordoned : card.healthy) ^= true;
    for (auto& entry : model.cards)
      if (entry.uuid == card.uuid) entry.in_use_allowed = card.usable();
    if (below(4) == 0) ledger_.remove(name);
    ledger_.put(node);
    compare(name);
  }

  /// Only what the API has survives; pods and nodes are listed in any order.
  void restart() {
    std::vector<std::pair<std::string, quota::holding>> known;
    ledger_.for_each([&](const auto& uid, const auto& entry) {
      if (entry.confirmed) known.emplace_back(uid, entry.held);
    });
    std::erase_if(world_.pods, [](const auto& pod) { return !pod.second.confirmed; });
    std::ranges::sort(known, {}, &std::pair<std::string, quota::holding>::first);
    std::ranges::shuffle(known, random_);
    const quota::ledger before{ledger_};
    ledger_ = {};
    const bool nodes_first = below(2) == 0;
    if (nodes_first)
      for (const auto& [name, node] : engine_) ledger_.put(node);
    for (const auto& [uid, held] : known)
      ASSERT_EQ(ledger_.record(uid, held), nodes_first ? quota::booked::done : quota::booked::no_node);
    for (const auto& [name, node] : engine_) ledger_.put(node);
    for (const auto& [uid, held] : known) ASSERT_EQ(ledger_.record(uid, held), quota::booked::already);
    expect_same_entries(before, ledger_);
    ++restarts;
    compare();
  }

  void compare(const std::string& name) const {
    const auto view = ledger_.view(name);
    ASSERT_TRUE(view.has_value());
    for (std::size_t i = 0; i < view->inventory->cards.size(); ++i) {
      quota::card_use want;
      for (const auto& entry : world_.on(view->inventory->cards[i].uuid)) {
        if (entry.whole) {
          ++want.wholes;
          continue;
        }
        ++want.sharers;
        want.cores += entry.cores;
        want.memory_mib += entry.mib;
      }
      ASSERT_EQ(view->used[i], want) << name << " card " << i;
    }
    for (std::size_t i = 0; i < view->inventory->counts.size(); ++i)
      ASSERT_EQ(view->counts_used[i], world_.counted(name, view->inventory->counts[i].key));
    ASSERT_EQ(ledger_.over_given(name), 0U);
  }

  std::mt19937_64 random_;
  brute::world world_;
  std::map<std::string, quota::node_inventory> engine_;
  quota::ledger ledger_;
  long time_ = 0, made_ = 0;
};

TEST(quota_property, S8_S12_S70_no_over_commit_and_no_false_refusal_beside_a_model_that_tries_everything) {
  const long operations = small::number_from("QM_QUOTA_OPERATIONS", test::rounds(20'000, 100'000));
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  long fitted = 0, refused = 0, full = 0, followed = 0, chosen = 0, restarts = 0;
  // Many short lives: each has nodes of its own.
  for (long done = 0, number = 0; done < operations; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", life " + std::to_string(number));
    life life{seed * 1'000'003 + static_cast<unsigned long>(number)};
    for (int i = 0; i < 500 && done < operations; ++i, ++done) {
      life.step();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    life.compare();
    fitted += life.fitted, refused += life.refused, full += life.full;
    followed += life.followed, chosen += life.chosen, restarts += life.restarts;
  }
  // The lives have to be about something: pods that find room, pods that find none, and wrong words.
  if (operations < 10'000) return;
  EXPECT_GT(fitted, operations / 10);
  EXPECT_GT(full, operations / 20);
  EXPECT_GT(refused, operations / 500);
  EXPECT_GT(followed, operations / 80);
  EXPECT_GT(chosen, operations / 100);
  EXPECT_GT(restarts, operations / 2000);
}

}  // namespace
