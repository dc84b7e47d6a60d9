#include "quota/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "quota/resource_keys.hpp"

namespace quota {
namespace {

enum class role : std::uint8_t { whole, replica, slot, cores, burst, memory, percent, cards, priority, count_ };
constexpr auto roles = static_cast<std::size_t>(role::count_);

/// What the table of keys says; of any other key a plain count.
constexpr amounts legal_of(std::string_view key) {
  const auto* known = resource_key_of(key);
  return known ? known->legal : amounts{};
}

struct row {
  std::string_view key;
  mode of;
  role is;
  std::int64_t unit_mib = 0;  // memory; 0: the node says
  amounts legal = legal_of(key);
};

// Units: 256 MiB (gpu-manager: pkg/types), 1 GiB (MPS as the platform offers it, gpushare), MiB (HAMi). Amounts:
// resource_keys.hpp; the burst is an annotation and no key.
constexpr row table[] = {
    {.key = "nvidia.com/gpu", .of = mode::pgpu, .is = role::whole},
    {.key = "nvidia.com/gpu", .of = mode::hami, .is = role::slot},
    {.key = "nvidia.com/gpu", .of = mode::share, .is = role::replica},
    {.key = "nvidia.com/gpu.shared", .of = mode::share, .is = role::replica},
    {.key = "tencent.com/vcuda-core", .of = mode::vgpu, .is = role::cores},
    {.key = "tencent.com/vcuda-memory", .of = mode::vgpu, .is = role::memory, .unit_mib = 256},
    {.key = "tencent.com/vcuda-core-limit",
     .of = mode::vgpu,
     .is = role::burst,
     .legal = {.to = 100, .whole = 100, .words = core_limit.words}},
    {.key = "nvidia.com/mps-core", .of = mode::mps, .is = role::cores},
    {.key = "nvidia.com/mps-memory", .of = mode::mps, .is = role::memory, .unit_mib = 1024},
    {.key = "nvidia.com/gpualloc", .of = mode::hami, .is = role::slot},
    {.key = "nvidia.com/gpumem", .of = mode::hami, .is = role::memory, .unit_mib = 1},
    {.key = "nvidia.com/gpumem-percentage", .of = mode::hami, .is = role::percent},
    {.key = "nvidia.com/gpucores", .of = mode::hami, .is = role::cores},
    {.key = "nvidia.com/priority", .of = mode::hami, .is = role::priority},
    {.key = "aliyun.com/gpu", .of = mode::topology, .is = role::whole},
    {.key = "aliyun.com/gpu-mem", .of = mode::gpushare, .is = role::memory},
    {.key = "aliyun.com/gpu-count", .of = mode::gpushare, .is = role::cards},
    {.key = "aliyun.com/gpu-core.percentage", .of = mode::gpushare, .is = role::cores},
    {.key = "volcano.sh/vgpu-number", .of = mode::volcano, .is = role::slot},
    {.key = "volcano.sh/vgpu-memory", .of = mode::volcano, .is = role::memory, .unit_mib = 1},
    {.key = "volcano.sh/vgpu-memory-percentage", .of = mode::volcano, .is = role::percent},
    {.key = "volcano.sh/vgpu-cores", .of = mode::volcano, .is = role::cores},
    {.key = "tke.cloud.tencent.com/qgpu-core", .of = mode::qgpu, .is = role::cores},
    {.key = "tke.cloud.tencent.com/qgpu-memory", .of = mode::qgpu, .is = role::memory, .unit_mib = 1024},
};

bool offered(std::string_view key, const service& of) {
  for (std::size_t i = 0; i < alternatives.size(); ++i)
    if (alternatives[i] == key) return (of.withheld >> i & 1) == 0;
  return true;
}

const row* find(std::string_view key, const service& of) {
  if (!offered(key, of)) return nullptr;
  for (const row& one : table)
    if (of.has(one.of) && one.key == key) return &one;
  return nullptr;
}

std::string_view key_of(mode of, role is) {
  for (const row& one : table)
    if (one.of == of && one.is == is) return one.key;
  return {};
}

bool legal(const row& of, std::int64_t value) { return value <= most && of.legal.allow(value); }

std::int64_t below(const amounts& of, std::int64_t value) {
  std::int64_t best = -1;
  if (value >= of.from) best = of.from + (std::min(value, of.to) - of.from) / of.step * of.step;
  if (of.whole > 0 && value >= of.whole) best = std::max(best, std::min(value, most) / of.whole * of.whole);
  return best;
}

std::int64_t above(const amounts& of, std::int64_t value) {
  if (value <= of.from) return of.from;
  if (value <= of.to) {
    const auto next = of.from + (value - of.from + of.step - 1) / of.step * of.step;
    if (next <= of.to) return next;
  }
  return of.whole > 0 && value <= most - of.whole ? (value + of.whole - 1) / of.whole * of.whole : -1;
}

refusal not_legal(const row& of, std::int64_t value) {
  return {.what = wrong::not_legal,
          .key = of.key,
          .value = value,
          .below = below(of.legal, value),
          .above = above(of.legal, value),
          .legal = of.legal.words};
}

/// What one container says, sorted by role. All of one mode.
struct said {
  const row* rows[roles] = {};
  std::int64_t values[roles] = {};
  const row* first = nullptr;

  std::int64_t operator[](role is) const { return values[static_cast<std::size_t>(is)]; }
  const row& of(role is) const { return *rows[static_cast<std::size_t>(is)]; }

  std::optional<refusal> hear(const row& one, std::int64_t value) {
    auto& place = rows[static_cast<std::size_t>(one.is)];
    const row* other = place != nullptr ? place : first != nullptr && first->of != one.of ? first : nullptr;
    if (other != nullptr) return refusal{.what = wrong::mixed, .key = one.key, .value = value, .other = other->key};
    place = &one;
    if (first == nullptr) first = &one;
    values[static_cast<std::size_t>(one.is)] = value;
    return {};
  }
  std::int64_t mib(const service& of) const {
    const auto at = static_cast<std::size_t>(role::memory);
    if (rows[at] == nullptr) return 0;
    return values[at] * (rows[at]->unit_mib > 0 ? rows[at]->unit_mib : of.aliyun_unit_mib);
  }
  refusal lonely(role is, role partner) const {
    return {.what = wrong::needs_partner, .key = of(is).key, .value = (*this)[is], .other = key_of(of(is).of, partner)};
  }
};

using reading = std::optional<refusal>;

/// gpu-manager, MPS, qGPU: cores and memory; from 100 cores on whole cards, whose memory is theirs anyway.
reading cores_and_memory(const said& it, const service& of, need& out) {
  const auto cores = it[role::cores], burst = it[role::burst];
  if (cores == 0) return it.lonely(burst > 0 ? role::burst : role::memory, role::cores);
  const bool limit_is_legal = burst == 0 || core_limit.allow(burst, cores);
  const auto limit_refused = [&](std::int64_t nearest) {
    auto no = not_legal(it.of(role::burst), burst);
    no.below = nearest <= burst ? nearest : -1;
    no.above = nearest > burst ? nearest : -1;
    return no;
  };
  if (cores >= 100) {
    if (!limit_is_legal) return limit_refused(cores);
    out.whole = true;
    out.cards = static_cast<std::uint32_t>(cores / 100);
    return {};
  }
  if (it[role::memory] == 0) return it.lonely(role::cores, role::memory);
  if (!limit_is_legal) return limit_refused(burst < cores ? cores : 100);
  out.cards = 1;
  out.cores = static_cast<std::int32_t>(cores);
  out.burst_cores = static_cast<std::int32_t>(burst);
  out.memory_mib = it.mib(of);
  return {};
}

/// HAMi and Volcano: a number of cards, and on each the same memory and cores. HAMi's webhook adds the number where
/// only memory or cores are named; Volcano takes one card for memory, and passes over cores alone, which we refuse.
reading slots(const said& it, const service& of, need& out) {
  auto cards = it[role::slot];
  if (cards == 0) {
    const role named = it[role::memory] > 0    ? role::memory
                       : it[role::percent] > 0 ? role::percent
                       : it[role::cores] > 0   ? role::cores
                                               : role::priority;
    if (named == role::priority) return {};
    if (of.default_cards == 0 || (it.first->of == mode::volcano && named != role::memory))
      return it.lonely(named, role::slot);
    cards = it.first->of == mode::volcano ? 1 : of.default_cards;
  }
  out.cards = static_cast<std::uint32_t>(cards);
  const auto cores = it[role::cores];
  out.cores = static_cast<std::int32_t>(cores > 0 ? cores : of.default_cores);
  const bool percent_first = it.first->of == mode::volcano;  // where both are given; HAMi takes the MiB
  if (it[role::memory] > 0 && !(percent_first && it[role::percent] > 0))
    out.memory_mib = it.mib(of);
  else if (it[role::percent] > 0)
    out.memory_percent = static_cast<std::int32_t>(it[role::percent]);
  else if (of.default_memory_mib > 0)
    out.memory_mib = of.default_memory_mib;
  else
    out.memory_percent = 100;
  return {};
}

/// gpushare and ACK: memory in all, spread evenly over gpu-count cards; cores only with one card (ACK: multi-GPU
/// sharing).
reading by_memory(const said& it, const service& of, need& out) {
  const auto memory = it[role::memory], cards = std::max<std::int64_t>(it[role::cards], 1), cores = it[role::cores];
  if (memory == 0) return it.lonely(cores > 0 ? role::cores : role::cards, role::memory);
  if (cards > 1 && cores > 0)
    return refusal{
        .what = wrong::mixed, .key = it.of(role::cores).key, .value = cores, .other = it.of(role::cards).key};
  if (!card_count.allow(cards, memory)) {
    auto no = not_legal(it.of(role::memory), memory);
    no.below = memory < cards ? -1 : memory / cards * cards;
    no.above = (memory / cards + 1) * cards;
    no.legal = "multiples of aliyun.com/gpu-count";
    return no;
  }
  out.cards = static_cast<std::uint32_t>(cards);
  out.cores = static_cast<std::int32_t>(cores);
  out.memory_mib = it.mib(of) / cards;
  return {};
}

reading understand(const said& it, const service& of, need& out) {
  out.by = it.first->of;
  switch (it.first->of) {
    case mode::pgpu:
    case mode::topology:
      out.whole = true;
      out.cards = static_cast<std::uint32_t>(it[role::whole]);
      return {};
    case mode::share:  // no limit inside the card: a replica is a seat, not memory
      out.distinct = false;
      out.cards = static_cast<std::uint32_t>(it[role::replica]);
      return {};
    case mode::vgpu:
    case mode::mps:
    case mode::qgpu:
      return cores_and_memory(it, of, out);
    case mode::hami:
    case mode::volcano:
      return slots(it, of, out);
    case mode::gpushare:
      return by_memory(it, of, out);
  }
  return {};
}

reading read_container(limits of, const service& by, need& out, demand& pod) {
  said it;
  for (const amount& one : of) {
    if (one.value == 0 || !one.key.contains('/')) continue;
    const row* const row = find(one.key, by);
    if (row == nullptr && known(one.key)) return refusal{.what = wrong::not_served, .key = one.key, .value = one.value};
    if (row == nullptr) {
      if (one.value < 0 || one.value > most) return judge(one, by);
      if (!pod.add(counted{one.key, one.value}))
        return refusal{
            .what = wrong::too_many, .key = one.key, .value = demand::max_counts + 1, .above = demand::max_counts};
      continue;
    }
    if (!legal(*row, one.value)) return not_legal(*row, one.value);
    if (auto no = it.hear(*row, one.value)) return no;
  }
  return it.first == nullptr ? reading{} : understand(it, by, out);
}

/// Takes the share of an init container from a later container, on whose cards it runs first: the one that has to grow
/// least. False where there is none.
bool lent(const need& one, demand& out) {
  using growth = std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int32_t>;
  constexpr growth none{};
  const auto needs = out.needs();
  std::optional<std::pair<growth, std::size_t>> best;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const need& other = needs[i];
    if (other.container <= one.container || other.by != one.by || other.cards < one.cards) continue;
    if (!other.whole && other.distinct != one.distinct) continue;
    const auto more =
        other.whole ? none
                    : growth{std::max(one.memory_mib - other.memory_mib, std::int64_t{0}),
                             std::max(one.memory_percent - other.memory_percent, 0),
                             std::max(one.cores - other.cores, 0), std::max(one.burst_cores - other.burst_cores, 0)};
    const bool same_words = (other.memory_percent > 0) == (one.memory_percent > 0);
    if (more != none && (one.by == mode::vgpu || !same_words)) continue;
    if (!best || more < best->first) best.emplace(more, i);
  }
  if (!best) return false;
  if (best->first != none) out.grow(best->second, one);
  return true;
}

/// Of a plain count, in the containers that run beside the one at `index` when it runs.
std::int64_t count_beside(std::span<const limits> containers, std::size_t index, std::string_view key) {
  std::int64_t sum = 0;
  for (const limits& other : containers.first(index))
    for (const amount& each : other)
      if (!other.init && each.key == key) sum += each.value;
  return sum;
}

/// What init containers need beyond `out`, which has all others. False: there is no room for it.
bool add_init(std::span<const limits> containers, const service& by, demand& out) {
  std::array<need, demand::max_needs> kept;
  const auto others = std::span{kept}.first(out.needs().size());
  std::ranges::copy(out.needs(), others.begin());
  const auto whole_cards = [&](std::size_t until) {
    std::int64_t sum = 0;
    for (const need& other : others)
      if (other.whole && other.container < until) sum += other.cards;
    return sum;
  };
  need beyond;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].init) continue;
    need one{.container = static_cast<std::uint16_t>(i)};
    demand its;
    (void)read_container(containers[i], by, one, its);  // it was read before, and not refused
    if (one.whole) {
      const auto more = std::int64_t{one.cards} + whole_cards(i) - whole_cards(containers.size());
      if (more > std::int64_t{beyond.cards}) {
        beyond = one;
        beyond.cards = static_cast<std::uint32_t>(more);
      }
    } else if (one.cards > 0 && !lent(one, out) && !out.add(one)) {
      return false;
    }
    for (const counted& each : its.counts()) {
      const auto needed = each.amount + count_beside(containers, i, each.key);
      const auto have = std::ranges::find(out.counts(), each.key, &counted::key);
      const auto more = have == out.counts().end() ? needed : needed - have->amount;
      if (more > 0 && !out.add(counted{each.key, more})) return false;
    }
  }
  return beyond.cards == 0 || out.add(beyond);
}

}  // namespace

bool demand::add(const need& one) {
  if (needs_size_ == max_needs) return false;
  needs_[needs_size_++] = one;
  return true;
}

void demand::grow(std::size_t at, const need& other) {
  need& one = needs_[at];
  one.memory_mib = std::max(one.memory_mib, other.memory_mib);
  one.memory_percent = std::max(one.memory_percent, other.memory_percent);
  one.cores = std::max(one.cores, other.cores);
  one.burst_cores = std::max(one.burst_cores, other.burst_cores);
}

bool demand::add(const counted& one) {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(counts_size_);
  const auto same = std::ranges::find(counts_.begin(), end, one.key, &counted::key);
  if (same != end) {
    same->amount += one.amount;  // at most 65,536 containers of `most` each
    return true;
  }
  if (counts_size_ == max_counts) return false;
  counts_[counts_size_++] = one;
  return true;
}

bool known(std::string_view key) {
  return std::ranges::any_of(table, [&](const row& one) { return one.key == key; });
}

std::optional<refusal> judge(const amount& one, const service& of) {
  if (one.value == 0) return {};
  const row* const row = find(one.key, of);
  if (row != nullptr) return legal(*row, one.value) ? reading{} : not_legal(*row, one.value);
  if (known(one.key)) return refusal{.what = wrong::not_served, .key = one.key, .value = one.value};
  if (one.value > 0 && one.value <= most) return {};
  const struct row plain{.key = one.key, .of = {}, .is = role::count_};
  return not_legal(plain, one.value);
}

std::optional<refusal> read(std::span<const limits> containers, const service& of, demand& out) {
  out.clear();
  const auto too_many = [](std::size_t have, std::size_t most_of) {
    return refusal{.what = wrong::too_many,
                   .key = "containers",
                   .value = static_cast<std::int64_t>(have),
                   .above = static_cast<std::int64_t>(most_of)};
  };
  if (containers.size() > UINT16_MAX) return too_many(containers.size(), UINT16_MAX);
  bool has_init = false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    need one{.container = static_cast<std::uint16_t>(i)};
    std::optional<demand> apart;  // an init container counts when all others are known
    if (containers[i].init) apart.emplace();
    if (auto no = read_container(containers[i], of, one, apart ? *apart : out)) {
      no->container = one.container;
      return no;
    }
    has_init |= containers[i].init;
    if (apart) continue;
    if (one.cards > 0 && !out.add(one)) return too_many(demand::max_needs + 1, demand::max_needs);
  }
  if (has_init && !add_init(containers, of, out)) return too_many(demand::max_needs + 1, demand::max_needs);
  return {};
}

std::string text_of(const refusal& of) {
  std::string out{of.key};
  switch (of.what) {
    case wrong::not_legal:
      out += of.value == not_a_number ? " is no whole number from 1" : " is " + std::to_string(of.value);
      out += "; allowed: " + std::string{of.legal};
      if (of.value == not_a_number || (of.below < 0 && of.above < 0)) break;
      out += "; nearest: ";
      if (of.below >= 0) out += std::to_string(of.below);
      if (of.below >= 0 && of.above >= 0 && of.above != of.below) out += " or ";
      if (of.above >= 0 && of.above != of.below) out += std::to_string(of.above);
      break;
    case wrong::needs_partner:
      out += " is " + std::to_string(of.value) + " and needs " + std::string{of.other} + " beside it: add " +
             std::string{of.other} + " to the same container";
      break;
    case wrong::mixed:
      out += " and " + std::string{of.other} + " are in one container: remove one of the two";
      break;
    case wrong::not_served:
      out += " is not served by this node's mode";
      break;
    case wrong::too_many:
      out += ": " + std::to_string(of.value) + " or more; at most " + std::to_string(of.above) + " are looked at";
      break;
  }
  return out;
}

}  // namespace quota
