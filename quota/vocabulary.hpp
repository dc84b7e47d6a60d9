#pragma once
// From the limits people write to what a container needs of cards. Every vocabulary is rows of one table
// (vocabulary.cpp); what a row means depends on the node's modes, so a pod is read once for each kind of node. Nothing
// here allocates; views point into what the caller gave or into the table.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quota/inventory.hpp"
#include "quota/resource_keys.hpp"

namespace quota {

/// An annotation or label that says no amount (quota::pod_amount_in). No such number is legal, and it is refused in
/// words.
inline constexpr std::int64_t not_a_number = -1;

/// One limit of a container. What is written on the pod (quota::pod_amount) is handed over the same way.
struct amount {
  std::string_view key{};
  std::int64_t value = 0;
};

/// What one container needs of cards: `cards` whole ones, or `cards` equal shares.
struct need {
  std::uint32_t cards = 0;
  std::uint16_t container = 0;  ///< index in what was given
  bool whole = false;
  bool distinct = true;             ///< false: shares may lie on one card (replicas)
  std::int32_t cores = 0;           ///< of each card; 0: whatever the others leave
  std::int32_t burst_cores = 0;     ///< vcuda-core-limit: up to so many when no one else computes; 0: not asked for
  std::int32_t memory_percent = 0;  ///< of each card's memory, instead of memory_mib; 0: memory_mib counts
  std::int64_t memory_mib = 0;      ///< of each card
  mode node_mode{};                 ///< whose words it uses

  /// Rounded down.
  std::int64_t memory_on(const card& card) const {
    return memory_percent > 0 ? card.lendable_mib() * memory_percent / 100 : memory_mib;
  }
};

/// A plain counted key, summed over the containers.
struct counted_key {
  std::string_view key{};
  std::int64_t amount = 0;
};

/// What a pod needs of one kind of node, all of it at the same time. What an init container needs is in it only as far
/// as it goes beyond the others (`read`).
class demand {
 public:
  static constexpr std::size_t max_needs = 64, max_counts = 16;

  std::span<const need> needs() const { return {needs_.data(), needs_size_}; }
  std::span<const counted_key> counts() const { return {counts_.data(), counts_size_}; }
  bool nothing() const { return needs_size_ == 0 && counts_size_ == 0; }

  /// False where there is no room.
  bool add(const need& need);
  bool add(const counted_key& count);
  /// Share `index` becomes as large as `other`, where it is not.
  void grow(std::size_t index, const need& other);
  void clear() { needs_size_ = counts_size_ = 0; }

 private:
  std::array<need, max_needs> needs_;
  std::array<counted_key, max_counts> counts_;
  std::size_t needs_size_ = 0, counts_size_ = 0;
};

enum class wrong : std::uint8_t {
  not_legal,      ///< `value` of `key`; `below` and `above` are the nearest legal ones
  needs_partner,  ///< `key` needs `other` next to it
  mixed,          ///< `key` and `other` cannot be in one container
  not_served,     ///< `key` asks for cards in words this node's modes do not know
  too_many,       ///< more containers or keys than are looked at: `value` of at most `above`
};

/// Which amounts are legal.
enum class legal_amounts : std::uint8_t {
  of_key,              ///< those that the table says of the key
  multiples_of_count,  ///< multiples of the number of cards that the pod names
  one_share,           ///< 1: the plugin refuses more, because more shares are not more compute
  one_card,            ///< up to 100: what holds a container's shares serves one card
};

struct refusal {
  wrong kind{};
  std::uint16_t container = 0;
  std::string_view key{};
  std::int64_t value = 0;
  std::int64_t below = -1;  ///< -1: there is none
  std::int64_t above = -1;
  std::string_view other{};
  legal_amounts legal{};
};

/// The limits of one container.
struct limits : std::span<const amount> {
  using std::span<const amount>::span;
  /// Runs to its end before the next container starts. A sidecar does not.
  bool init = false;
};

/// Reads a pod for nodes of this service, its containers in the order in which they start. Amounts of 0 are no request;
/// keys without a slash (cpu, memory) are skipped; a key the table does not know is a plain count, so hand over
/// only keys that are declared. Cost: containers x limits x rows of the table, no allocation.
///
/// Whole cards and counts are reckoned as Kubernetes does: the larger of what all others need together and what an init
/// container needs next to the sidecars that started before it. What is beyond the others is a need of that container.
/// The share of an init container is lent by a later container's (of another init container's too: one ends before the
/// next starts), which is as large as the larger of both then. Where no later one has as many shares, and where the
/// plugin chooses (it would foretell another card for more), it counts in addition: too much, never too little.
/// @return nothing where `out` was filled, else why this pod can never run on such a node.
std::optional<refusal> read(std::span<const limits> containers, const service& service, demand& out);

/// True for a key of the table, whatever the node.
bool known(std::string_view key);
/// Bits of the modes in which a node can be asked for cards by this key; 0 where none is.
std::uint16_t modes_of(std::string_view key);

/// So many bytes of a key that counts memory, in its unit, rounded up.
std::int64_t in_unit(const resource_key& resource_key, std::int64_t bytes);

/// Not a legal amount of this key on such a node? For one amount alone, as a declaration's default is judged.
std::optional<refusal> judge(const amount& amount, const service& service);

}  // namespace quota
