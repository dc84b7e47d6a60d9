#pragma once
// The resource keys pods ask for cards by, and what the program behind each accepts. One table for everyone who judges
// an amount or names these keys: the ledger's engine (quota/vocabulary), declarations, lint and admission
// (reconcilers/declarations/vocabulary, from where it comes to the API server in the ResourceRules object), and the
// kube-scheduler's entry (scheduler_config/managed).

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace quota {

/// No amount beyond this is legal for the ledger, so that no sum overflows.
inline constexpr std::int64_t most = 1'000'000'000;

/// from, from + step, ... to; and where `whole` is not 0, its multiples (whole cards).
struct amounts {
  std::int64_t min = 1, max = most, step = 1;
  std::int64_t whole = 0;
  std::string_view words = "engine.legal.one_or_more";  ///< a key of text/messages.en.yaml

  /// Some amounts above 0 are refused.
  constexpr bool limited() const { return max != most; }
  constexpr bool allow(std::int64_t value) const {
    if (value >= min && value <= max && (value - min) % step == 0) return true;
    return whole > 0 && value > 0 && value % whole == 0;
  }
  /// The amount nearest to a positive one that is allowed; of two equally near the smaller.
  constexpr std::int64_t nearest(std::int64_t value) const {
    if (allow(value)) return value;
    if (whole > 0 && value > whole) {
      const auto below = value - value % whole;
      const bool down = value % whole <= whole / 2 || below > INT64_MAX - whole;
      return down ? below : below + whole;
    }
    if (value < min) return min;
    if (value > max) return whole > 0 && whole - value < value - max ? whole : max;
    return min + (value - min + step / 2) / step * step;
  }

  friend bool operator==(const amounts&, const amounts&) = default;
};

/// An amount that goes with a key and is written on the pod: in an annotation or a label, for all its containers that
/// ask for the key. A limit of the same name in the container counts instead.
struct pod_amount {
  std::string_view name = {};   ///< empty: the key has none
  bool label = false;           ///< of a label; else of an annotation
  std::int64_t min = 0;         ///< 0: as much as the container asks for
  std::int64_t max = 0;         ///< or as much as the container asks for, where that is more
  bool divides = false;         ///< what the container asks for is a multiple of it
  std::string_view words = {};  ///< of what is allowed, as of `amounts`

  /// `value` for a container that asks for `amount`; both from 1.
  constexpr bool allow(std::int64_t value, std::int64_t amount) const {
    return value >= (min > 0 ? min : amount) && value <= std::max(max, amount) && (!divides || amount % value == 0);
  }

  friend bool operator==(const pod_amount&, const pod_amount&) = default;
};

/// What such an annotation or label says: a whole number from 1, of at most ten digits and nothing next to them.
constexpr std::optional<std::int64_t> pod_amount_in(std::string_view text) {
  if (text.empty() || text.size() > 10 || text.front() == '0') return std::nullopt;
  std::int64_t out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + (c - '0');
  }
  return out;
}

struct resource_key {
  std::string_view key;
  amounts legal = {};
  /// Must stand next to it in the container: of cores whenever a share of a card is asked for, otherwise always. An
  /// extender that manages the one and not the other misses pods.
  std::string_view partner = {};
  bool managed =
      false;  ///< one of our modules, or one it takes over, offers it: kube-scheduler asks our extender about it
  bool offered = true;        ///< false: no node ever advertises it, so kube-scheduler must not look for room
  std::int64_t unit_mib = 0;  ///< of memory: one of it is so many MiB (of memory_shares, unless its plugin says MiB)
  pod_amount on_pod = {};
  std::string_view instead_of = {};  ///< says the same as that key in another way: one of the two is enough
};

// GPU-Manager, pkg/services/allocator/nvidia/allocator.go: "must be multiple of 100", "cores or memory zero is not
// permitted"; a whole card's memory is charged whatever the pod asks for. MPS as the platform offers it: the same.
inline constexpr amounts share_or_whole{.max = 99, .whole = 100, .words = "engine.legal.share_or_whole"};
inline constexpr amounts hundred_or_none{.min = 0, .max = 100, .words = "engine.legal.hundred_or_none"};
inline constexpr amounts percent_of_card{.max = 100, .words = "engine.legal.percent_of_card"};

// gpu-manager, README: more than its share while no one else computes. Whole cards have no library in between that
// could hold them below their own speed.
inline constexpr pod_amount core_limit{
    .name = "tencent.com/vcuda-core-limit", .max = 100, .words = "engine.legal.core_limit"};
// ACK: over how many cards the memory is spread, evenly.
inline constexpr pod_amount card_count{
    .name = "aliyun.com/gpu-count", .label = true, .min = 1, .divides = true, .words = "engine.legal.card_count"};

/// All of them, each once.
inline constexpr resource_key resource_keys[] = {
    {.key = "nvidia.com/gpu", .managed = true},
    {.key = "nvidia.com/gpu.shared", .managed = true},
    {.key = "nvidia.com/mps-core", .legal = share_or_whole, .partner = "nvidia.com/mps-memory", .managed = true},
    {.key = "nvidia.com/mps-memory", .partner = "nvidia.com/mps-core", .managed = true, .unit_mib = 1024},
    {.key = "tencent.com/vcuda-core",
     .legal = share_or_whole,
     .partner = "tencent.com/vcuda-memory",
     .managed = true,
     .on_pod = core_limit},
    {.key = "tencent.com/vcuda-memory", .partner = "tencent.com/vcuda-core", .managed = true, .unit_mib = 256},
    {.key = "nvidia.com/gpualloc", .managed = true},
    {.key = "nvidia.com/gpumem", .managed = true, .offered = false, .unit_mib = 1},
    {.key = "nvidia.com/gpucores", .legal = hundred_or_none, .managed = true, .offered = false},
    {.key = "nvidia.com/gpumem-percentage",
     .legal = percent_of_card,
     .managed = true,
     .offered = false,
     .instead_of = "nvidia.com/gpumem"},
    {.key = "aliyun.com/gpu-mem", .managed = true, .unit_mib = 1024, .on_pod = card_count},
    {.key = "aliyun.com/gpu-count", .managed = true, .offered = false},
    {.key = "aliyun.com/gpu-core.percentage",
     .legal = {.min = 5, .max = 100, .step = 5, .words = "engine.legal.fives"},
     .managed = true,
     .offered = false},
    {.key = "nvidia.com/priority", .legal = {.min = 0, .max = 1, .words = "engine.legal.flag"}},
    {.key = "aliyun.com/gpu"},
    {.key = "volcano.sh/vgpu-number"},
    {.key = "volcano.sh/vgpu-memory", .unit_mib = 1},
    {.key = "volcano.sh/vgpu-memory-percentage", .legal = percent_of_card, .instead_of = "volcano.sh/vgpu-memory"},
    {.key = "volcano.sh/vgpu-cores", .legal = hundred_or_none},
    {.key = "tke.cloud.tencent.com/qgpu-core",
     .legal = {.min = 5, .max = 95, .step = 5, .whole = 100, .words = "engine.legal.fives_or_whole"},
     .partner = "tke.cloud.tencent.com/qgpu-memory"},
    {.key = "tke.cloud.tencent.com/qgpu-memory", .partner = "tke.cloud.tencent.com/qgpu-core", .unit_mib = 1024},
};

/// Null for any other key.
constexpr const resource_key* resource_key_of(std::string_view key) noexcept {
  const auto* match = std::ranges::find(resource_keys, key, &resource_key::key);
  return match == std::end(resource_keys) ? nullptr : match;
}

/// "MiB", "256 MiB", "GiB"; empty for a key that counts no memory.
constexpr std::string_view unit_of(const resource_key& resource_key) noexcept {
  return resource_key.unit_mib == 0      ? ""
         : resource_key.unit_mib == 1    ? "MiB"
         : resource_key.unit_mib == 1024 ? "GiB"
                                         : "256 MiB";
}

/// True for a name that carries an amount there.
constexpr bool is_pod_amount(std::string_view name, bool label) noexcept {
  return std::ranges::any_of(resource_keys, [&](const resource_key& resource_key) {
    return !name.empty() && resource_key.on_pod.name == name && resource_key.on_pod.label == label;
  });
}

}  // namespace quota
