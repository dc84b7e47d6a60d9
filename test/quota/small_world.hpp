#pragma once
// A few random nodes and pods, in the engine's book and in the model side by side.

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "brute_force.hpp"
#include "quota/place.hpp"

namespace small {

inline long number_from(const char* name, long fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::strtol(text, nullptr, 10);
}

/// The engine's modes by the model's names.
inline const std::map<std::string, quota::mode> modes{
    {"pgpu", quota::mode::pgpu},  {"vgpu", quota::mode::vgpu},   {"mps", quota::mode::mps},
    {"hami", quota::mode::slots}, {"share", quota::mode::share}, {"gpushare", quota::mode::memory_shares}};

using pod = std::vector<brute::request>;

/// Limits of a pod as the engine takes them; valid as long as this is.
struct spoken {
  explicit spoken(const pod& pod) {
    for (const auto& entry : pod) {
      amounts.emplace_back();
      for (const auto& [key, value] : entry) amounts.back().push_back({key, value});
    }
    limits.assign(amounts.begin(), amounts.end());
  }
  std::vector<std::vector<quota::amount>> amounts;
  std::vector<quota::limits> limits;
};

class world {
 public:
  explicit world(unsigned long seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned long>(n)); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }

  void add_node(const std::string& name, const std::set<std::string>& serves, int cards) {
    names.push_back(name);
    auto& node = model.nodes[name];
    node.modes = serves;
    quota::node_inventory same{.name = name, .serves = {}, .cards = {}, .counts = {}, .placement = {}};
    for (const auto& serve : serves) same.serves.modes |= static_cast<std::uint16_t>(modes.at(serve));
    node.plugin_chooses = below(2) == 0;
    same.serves.plugin_chooses = serves.contains("vgpu") && node.plugin_chooses;
    for (int i = 0; i < cards; ++i) {
      quota::card card{.uuid = name + "-" + std::to_string(i),
                       .model = {},
                       .memory_mib = pick<long>({1024, 2048, 4096}),
                       .max_sharers = pick({2, 16, 16})};
      card.cordoned = below(12) == 0;
      node.cards.push_back({card.uuid, card.memory_mib, card.max_sharers, card.usable()});
      same.cards.push_back(card);
    }
    node.counts["example.com/fpga"] = 3;
    same.counts.push_back({"example.com/fpga", 3});
    book.put(same);
  }

  brute::request container() {
    switch (below(6)) {
      case 0:
        return {{"nvidia.com/gpu", pick<long>({1, 2, 3})}};
      case 1:
      case 2:
        return {{"tencent.com/vcuda-core", pick<long>({10, 30, 50, 70, 100, 200})},
                {"tencent.com/vcuda-memory", pick<long>({1, 2, 4, 8})}};
      case 3:
        return {{"nvidia.com/gpumem", pick<long>({256, 512, 1024, 2048})},
                {"nvidia.com/gpucores", pick<long>({0, 20, 50, 60, 100})}};
      case 4:
        return {{"nvidia.com/gpu", pick<long>({1, 2})}, {"nvidia.com/gpumem", pick<long>({256, 1024, 3000})}};
      default:
        return {{"example.com/fpga", pick<long>({1, 2})}};
    }
  }
  /// In words the node knows.
  pod make_pod(const std::string& name, int containers) {
    pod out;
    for (int tries = 0; std::ssize(out) < containers && tries < 40; ++tries)
      if (auto candidate = container(); brute::understand({candidate}, model.nodes.at(name).modes))
        out.push_back(std::move(candidate));
    return out;
  }

  bool fits(const brute::world& world, const pod& pod, const std::string& name) const {
    const auto meant = brute::understand(pod, world.nodes.at(name).modes);
    return meant && world.fits(name, meant->asks, meant->counts);
  }

  static brute::pod told(const quota::holding& holding) {
    brute::pod out{.node = holding.node, .pieces = {}, .counts = {}};
    for (const auto& grant : holding.grants)
      out.pieces.push_back({grant.container, grant.card, grant.whole, grant.cores, grant.whole ? 0 : grant.memory_mib});
    for (const auto& count : holding.counts) out.counts[count.key] += count.amount;
    return out;
  }

  /// Places it where the engine would. False where it does not fit.
  bool run(const std::string& uid, const pod& pod, const std::string& name) {
    const auto view = book.view(name);
    const spoken words{pod};
    quota::demand demand;
    quota::placement placement;
    if (!view || quota::read(words.limits, view->inventory->serves, demand) ||
        !quota::place(demand, *view, pick({quota::policy::binpack, quota::policy::spread}), placement).fits())
      return false;
    const auto held = quota::holding_of(demand, placement, *view->inventory);
    if (book.assume(uid, held, 1) != quota::booked::done) return false;
    model.pods[uid] = told(held);
    return true;
  }

  std::vector<std::string> names;
  brute::world model;
  quota::ledger book;

 private:
  std::mt19937_64 random_;
};

}  // namespace small
