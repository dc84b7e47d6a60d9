#include "brute_force.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <sstream>
#include <tuple>

namespace brute {
namespace {

long at(const request& of, const std::string& key) {
  const auto found = of.find(key);
  return found == of.end() ? 0 : found->second;
}

struct reading {
  bool wrong = false;
  std::optional<ask> what;
};
const reading refused{true, {}}, none{false, {}};
reading asks(const ask& what) { return {false, what}; }

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
  ask what{.copies = static_cast<int>(std::max(1L, slots + renamed)), .cores = static_cast<int>(cores)};
  if (mib > 0)
    what.mib = mib;
  else
    what.percent = percent > 0 ? static_cast<int>(percent) : 100;
  return asks(what);
}

reading aliyun(const request& r) {
  const long gib = at(r, "aliyun.com/gpu-mem"), cards = at(r, "aliyun.com/gpu-count");
  const long cores = at(r, "aliyun.com/gpu-core.percentage");
  if (gib <= 0 || cards < 0 || cores < 0 || cores > 100 || cores % 5 != 0) return refused;
  if (cards > 1 && (cores > 0 || gib % cards != 0)) return refused;
  const long on = std::max(1L, cards);
  return asks({.copies = static_cast<int>(on), .cores = static_cast<int>(cores), .mib = gib * 1024 / on});
}

reading whole(long cards) {
  return cards < 0 ? refused : asks({.copies = static_cast<int>(cards), .whole = true, .unsteered = true});
}

reading replicas(const request& r) {
  const long one = at(r, "nvidia.com/gpu"), other = at(r, "nvidia.com/gpu.shared");
  if (one < 0 || other < 0 || (one > 0 && other > 0)) return refused;
  return asks({.copies = static_cast<int>(one + other), .apart = false, .unsteered = true});
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
  for (const request& one : containers) {
    std::string words;
    for (const auto& [key, amount] : one) {
      if (amount == 0) continue;
      const auto of = family(key, modes);
      if (of.empty()) {
        if (amount < 0) return {};
        out.counts[key] += amount;
        continue;
      }
      if (!modes.contains(of) || (!words.empty() && words != of)) return {};
      words = of;
    }
    const reading got = words.empty()      ? none
                        : words == "pgpu"  ? whole(at(one, "nvidia.com/gpu"))
                        : words == "vgpu"  ? tencent(one)
                        : words == "mps"   ? mps(one)
                        : words == "hami"  ? hami(one)
                        : words == "share" ? replicas(one)
                                           : aliyun(one);
    if (got.wrong) return {};
    out.asks.push_back(got.what);
  }
  return out;
}

std::vector<piece> world::on(const std::string& uuid) const {
  std::vector<piece> out;
  for (const auto& [uid, one] : pods)
    for (const piece& part : one.pieces)
      if (part.card == uuid) out.push_back(part);
  return out;
}

long world::counted(const std::string& on_node, const std::string& key) const {
  long sum = 0;
  for (const auto& [uid, one] : pods)
    if (one.node == on_node) sum += at(one.counts, key);
  return sum;
}

bool world::sound(const card& of, const std::vector<piece>& there, const std::vector<piece>& joining) const {
  if (joining.empty()) return true;
  if (!of.in_use_allowed) return false;
  long mib = 0, cores = 0, cores_before = 0;
  std::size_t whole_ones = 0, full = 0;
  bool coreless_joins = false;
  for (const piece& one : there) cores_before += one.cores;
  for (const auto* list : {&there, &joining})
    for (const piece& one : *list) {
      whole_ones += one.whole ? 1 : 0;
      full += !one.whole && one.cores == 100 ? 1 : 0;
      mib += one.mib;
      cores += one.cores;
    }
  for (const piece& one : joining) coreless_joins |= !one.whole && one.cores == 0;
  const std::size_t all = there.size() + joining.size();
  if (whole_ones > 0) return all == 1;
  if (full > 0 && all > 1) return false;
  if (coreless_joins && cores_before >= 100) return false;
  return mib <= of.mib && cores <= 100 && all <= static_cast<std::size_t>(of.seats);
}

bool world::accepts(const std::string& name, const std::vector<piece>& pieces, const request& counts) const {
  const node& here = nodes.at(name);
  std::size_t known = 0;
  for (const card& one : here.cards) {
    std::vector<piece> joining;
    for (const piece& part : pieces)
      if (part.card == one.uuid) joining.push_back(part);
    known += joining.size();
    if (!sound(one, on(one.uuid), joining)) return false;
  }
  if (known != pieces.size()) return false;
  for (const auto& [key, amount] : counts)
    if (amount > at(here.counts, key) - counted(name, key)) return false;
  return true;
}

namespace {

std::vector<std::string> items(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in{list};
  for (std::string one; std::getline(in, one, ',');) {
    std::string item;
    std::istringstream words{one};
    for (std::string word; words >> word;) item += (item.empty() ? "" : " ") + word;
    if (!item.empty()) out.push_back(item);
  }
  return out;
}

std::string label_of(std::string text) {
  for (char& one : text) one = one == ' ' || one == '_' ? '-' : static_cast<char>(std::tolower(one));
  return text;
}

/// Cards in the order of the node, each with what lies on it; the numbers of those gpu-manager takes.
using table = std::vector<std::pair<card, std::vector<piece>>>;

std::vector<std::size_t> for_share(const table& all, const ask& what) {
  std::vector<std::tuple<long, long, std::size_t, std::size_t>> sorted;
  std::vector<std::pair<long, long>> left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    long cores = 100, mib = all[i].first.mib;
    for (const piece& one : all[i].second) {
      cores -= one.cores;
      mib -= one.whole ? mib : one.mib;
    }
    left.emplace_back(std::max(cores, 0L), std::max(mib, 0L));
    sorted.emplace_back(left[i].first, left[i].second / 256, all[i].second.size(), i);
  }
  std::ranges::sort(sorted);
  for (const auto& [cores, units, pieces, i] : sorted)
    if (left[i].first >= what.cores && left[i].second >= what.mib) return {i};
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

std::vector<std::size_t> free_in(const table& all, const std::set<std::size_t>& of) {
  std::vector<std::size_t> out;
  for (const auto i : of)
    if (all[i].second.empty()) out.push_back(i);
  return out;
}

std::vector<std::size_t> for_wholes(const table& all, std::size_t cards) {
  std::set<std::size_t> from;
  for (std::size_t i = 0; i < all.size(); ++i) from.insert(i);
  const bool known = std::ranges::none_of(all, [](const auto& one) { return one.first.slot.empty(); });
  if (known && cards == 1) {
    for (bool deeper = true; deeper;) {
      deeper = false;
      std::set<std::pair<std::size_t, std::set<std::size_t>>> next;  // how many are free, which they are
      for (const auto i : from)
        for (std::size_t reach = 0; reach <= all[i].first.slot.size(); ++reach) {
          const auto group = around(all, i, reach);
          if (group.size() < from.size() && group.size() > 1 && !free_in(all, group).empty() &&
              std::ranges::none_of(from, [&](std::size_t other) {  // nothing of the tree in between
                for (std::size_t more = 0; more <= all[i].first.slot.size(); ++more) {
                  const auto larger = around(all, other, more);
                  if (larger.size() > group.size() && larger.size() < from.size() &&
                      std::ranges::includes(larger, group))
                    return true;
                }
                return false;
              }))
            next.emplace(free_in(all, group).size(), group);
        }
      // Equal ones: the one with the lowest card, which comes first in a set of sets.
      if (!next.empty()) from = next.begin()->second, deeper = true;
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
    if (!candidates.empty()) from = std::get<2>(*candidates.begin());
  }
  auto out = free_in(all, from);
  if (out.size() < cards) return {};
  out.resize(cards);
  return out;
}

}  // namespace

bool wanted(const node& on, const card& of, const notes& by) {
  const auto one_of = [&](std::initializer_list<const char*> keys, const auto& holds, bool otherwise) {
    std::vector<std::string> all;
    for (const auto* key : keys)
      if (by.contains(key))
        for (const auto& one : items(by.at(key))) all.push_back(one);
    return all.empty() ? otherwise : std::ranges::any_of(all, holds);
  };
  const auto model = [&](const std::string& name) {
    return label_of(of.model).find(label_of(name)) != std::string::npos;
  };
  const auto uuid = [&](const std::string& name) { return name == of.uuid; };
  return one_of({"nvidia.com/use-gputype"}, model, true) && !one_of({"nvidia.com/nouse-gputype"}, model, false) &&
         one_of({"nvidia.com/use-gpuuuid"}, uuid, true) && !one_of({"nvidia.com/nouse-gpuuuid"}, uuid, false) &&
         one_of({"aliyun.accelerator/nvidia_name", "gaia.tencent.com/gpu-model", "tkestack.io/gpu-model"}, model,
                true) &&
         one_of(
             {"gaia.tencent.com/gpu-pool", "tkestack.io/gpu-pool"},
             [&](const std::string& name) { return name == on.pool; }, true) &&
         one_of(
             {"aliyun.accelerator/nvidia_count"},
             [&](const std::string& count) { return std::stoul(count) == on.cards.size(); }, true);
}

std::optional<std::vector<piece>> world::foretold(const std::string& name, const std::vector<std::optional<ask>>& all,
                                                  const notes& by) const {
  const node& here = nodes.at(name);
  table cards;
  for (const card& one : here.cards) cards.emplace_back(one, on(one.uuid));
  std::vector<piece> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i] || !all[i]->foretold) continue;
    const auto taken =
        all[i]->whole ? for_wholes(cards, static_cast<std::size_t>(all[i]->copies)) : for_share(cards, *all[i]);
    if (taken.empty()) return {};
    for (const auto at : taken) {
      auto& [of, there] = cards[at];
      const piece more{static_cast<int>(i), of.uuid, all[i]->whole, all[i]->whole ? 100 : all[i]->cores,
                       all[i]->whole ? 0 : all[i]->mib};
      if (!wanted(here, of, by) || !sound(of, there, {more})) return {};
      there.push_back(more);
      out.push_back(more);
    }
  }
  return out;
}

bool world::fits(const std::string& name, const std::vector<std::optional<ask>>& all, const request& counts,
                 const notes& by) const {
  const node& here = nodes.at(name);
  if (!accepts(name, {}, counts)) return false;
  const auto first = foretold(name, all, by);
  if (!first) return false;
  const bool picks = std::ranges::any_of(all, [](const auto& one) { return one && one->unsteered && one->copies > 0; });
  for (const card& one : here.cards)
    if (picks && one.in_use_allowed && !wanted(here, one, by)) return false;
  std::vector<ask> copies;  // one a copy; `copies` of the ask says how many are still to come of the same container
  for (const auto& one : all)
    for (int i = 0; one && !one->foretold && i < one->copies; ++i) {
      copies.push_back(*one);
      copies.back().copies = i;
      if (copies.size() > 64) return false;
    }
  std::vector<std::vector<piece>> there(here.cards.size()), joining(here.cards.size());
  for (std::size_t i = 0; i < here.cards.size(); ++i) {
    there[i] = on(here.cards[i].uuid);
    for (const piece& one : *first)
      if (one.card == here.cards[i].uuid) there[i].push_back(one);
  }
  std::vector<std::size_t> chosen(copies.size());
  const auto every = [&](const auto& self, std::size_t which) -> bool {
    if (which == copies.size()) return true;
    const ask& what = copies[which];
    for (std::size_t i = 0; i < here.cards.size(); ++i) {
      bool taken = false;
      for (int back = 1; what.apart && back <= what.copies; ++back)
        taken |= chosen[which - static_cast<std::size_t>(back)] == i;
      if (taken || !wanted(here, here.cards[i], by)) continue;
      const long mib = what.percent > 0 ? here.cards[i].mib * what.percent / 100 : what.mib;
      joining[i].push_back({0, here.cards[i].uuid, what.whole, what.whole ? 100 : what.cores, what.whole ? 0 : mib});
      chosen[which] = i;
      const bool found = sound(here.cards[i], there[i], joining[i]) && self(self, which + 1);
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
    std::vector<int> in, out;
    for (std::size_t i = 0; i < cards.size(); ++i)
      if (cards[i].free) ((set >> i & 1U) != 0 ? in : out).push_back(static_cast<int>(i));
    if (std::popcount(set) != wanted || std::ssize(in) != wanted) continue;
    long within = 0, mib = 0, across = 0;
    std::set<int> numas;
    for (const int a : in) {
      numas.insert(cards[static_cast<std::size_t>(a)].numa);
      mib += cards[static_cast<std::size_t>(a)].mib;
      for (const int b : in)
        if (a < b) within += near[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
      for (const int b : out) across += near[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    }
    const cost now{-within, numas.size(), mib, across, in};
    if (!best || now < *best) best = now;
  }
  return best ? std::get<4>(*best) : std::vector<int>{};
}

}  // namespace brute
