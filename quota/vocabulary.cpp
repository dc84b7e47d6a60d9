#include "quota/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "quota/mode_keys.hpp"
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

constexpr std::int64_t unit_mib_of(std::string_view key) {
  const auto* known = resource_key_of(key);
  return known ? known->unit_mib : 0;
}

struct key_meaning {
  std::string_view key;
  mode node_mode;
  role is;
  amounts legal = legal_of(key);
  std::int64_t unit_mib = unit_mib_of(key);
};

// Units and amounts: resource_keys.hpp; the burst is an annotation and no key.
constexpr key_meaning table[] = {
    {.key = "nvidia.com/gpu", .node_mode = mode::pgpu, .is = role::whole},
    {.key = "nvidia.com/gpu", .node_mode = mode::slots, .is = role::slot},
    {.key = "nvidia.com/gpu", .node_mode = mode::share, .is = role::replica},
    {.key = "nvidia.com/gpu.shared", .node_mode = mode::share, .is = role::replica},
    {.key = "tencent.com/vcuda-core", .node_mode = mode::vgpu, .is = role::cores},
    {.key = "tencent.com/vcuda-memory", .node_mode = mode::vgpu, .is = role::memory},
    {.key = "tencent.com/vcuda-core-limit",
     .node_mode = mode::vgpu,
     .is = role::burst,
     .legal = {.max = 100, .whole = 100}},
    {.key = "nvidia.com/mps-core", .node_mode = mode::mps, .is = role::cores},
    {.key = "nvidia.com/mps-memory", .node_mode = mode::mps, .is = role::memory},
    {.key = "nvidia.com/gpualloc", .node_mode = mode::slots, .is = role::slot},
    {.key = "nvidia.com/gpumem", .node_mode = mode::slots, .is = role::memory},
    {.key = "nvidia.com/gpumem-percentage", .node_mode = mode::slots, .is = role::percent},
    {.key = "nvidia.com/gpucores", .node_mode = mode::slots, .is = role::cores},
    {.key = "nvidia.com/priority", .node_mode = mode::slots, .is = role::priority},
    {.key = "aliyun.com/gpu", .node_mode = mode::topology, .is = role::whole},
    {.key = "aliyun.com/gpu-mem", .node_mode = mode::memory_shares, .is = role::memory},
    {.key = "aliyun.com/gpu-count", .node_mode = mode::memory_shares, .is = role::cards},
    {.key = "aliyun.com/gpu-core.percentage", .node_mode = mode::memory_shares, .is = role::cores},
    {.key = "volcano.sh/vgpu-number", .node_mode = mode::volcano, .is = role::slot},
    {.key = "volcano.sh/vgpu-memory", .node_mode = mode::volcano, .is = role::memory},
    {.key = "volcano.sh/vgpu-memory-percentage", .node_mode = mode::volcano, .is = role::percent},
    {.key = "volcano.sh/vgpu-cores", .node_mode = mode::volcano, .is = role::cores},
    {.key = "tke.cloud.tencent.com/qgpu-core", .node_mode = mode::qgpu, .is = role::cores},
    {.key = "tke.cloud.tencent.com/qgpu-memory", .node_mode = mode::qgpu, .is = role::memory},
};

bool offered(std::string_view key, const service& service) {
  for (std::size_t i = 0; i < alternatives.size(); ++i)
    if (alternatives[i] == key) return (service.withheld >> i & 1) == 0;
  return true;
}

const key_meaning* find(std::string_view key, const service& service) {
  if (!offered(key, service)) return nullptr;
  for (const key_meaning& row : table)
    if (service.has(row.node_mode) && row.key == key) return &row;
  return nullptr;
}

/// The key of a role: of several the first that the node offers.
std::string_view key_of(mode mode, role is, const service& service) {
  std::string_view out;
  for (const key_meaning& row : table)
    if (row.node_mode == mode && row.is == is && (out.empty() || !offered(out, service))) out = row.key;
  return out;
}

bool legal(const key_meaning& row, std::int64_t value) { return value <= most && row.legal.allow(value); }

std::int64_t below(const amounts& amounts, std::int64_t value) {
  std::int64_t best = -1;
  if (value >= amounts.min)
    best = amounts.min + (std::min(value, amounts.max) - amounts.min) / amounts.step * amounts.step;
  if (amounts.whole > 0 && value >= amounts.whole)
    best = std::max(best, std::min(value, most) / amounts.whole * amounts.whole);
  return best;
}

std::int64_t above(const amounts& amounts, std::int64_t value) {
  if (value <= amounts.min) return amounts.min;
  if (value <= amounts.max) {
    const auto next = amounts.min + (value - amounts.min + amounts.step - 1) / amounts.step * amounts.step;
    if (next <= amounts.max) return next;
  }
  return amounts.whole > 0 && value <= most - amounts.whole
             ? (value + amounts.whole - 1) / amounts.whole * amounts.whole
             : -1;
}

refusal not_legal(const key_meaning& row, std::int64_t value) {
  return {.kind = wrong::not_legal,
          .key = row.key,
          .value = value,
          .below = below(row.legal, value),
          .above = above(row.legal, value)};
}

/// What one container says, sorted by role. All of one mode.
struct container_amounts {
  const key_meaning* rows[roles] = {};
  std::int64_t values[roles] = {};
  const key_meaning* first = nullptr;

  std::int64_t operator[](role is) const { return values[static_cast<std::size_t>(is)]; }
  const key_meaning& of(role is) const { return *rows[static_cast<std::size_t>(is)]; }

  std::optional<refusal> hear(const key_meaning& entry, std::int64_t value) {
    auto& place = rows[static_cast<std::size_t>(entry.is)];
    const key_meaning* other = place != nullptr                                          ? place
                               : first != nullptr && first->node_mode != entry.node_mode ? first
                                                                                         : nullptr;
    if (other != nullptr) return refusal{.kind = wrong::mixed, .key = entry.key, .value = value, .other = other->key};
    place = &entry;
    if (first == nullptr) first = &entry;
    values[static_cast<std::size_t>(entry.is)] = value;
    return {};
  }
  std::int64_t mib(const service& service) const {
    const auto position = static_cast<std::size_t>(role::memory);
    if (rows[position] == nullptr) return 0;
    const auto& row = *rows[position];
    return values[position] * (row.node_mode == mode::memory_shares ? service.memory_unit_mib : row.unit_mib);
  }
  refusal lonely(role is, role partner, const service& service) const {
    return {.kind = wrong::needs_partner,
            .key = of(is).key,
            .value = (*this)[is],
            .other = key_of(of(is).node_mode, partner, service)};
  }
};

using reading = std::optional<refusal>;

/// Of more than what holds a container's shares serves.
refusal beyond_one_card(const key_meaning& row, std::int64_t value) {
  return {.kind = wrong::not_legal,
          .key = row.key,
          .value = value,
          .below = row.is == role::cores ? 100 : 1,
          .legal = legal_amounts::one_card};
}

/// vgpu, mps, qgpu: cores and memory; from 100 cores on whole cards, whose memory is theirs anyway.
reading cores_and_memory(const container_amounts& request, const service& service, need& out) {
  const auto cores = request[role::cores], burst = request[role::burst];
  if (cores == 0) return request.lonely(burst > 0 ? role::burst : role::memory, role::cores, service);
  const bool limit_is_legal = burst == 0 || core_limit.allow(burst, cores);
  const auto limit_refused = [&](std::int64_t nearest) {
    auto no = not_legal(request.of(role::burst), burst);
    no.below = nearest <= burst ? nearest : -1;
    no.above = nearest > burst ? nearest : -1;
    return no;
  };
  if (cores >= 100) {
    if (!limit_is_legal) return limit_refused(cores);
    if (service.one_card && cores > 100) return beyond_one_card(request.of(role::cores), cores);
    out.whole = true;
    out.cards = static_cast<std::uint32_t>(cores / 100);
    return {};
  }
  if (request[role::memory] == 0) return request.lonely(role::cores, role::memory, service);
  if (!limit_is_legal) return limit_refused(burst < cores ? cores : 100);
  out.cards = 1;
  out.cores = static_cast<std::int32_t>(cores);
  out.burst_cores = static_cast<std::int32_t>(burst);
  out.memory_mib = request.mib(service);
  return {};
}

/// A number of cards, and on each the same memory and cores. In mode slots a webhook adds the number where only memory
/// or cores are named; Volcano takes one card for memory, and skips cores alone, which we refuse.
reading slots(const container_amounts& request, const service& service, need& out) {
  auto cards = request[role::slot];
  if (cards == 0) {
    const role named = request[role::memory] > 0    ? role::memory
                       : request[role::percent] > 0 ? role::percent
                       : request[role::cores] > 0   ? role::cores
                                                    : role::priority;
    if (named == role::priority) return {};
    if (service.default_cards == 0 || (request.first->node_mode == mode::volcano && named != role::memory))
      return request.lonely(named, role::slot, service);
    cards = request.first->node_mode == mode::volcano ? 1 : service.default_cards;
  }
  if (service.one_card && cards > 1) return beyond_one_card(request.of(role::slot), cards);
  out.cards = static_cast<std::uint32_t>(cards);
  const auto cores = request[role::cores];
  out.cores = static_cast<std::int32_t>(cores > 0 ? cores : service.default_cores);
  const bool percent_first = request.first->node_mode == mode::volcano;  // where both are given; slots take the MiB
  if (request[role::memory] > 0 && !(percent_first && request[role::percent] > 0))
    out.memory_mib = request.mib(service);
  else if (request[role::percent] > 0)
    out.memory_percent = static_cast<std::int32_t>(request[role::percent]);
  else if (service.default_memory_mib > 0)
    out.memory_mib = service.default_memory_mib;
  else
    out.memory_percent = 100;
  return {};
}

/// Shares by memory: so much in all, spread evenly over gpu-count cards; cores only with one card (ACK: multi-GPU
/// sharing).
reading by_memory(const container_amounts& request, const service& service, need& out) {
  const auto memory = request[role::memory], cards = std::max<std::int64_t>(request[role::cards], 1),
             cores = request[role::cores];
  if (memory == 0) return request.lonely(cores > 0 ? role::cores : role::cards, role::memory, service);
  if (service.one_card && cards > 1) return beyond_one_card(request.of(role::cards), cards);
  if (cards > 1 && cores > 0)
    return refusal{
        .kind = wrong::mixed, .key = request.of(role::cores).key, .value = cores, .other = request.of(role::cards).key};
  if (!card_count.allow(cards, memory)) {
    auto no = not_legal(request.of(role::memory), memory);
    no.below = memory < cards ? -1 : memory / cards * cards;
    no.above = (memory / cards + 1) * cards;
    no.legal = legal_amounts::multiples_of_count;
    return no;
  }
  out.cards = static_cast<std::uint32_t>(cards);
  out.cores = static_cast<std::int32_t>(cores);
  out.memory_mib = request.mib(service) / cards;
  return {};
}

reading understand(const container_amounts& request, const service& service, need& out) {
  out.node_mode = request.first->node_mode;
  switch (request.first->node_mode) {
    case mode::pgpu:
    case mode::topology:
      out.whole = true;
      out.cards = static_cast<std::uint32_t>(request[role::whole]);
      return {};
    case mode::share:  // no limit inside the card: a replica is a seat, not memory
      if (service.one_replica && request[role::replica] > 1)
        return refusal{.kind = wrong::not_legal,
                       .key = request.of(role::replica).key,
                       .value = request[role::replica],
                       .below = 1,
                       .legal = legal_amounts::one_share};
      out.distinct = false;
      out.cards = static_cast<std::uint32_t>(request[role::replica]);
      return {};
    case mode::vgpu:
    case mode::mps:
    case mode::qgpu:
      return cores_and_memory(request, service, out);
    case mode::slots:
    case mode::volcano:
      return slots(request, service, out);
    case mode::memory_shares:
      return by_memory(request, service, out);
  }
  return {};
}

reading read_container(limits limits, const service& service, need& out, demand& pod) {
  container_amounts request;
  for (const amount& limit : limits) {
    if (limit.value == 0 || !limit.key.contains('/')) continue;
    const key_meaning* const row = find(limit.key, service);
    if (row == nullptr && known(limit.key))
      return refusal{.kind = wrong::not_served, .key = limit.key, .value = limit.value};
    if (row == nullptr) {
      if (limit.value < 0 || limit.value > most) return judge(limit, service);
      if (!pod.add(counted_key{limit.key, limit.value}))
        return refusal{
            .kind = wrong::too_many, .key = limit.key, .value = demand::max_counts + 1, .above = demand::max_counts};
      continue;
    }
    if (!legal(*row, limit.value)) return not_legal(*row, limit.value);
    if (auto no = request.hear(*row, limit.value)) return no;
  }
  return request.first == nullptr ? reading{} : understand(request, service, out);
}

/// Takes the share of an init container from a later container, on whose cards it runs first: the one that has to grow
/// least. False where there is none.
bool lent(const need& init, const service& service, demand& out) {
  using growth = std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int32_t>;
  constexpr growth none{};
  const auto needs = out.needs();
  std::optional<std::pair<growth, std::size_t>> best;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const need& other = needs[i];
    if (other.container <= init.container || other.node_mode != init.node_mode || other.cards < init.cards) continue;
    if (!other.whole && other.distinct != init.distinct) continue;
    const auto more =
        other.whole ? none
                    : growth{std::max(init.memory_mib - other.memory_mib, std::int64_t{0}),
                             std::max(init.memory_percent - other.memory_percent, 0),
                             std::max(init.cores - other.cores, 0), std::max(init.burst_cores - other.burst_cores, 0)};
    const bool same_words = (other.memory_percent > 0) == (init.memory_percent > 0);
    if (more != none && (service.plugin_chooses || !same_words)) continue;
    if (!best || more < best->first) best.emplace(more, i);
  }
  if (!best) return false;
  if (best->first != none) out.grow(best->second, init);
  return true;
}

/// Of a plain count, in the containers that run next to the one at `index` when it runs.
std::int64_t count_beside(std::span<const limits> containers, std::size_t index, std::string_view key) {
  std::int64_t sum = 0;
  for (const limits& other : containers.first(index))
    for (const amount& each : other)
      if (!other.init && each.key == key) sum += each.value;
  return sum;
}

/// What init containers need beyond `out`, which has all others. False: there is no room for it.
bool add_init(std::span<const limits> containers, const service& service, demand& out) {
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
  // The last first: where no other container lends a share, a later init container does, because each ends before the
  // next one starts.
  for (std::size_t i = containers.size(); i-- > 0;) {
    if (!containers[i].init) continue;
    need need{.container = static_cast<std::uint16_t>(i)};
    demand demand;
    (void)read_container(containers[i], service, need, demand);  // it was read before, and not refused
    if (need.whole) {
      const auto more = std::int64_t{need.cards} + whole_cards(i) - whole_cards(containers.size());
      if (more > 0 && more >= std::int64_t{beyond.cards}) {
        beyond = need;
        beyond.cards = static_cast<std::uint32_t>(more);
      }
    } else if (need.cards > 0 && !lent(need, service, out) && !out.add(need)) {
      return false;
    }
    for (const counted_key& each : demand.counts()) {
      const auto needed = each.amount + count_beside(containers, i, each.key);
      const auto have = std::ranges::find(out.counts(), each.key, &counted_key::key);
      const auto more = have == out.counts().end() ? needed : needed - have->amount;
      if (more > 0 && !out.add(counted_key{each.key, more})) return false;
    }
  }
  return beyond.cards == 0 || out.add(beyond);
}

}  // namespace

bool demand::add(const need& need) {
  if (needs_size_ == max_needs) return false;
  needs_[needs_size_++] = need;
  return true;
}

void demand::grow(std::size_t index, const need& other) {
  need& need = needs_[index];
  need.memory_mib = std::max(need.memory_mib, other.memory_mib);
  need.memory_percent = std::max(need.memory_percent, other.memory_percent);
  need.cores = std::max(need.cores, other.cores);
  need.burst_cores = std::max(need.burst_cores, other.burst_cores);
}

bool demand::add(const counted_key& count) {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(counts_size_);
  const auto same = std::ranges::find(counts_.begin(), end, count.key, &counted_key::key);
  if (same != end) {
    same->amount += count.amount;  // at most 65,536 containers of `most` each
    return true;
  }
  if (counts_size_ == max_counts) return false;
  counts_[counts_size_++] = count;
  return true;
}

bool known(std::string_view key) {
  return std::ranges::any_of(table, [&](const key_meaning& row) { return row.key == key; });
}

mode_keys keys_of(mode mode, const service& service) {
  const auto key = [&](role is) { return key_of(mode, is, service); };
  return {.whole = key(role::whole),
          .slot = key(role::slot),
          .cores = key(role::cores),
          .memory = key(role::memory),
          .percent = key(role::percent)};
}

std::uint16_t modes_of(std::string_view key) {
  std::uint16_t out = 0;
  for (const key_meaning& row : table)
    if (row.key == key) out |= static_cast<std::uint16_t>(row.node_mode);
  return out;
}

std::optional<refusal> judge(const amount& amount, const service& service) {
  if (amount.value == 0) return {};
  const key_meaning* const row = find(amount.key, service);
  if (row != nullptr) return legal(*row, amount.value) ? reading{} : not_legal(*row, amount.value);
  if (known(amount.key)) return refusal{.kind = wrong::not_served, .key = amount.key, .value = amount.value};
  if (amount.value > 0 && amount.value <= most) return {};
  const struct key_meaning plain{.key = amount.key, .node_mode = {}, .is = role::count_};
  return not_legal(plain, amount.value);
}

std::optional<refusal> read(std::span<const limits> containers, const service& service, demand& out) {
  out.clear();
  const auto too_many = [](std::size_t have, std::size_t most_of) {
    return refusal{.kind = wrong::too_many,
                   .key = "containers",
                   .value = static_cast<std::int64_t>(have),
                   .above = static_cast<std::int64_t>(most_of)};
  };
  if (containers.size() > UINT16_MAX) return too_many(containers.size(), UINT16_MAX);
  bool has_init = false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    need need{.container = static_cast<std::uint16_t>(i)};
    std::optional<demand> apart;  // an init container counts when all others are known
    if (containers[i].init) apart.emplace();
    if (auto no = read_container(containers[i], service, need, apart ? *apart : out)) {
      no->container = need.container;
      return no;
    }
    has_init |= containers[i].init;
    if (apart) continue;
    if (need.cards > 0 && !out.add(need)) return too_many(demand::max_needs + 1, demand::max_needs);
  }
  if (has_init && !add_init(containers, service, out)) return too_many(demand::max_needs + 1, demand::max_needs);
  return {};
}

std::int64_t in_unit(const resource_key& resource_key, std::int64_t bytes) {
  const auto unit = resource_key.unit_mib << 20;
  return bytes / unit + (bytes % unit > 0 ? 1 : 0);
}

}  // namespace quota
