// Which cards the engine gives on public machines: from the report of an agent (test/golden/cards) to the set of cards
// and its score, for each number of cards, on an empty node and after some cards are taken. The stored answers are in
// test/golden/topology; QM_GOLDEN=write writes what differs. A second model, which shares no code with the engine and
// tries every set, has to agree.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "quota/filter.hpp"
#include "quota/topology.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using cards = std::vector<std::size_t>;

/// The machine as a report has it, read here for a second time.
struct machine {
  json reported;

  explicit machine(const std::string& name)
      : reported(json::parse(std::ifstream(std::string(TEST_DATA) + "/golden/cards/" + name + ".json"))["cards"]) {}
  std::size_t size() const { return reported.size(); }

  /// NVIDIA's points for a link as `nvidia-smi topo -m` writes it: 100 for each NVLink, and 10 to 50 for the way over
  /// PCI. Source: github.com/NVIDIA/go-gpuallocator, gpuallocator/besteffort_policy.go, calculateGPUPairScore
  long between(std::size_t a, std::size_t b) const {
    static const std::map<std::string, long> ways = {{"SYS", 10}, {"NODE", 20}, {"PHB", 30}, {"PXB", 40}, {"PIX", 50}};
    std::istringstream words(reported[a]["links"][b].get<std::string>());
    long out = 0;
    for (std::string word; words >> word;)
      out += word.starts_with("NV") ? 100 * std::stol(word.substr(2)) : word == "X" ? 0 : ways.at(word);
    return out;
  }
  long score(const cards& set) const {
    long out = 0;
    for (const auto a : set)
      for (const auto b : set)
        if (a < b) out += between(a, b);
    return out;
  }
  /// What goes before what: the score, fewer NUMA nodes, less memory, fewer links cut, the first in order.
  auto rank(const cards& set, const cards& free) const {
    std::set<int> numas;
    long memory = 0, cut = 0;
    for (const auto card : set) {
      numas.insert(reported[card].value("numa", -1));
      memory += reported[card].value("memoryMiB", 0L);
      for (const auto other : free)
        if (std::ranges::find(set, other) == set.end()) cut += between(card, other);
    }
    return std::tuple(-score(set), numas.size(), memory, cut, set);
  }
  /// Every set there is.
  cards best(const cards& free, std::size_t wanted) const {
    std::optional<cards> out;
    for (unsigned mask = 0; mask < 1U << free.size(); ++mask) {
      cards set;
      for (std::size_t i = 0; i < free.size(); ++i)
        if ((mask & 1U << i) != 0) set.push_back(free[i]);
      if (set.size() == wanted && (!out || rank(set, free) < rank(*out, free))) out = set;
    }
    return out.value_or(cards());
  }
};

std::string listed(const cards& set) {
  std::string out;
  for (const auto card : set) out += (out.empty() ? "" : " ") + std::to_string(card);
  return out.empty() ? "none" : out;
}

class machines : public testing::TestWithParam<const char*> {};

TEST_P(machines, S9_S90_give_the_stored_set_for_every_number_of_cards) {
  const machine machine(GetParam());
  const auto size = machine.size();
  const auto inventory = reconcilers::extender::node_of(
      node("n", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", static_cast<std::int64_t>(size)}}), nullptr,
      {}, reported("n", machine.reported).cards);
  ASSERT_EQ(inventory.cards.size(), size);
  std::string text;
  for (const cards& taken : {cards{}, cards{0}, cards{0, 4}, cards{1, 2, 5}, cards{0, 1, 2, 3}, cards{3, 4, 7}}) {
    if (std::ranges::any_of(taken, [size](std::size_t card) { return card >= size; })) continue;
    quota::ledger book;
    book.put(inventory);
    cards free;
    for (std::size_t card = 0; card < size; ++card) {
      if (std::ranges::find(taken, card) == taken.end()) {
        free.push_back(card);
        continue;
      }
      const quota::holding held{
          .node = "n", .grants = {{.whole = true, .card = inventory.cards[card].uuid}}, .counts = {}};
      ASSERT_EQ(book.assume("p" + std::to_string(card), held, 1), quota::booked::done);
    }
    text += "taken: " + listed(taken) + "\n";
    for (std::size_t wanted = 1; wanted <= free.size(); ++wanted) {
      const std::vector<quota::amount> amounts{{"nvidia.com/gpu", static_cast<std::int64_t>(wanted)}};
      const std::vector<quota::limits> pod{amounts};
      quota::demand demand;
      quota::placement placement;
      ASSERT_FALSE(quota::read(pod, inventory.serves, demand));
      ASSERT_TRUE(quota::place(demand, *book.view("n"), quota::policy::binpack, placement).fits());
      cards chosen;
      for (const auto& part : placement.all()) chosen.push_back(part.card);
      std::ranges::sort(chosen);
      EXPECT_EQ(chosen, machine.best(free, wanted)) << wanted << " of " << listed(free);
      text += "  " + std::to_string(wanted) + ": cards " + listed(chosen) + ", score " +
              std::to_string(machine.score(chosen)) + "\n";
    }
  }
  const auto path = std::string(TEST_DATA) + "/golden/topology/" + GetParam() + ".txt";
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(path) << text;
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

TEST_P(machines, S90_score_every_pair_as_the_report_has_it) {
  const machine machine(GetParam());
  const auto size = machine.size();
  const auto inventory = reconcilers::extender::node_of(
      node("n", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", static_cast<std::int64_t>(size)}}), nullptr,
      {}, reported("n", machine.reported).cards);
  ASSERT_EQ(inventory.links.size(), size * size);
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < size; ++b)
      EXPECT_EQ(quota::quality(inventory.between(a, b)), machine.between(a, b)) << a << " " << b;
}

INSTANTIATE_TEST_SUITE_P(public_matrices, machines, testing::Values("a100x8", "h100x8", "l40s", "t4_pair"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace extender_test
