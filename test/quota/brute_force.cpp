#include "brute_force.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <sstream>
#include <tuple>

namespace brute {
namespace {

long at(const request& request, const std::string& key) {
  const auto found = request.find(key);
  return found == request.end() ? 0 : found->second;
}

struct reading {
  bool wrong = false;
  std::optional<ask> demand;
};
const reading refused{true, {}}, none{false, {}};
reading asks(const ask& ask) { return {false, ask}; }

reading tencent(const request& r) {
  const long core = at(r, "tencent.com/vcuda-core"), memory = at(r, "tencent.com/vcuda-memory");
  const long limit = at(r, "tencent.com/vcuda-core-limit");
  if (core <= 0 || memory < 0 || limit < 0) return refused;
  if (core >= 100) {
    if (core % 100 != 0 || (limit != 0 && limit != core)) return refused;
    return asks({.copies = static_cast<int>(core / 100), .whole = true, .foretold = true});
  }
  if (memory == 0 || (limit != 0 && (limit < core || limit > 100))) return refused;
  return asks({.copies = 1, .cores = static_cast<int>(core), .mib = memory * 256, .foretold = true});
}

reading mps(const request& r) {
  const long core = at(r, "nvidia.com/mps-core"), memory = at(r, "nvidia.com/mps-memory");
  if (core <= 0 || memory < 0) return refused;
  if (core >= 100) return core % 100 == 0 ? asks({.copies = static_cast<int>(core / 100), .whole = true}) : refused;
  return memory == 0 ? refused : asks({.copies = 1, .cores = static_cast<int>(core), .mib = memory * 1024});
}

// Defaults of the tests' nodes: one card, all memory, no cores.
reading hami(const request& r) {
  const long slots = at(r, "nvidia.com/gpu"), renamed = at(r, "nvidia.com/gpualloc");
  const long mib = at(r, "nvidia.com/gpumem"), percent = at(r, "nvidia.com/gpumem-percentage");
  const long cores = at(r, "nvidia.com/gpucores"), priority = at(r, "nvidia.com/priority");
  if (slots < 0 || renamed < 0 || mib < 0 || percent < 0 || percent > 100 || cores < 0 || cores > 100) return refused;
  if (priority < 0 || priority > 1 || (slots > 0 && renamed > 0)) return refused;
  if (slots + renamed + mib + percent + cores == 0) return none;
  ask ask{.copies = static_cast<int>(std::max(1L, slots + renamed)), .cores = static_cast<int>(cores)};
  if (mib > 0)
    ask.mib = mib;
  else
    ask.percent = percent > 0 ? static_cast<int>(percent) : 100;
  return asks(ask);
}

reading aliyun(const request& r) {
  const long gib = at(r, "aliyun.com/gpu-mem"), cards = at(r, "aliyun.com/gpu-count");
  const long cores = at(r, "aliyun.com/gpu-core.percentage");
  if (gib <= 0 || cards < 0 || cores < 0 || cores > 100 || cores % 5 != 0) return refused;
  if (cards > 1 && (cores > 0 || gib % cards != 0)) return refused;
  const long count = std::max(1L, cards);
  return asks({.copies = static_cast<int>(count), .cores = static_cast<int>(cores), .mib = gib * 1024 / count});
}

reading whole(long cards) {
  return cards < 0 ? refused : asks({.copies = static_cast<int>(cards), .whole = true, .unsteered = true});
}

reading replicas(const request& r) {
  const long gpus = at(r, "nvidia.com/gpu"), other = at(r, "nvidia.com/gpu.shared");
  if (gpus < 0 || other < 0 || (gpus > 0 && other > 0)) return refused;
  return asks({.copies = static_cast<int>(gpus + other), .apart = false, .unsteered = true});
}

std::string family(const std::string& key, const std::set<std::string>& modes) {
  static const std::set<std::string> of_hami{"nvidia.com/gpualloc", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                                             "nvidia.com/gpucores", "nvidia.com/priority"};
  if (key == "nvidia.com/gpu")
    return modes.contains("pgpu") ? "pgpu" : modes.contains("hami") ? "hami" : modes.contains("share") ? "share" : "?";
  if (key == "nvidia.com/gpu.shared") return "share";
  if (key.starts_with("tencent.com/")) return "vgpu";
  if (key.starts_with("nvidia.com/mps-")) return "mps";
  if (of_hami.contains(key)) return "hami";
  if (key.starts_with("aliyun.com/gpu-")) return "gpushare";
  return "";
}

}  // namespace

std::optional<understood> understand(const std::vector<request>& containers, const std::set<std::string>& modes) {
  understood out;
  for (const request& container : containers) {
    std::string words;
    for (const auto& [key, amount] : container) {
      if (amount == 0) continue;
      const auto mode = family(key, modes);
      if (mode.empty()) {
        if (amount < 0) return {};
        out.counts[key] += amount;
        continue;
      }
      if (!modes.contains(mode) || (!words.empty() && words != mode)) return {};
      words = mode;
    }
    const reading got = words.empty()      ? none
                        : words == "pgpu"  ? whole(at(container, "nvidia.com/gpu"))
                        : words == "vgpu"  ? tencent(container)
                        : words == "mps"   ? mps(container)
                        : words == "hami"  ? hami(container)
                        : words == "share" ? replicas(container)
                                           : aliyun(container);
    if (got.wrong) return {};
    out.asks.push_back(got.demand);
  }
  return out;
}

std::vector<piece> world::on(const std::string& uuid) const {
  std::vector<piece> out;
  for (const auto& [uid, pod] : pods)
    for (const piece& part : pod.pieces)
      if (part.card == uuid) out.push_back(part);
  return out;
}

long world::counted(const std::string& on_node, const std::string& key) const {
  long sum = 0;
  for (const auto& [uid, pod] : pods)
    if (pod.node == on_node) sum += at(pod.counts, key);
  return sum;
}

bool world::sound(const card& card, const std::vector<piece>& there, const std::vector<piece>& joining) const {
  if (joining.empty()) return true;
  if (!card.in_use_allowed) return false;
  long mib = 0, cores = 0, cores_before = 0;
  std::size_t whole_ones = 0, full = 0;
  bool coreless_joins = false;
  for (const piece& piece : there) cores_before += piece.cores;
  for (const auto* list : {&there, &joining})
    for (const piece& piece : *list) {
      whole_ones += piece.whole ? 1 : 0;
      full += !piece.whole && piece.cores == 100 ? 1 : 0;
      mib += piece.mib;
      cores += piece.cores;
    }
  for (const piece& piece : joining) coreless_joins |= !piece.whole && piece.cores == 0;
  const std::size_t all = there.size() + joining.size();
  if (whole_ones > 0) return all == 1;
  if (full > 0 && all > 1) return false;
  if (coreless_joins && cores_before >= 100) return false;
  return mib <= card.mib && cores <= 100 && all <= static_cast<std::size_t>(card.seats);
}

bool world::accepts(const std::string& name, const std::vector<piece>& pieces, const request& counts) const {
  const node& here = nodes.at(name);
  std::size_t known = 0;
  for (const card& card : here.cards) {
    std::vector<piece> joining;
    for (const piece& part : pieces)
      if (part.card == card.uuid) joining.push_back(part);
    known += joining.size();
    if (!sound(card, on(card.uuid), joining)) return false;
  }
  if (known != pieces.size()) return false;
  for (const auto& [key, amount] : counts)
    if (amount > at(here.counts, key) - counted(name, key)) return false;
  return true;
}

namespace {

std::vector<std::string> items(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream input{list};
  for (std::string entry; std::getline(input, entry, ',');) {
    std::string item;
    std::istringstream words{entry};
    for (std::string word; words >> word;) item += (item.empty() ? "" : " ") + word;
    if (!item.empty()) out.push_back(item);
  }
  return out;
}

std::string label_of(std::string text) {
  for (char& entry : text) entry = entry == ' ' || entry == '_' ? '-' : static_cast<char>(std::tolower(entry));
  return text;
}

/// Cards in the order of the node, each with what lies on it; the numbers of those gpu-manager takes.
using table = std::vector<std::pair<card, std::vector<piece>>>;

std::vector<std::size_t> for_share(const table& all, const ask& ask) {
  std::vector<std::tuple<long, long, std::size_t, std::size_t>> sorted;
  std::vector<std::pair<long, long>> left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    long cores = 100, mib = all[i].first.mib;
    for (const piece& piece : all[i].second) {
      cores -= piece.cores;
      mib -= piece.whole ? mib : piece.mib;
    }
    left.emplace_back(std::max(cores, 0L), std::max(mib, 0L));
    sorted.emplace_back(left[i].first, left[i].second / 256, all[i].second.size(), i);
  }
  std::ranges::sort(sorted);
  for (const auto& [cores, units, pieces, i] : sorted)
    if (left[i].first >= ask.cores && left[i].second >= ask.mib) return {i};
  return {};
}

std::size_t apart(const card& a, const card& b) {  // 0: behind one switch
  for (std::size_t i = 0; i < a.slot.size(); ++i)
    if (a.slot[i] != b.slot[i]) return a.slot.size() - i;
  return 0;
}

std::set<std::size_t> around(const table& all, std::size_t card, std::size_t reach) {
  std::set<std::size_t> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (apart(all[card].first, all[i].first) <= reach) out.insert(i);
  return out;
}

std::vector<std::size_t> free_in(const table& all, const std::set<std::size_t>& indexes) {
  std::vector<std::size_t> out;
  for (const auto i : indexes)
    if (all[i].second.empty()) out.push_back(i);
  return out;
}

std::vector<std::size_t> for_wholes(const table& all, std::size_t cards) {
  std::set<std::size_t> indexes;
  for (std::size_t i = 0; i < all.size(); ++i) indexes.insert(i);
  const bool known = std::ranges::none_of(all, [](const auto& entry) { return entry.first.slot.empty(); });
  if (known && cards == 1) {
    for (bool deeper = true; deeper;) {
      deeper = false;
      std::set<std::pair<std::size_t, std::set<std::size_t>>> next;  // how many are free, which they are
      for (const auto i : indexes)
        for (std::size_t reach = 0; reach <= all[i].first.slot.size(); ++reach) {
          const auto group = around(all, i, reach);
          if (group.size() < indexes.size() && group.size() > 1 && !free_in(all, group).empty() &&
              std::ranges::none_of(indexes, [&](std::size_t other) {  // nothing of the tree in between
                for (std::size_t more = 0; more <= all[i].first.slot.size(); ++more) {
                  const auto larger = around(all, other, more);
                  if (larger.size() > group.size() && larger.size() < indexes.size() &&
                      std::ranges::includes(larger, group))
                    return true;
                }
                return false;
              }))
            next.emplace(free_in(all, group).size(), group);
        }
      // Equal ones: the one with the lowest card, which comes first in a set of sets.
      if (!next.empty()) indexes = next.begin()->second, deeper = true;
    }
  } else if (known) {
    std::set<std::tuple<std::size_t, std::size_t, std::set<std::size_t>>> candidates;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t reach = 0; reach <= all[i].first.slot.size(); ++reach) {
        const auto group = around(all, i, reach);
        if (group.size() < 2 || free_in(all, group).size() < cards) continue;
        candidates.emplace(reach, free_in(all, group).size(), group);
        break;
      }
    if (!candidates.empty()) indexes = std::get<2>(*candidates.begin());
  }
  auto out = free_in(all, indexes);
  if (out.size() < cards) return {};
  out.resize(cards);
  return out;
}

}  // namespace

bool wanted(const node& node, const card& card, const notes& notes) {
  const auto one_of = [&](std::initializer_list<const char*> keys, const auto& holds, bool otherwise) {
    std::vector<std::string> all;
    for (const auto* key : keys)
      if (notes.contains(key))
        for (const auto& item : items(notes.at(key))) all.push_back(item);
    return all.empty() ? otherwise : std::ranges::any_of(all, holds);
  };
  const auto model = [&](const std::string& name) {
    return label_of(card.model).find(label_of(name)) != std::string::npos;
  };
  const auto uuid = [&](const std::string& name) { return name == card.uuid; };
  return one_of({"nvidia.com/use-gputype"}, model, true) && !one_of({"nvidia.com/nouse-gputype"}, model, false) &&
         one_of({"nvidia.com/use-gpuuuid"}, uuid, true) && !one_of({"nvidia.com/nouse-gpuuuid"}, uuid, false) &&
         one_of({"aliyun.accelerator/nvidia_name", "gaia.tencent.com/gpu-model", "tkestack.io/gpu-model"}, model,
                true) &&
         one_of(
             {"gaia.tencent.com/gpu-pool", "tkestack.io/gpu-pool"},
             [&](const std::string& name) { return name == node.pool; }, true) &&
         one_of(
             {"aliyun.accelerator/nvidia_count"},
             [&](const std::string& count) { return std::stoul(count) == node.cards.size(); }, true);
}

std::optional<std::vector<piece>> world::foretold(const std::string& name, const std::vector<std::optional<ask>>& all,
                                                  const notes& notes) const {
  const node& here = nodes.at(name);
  table cards;
  for (const card& card : here.cards) cards.emplace_back(card, on(card.uuid));
  std::vector<piece> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i] || !all[i]->foretold || !here.plugin_chooses) continue;
    const auto taken =
        all[i]->whole ? for_wholes(cards, static_cast<std::size_t>(all[i]->copies)) : for_share(cards, *all[i]);
    if (taken.empty()) return {};
    for (const auto entry : taken) {
      auto& [card, there] = cards[entry];
      const piece more{static_cast<int>(i), card.uuid, all[i]->whole, all[i]->whole ? 100 : all[i]->cores,
                       all[i]->whole ? 0 : all[i]->mib};
      if (!wanted(here, card, notes) || !sound(card, there, {more})) return {};
      there.push_back(more);
      out.push_back(more);
    }
  }
  return out;
}

bool world::fits(const std::string& name, const std::vector<std::optional<ask>>& all, const request& counts,
                 const notes& notes) const {
  const node& here = nodes.at(name);
  if (!accepts(name, {}, counts)) return false;
  const auto first = foretold(name, all, notes);
  if (!first) return false;
  const bool picks =
      std::ranges::any_of(all, [](const auto& entry) { return entry && entry->unsteered && entry->copies > 0; });
  for (const card& card : here.cards)
    if (picks && card.in_use_allowed && !wanted(here, card, notes)) return false;
  std::vector<ask> copies;  // one a copy; `copies` of the ask says how many are still to come of the same container
  for (const auto& entry : all)
    for (int i = 0; entry && !(entry->foretold && here.plugin_chooses) && i < entry->copies; ++i) {
      copies.push_back(*entry);
      copies.back().copies = i;
      if (copies.size() > 64) return false;
    }
  std::vector<std::vector<piece>> there(here.cards.size()), joining(here.cards.size());
  for (std::size_t i = 0; i < here.cards.size(); ++i) {
    there[i] = on(here.cards[i].uuid);
    for (const piece& piece : *first)
      if (piece.card == here.cards[i].uuid) there[i].push_back(piece);
  }
  std::vector<std::size_t> chosen(copies.size());
  const auto every = [&](const auto& self, std::size_t index) -> bool {
    if (index == copies.size()) return true;
    const ask& ask = copies[index];
    for (std::size_t i = 0; i < here.cards.size(); ++i) {
      bool taken = false;
      for (int back = 1; ask.apart && back <= ask.copies; ++back)
        taken |= chosen[index - static_cast<std::size_t>(back)] == i;
      if (taken || !wanted(here, here.cards[i], notes)) continue;
      const long mib = ask.percent > 0 ? here.cards[i].mib * ask.percent / 100 : ask.mib;
      joining[i].push_back({0, here.cards[i].uuid, ask.whole, ask.whole ? 100 : ask.cores, ask.whole ? 0 : mib});
      chosen[index] = i;
      const bool found = sound(here.cards[i], there[i], joining[i]) && self(self, index + 1);
      joining[i].pop_back();
      if (found) return true;
    }
    return false;
  };
  return every(every, 0);
}

std::vector<int> together(const std::vector<lying>& cards, const std::vector<std::vector<int>>& near, int wanted) {
  using cost = std::tuple<long, std::size_t, long, long, std::vector<int>>;
  std::optional<cost> best;
  for (unsigned set = 0; set < 1U << cards.size(); ++set) {
    std::vector<int> ints, out;
    for (std::size_t i = 0; i < cards.size(); ++i)
      if (cards[i].free) ((set >> i & 1U) != 0 ? ints : out).push_back(static_cast<int>(i));
    if (std::popcount(set) != wanted || std::ssize(ints) != wanted) continue;
    long inner = 0, mib = 0, across = 0;
    std::set<int> numas;
    for (const int a : ints) {
      numas.insert(cards[static_cast<std::size_t>(a)].numa);
      mib += cards[static_cast<std::size_t>(a)].mib;
      for (const int b : ints)
        if (a < b) inner += near[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
      for (const int b : out) across += near[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    }
    const cost now{-inner, numas.size(), mib, across, ints};
    if (!best || now < *best) best = now;
  }
  return best ? std::get<4>(*best) : std::vector<int>{};
}

}  // namespace brute
