#pragma once
// The cards of a node as the engine sees them, and what the node's device plugins make of them. Plain values: the part
// that reads the API fills them in. Memory is in MiB, compute in hundredths of a card ("cores", 100 a card).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quota {

/// What hands out the cards of a node; one bit each. Of pgpu, slots and share a node has at most one, because each has
/// a meaning of its own for nvidia.com/gpu (card, slot, replica); where there are more the first of this list counts.
enum class mode : std::uint16_t {
  pgpu = 1,            ///< NVIDIA's plugin, whole cards
  vgpu = 2,            ///< shares by cores and memory
  mps = 4,             ///< shares by MPS
  slots = 8,           ///< slots of cards, with memory and cores of each
  share = 16,          ///< NVIDIA's plugin with replicas of each card
  memory_shares = 32,  ///< shares by memory, spread evenly over as many cards as the pod says
  topology = 64,       ///< ACK's whole cards
  volcano = 128,       ///< Volcano's slots
  qgpu = 256,          ///< qGPU
};

/// On such a node the plugin picks any free card by itself: no one tells it which, and no one learns which it was.
constexpr bool picks_cards(mode mode) { return mode == mode::pgpu || mode == mode::share || mode == mode::topology; }

/// Over how many cards a container's memory is spread stands on the pod.
constexpr bool spreads_memory(mode mode) { return mode == mode::memory_shares; }

/// How well a container is kept within its part of a card, the weakest first.
enum class isolation : std::uint8_t {
  none,       ///< no one holds it (replicas; memory counted by the scheduler only)
  soft,       ///< a library in the container or a driver next to NVIDIA's
  mps,        ///< NVIDIA's MPS server
  driver,     ///< its memory by the driver itself, its compute by the MPS server
  mig,        ///< the card itself
  exclusive,  ///< the card is its own
};

/// How a node's amounts are to be read.
struct service {
  std::uint16_t modes = 0;         ///< bits of `mode`; 0: the node serves no cards
  std::int32_t default_cards = 1;  ///< of a slot request without a count, where a webhook adds it; 0: a count is needed
  /// The plugin that shares cards by time refuses a container that asks for two shares (failRequestsGreaterThanOne).
  bool one_replica = false;
  std::int32_t default_memory_mib = 0;  ///< of a slot without memory; 0: all memory of the card
  std::int32_t default_cores = 0;       ///< of a slot without cores, 0 to 100
  std::int32_t memory_unit_mib = 1024;  ///< of memory_shares, one of the amount: 1024 or 1
  /// The plugin reads the number of one card from a pod, and finds the pod by one container's amount
  /// (allocate.go: getGPUMemoryFromPodResource; podutils.go: strconv.Atoi). On a node of one card it looks for neither.
  bool one_index = false;
  /// A container's shares are held by one server, and a server serves one card: whole cards beyond one are refused.
  bool one_card = false;

  /// Of the keys by which one mode can be asked, those the kubelet does not offer: they fit nowhere (`offered`).
  std::uint8_t withheld = 0;
  /// How shares are kept apart, where the mode alone does not say.
  std::optional<isolation> held_by{};

  /// The plugin takes cards by a rule of its own when the kubelet asks it: a placement is foretold (forecast.hpp).
  bool plugin_chooses = false;

  bool has(mode mode) const { return (modes & static_cast<std::uint16_t>(mode)) != 0; }
  friend bool operator==(const service&, const service&) = default;
};

/// Keys that mean the same on a node of one mode; a node offers one of them. One bit each of service::withheld.
inline constexpr std::array<std::string_view, 3> alternatives{"nvidia.com/gpu", "nvidia.com/gpualloc",
                                                              "nvidia.com/gpu.shared"};

struct card {
  std::string uuid;
  std::string model;
  std::string type{};             ///< the plugin's own name of the model; empty: the model
  std::int64_t memory_mib = 0;    ///< what it has; a whole card's is all of it
  std::int32_t numa = -1;         ///< -1: not known
  std::int32_t max_sharers = 16;  ///< how many shares it may have at once: MPS 48 or 16, slots, replicas
  bool healthy = true;
  bool cordoned = false;    ///< taken out of use by a person: nothing new
  bool mig = false;         ///< cut by MIG: neither whole nor shared here
  std::int32_t minor = -1;  ///< N of /dev/nvidiaN; -1: its place among the node's cards
  /// What may be given out of its memory in shares, in hundredths of what it has: more than 100 where someone has
  /// switched on that shares may be larger together than the card.
  std::int32_t memory_scale = 100;

  std::int64_t lendable_mib() const {
    return memory_scale == 100 ? memory_mib : memory_mib / 100 * memory_scale + memory_mib % 100 * memory_scale / 100;
  }
  bool usable() const { return healthy && !cordoned && !mig; }
  friend bool operator==(const card&, const card&) = default;
};

/// An amount of a plain counted key: a declared resource the vocabularies do not know.
struct count {
  std::string key;
  std::int64_t amount = 0;

  friend bool operator==(const count&, const count&) = default;
};

/// How two cards of a node reach each other over PCI, as `nvidia-smi topo -m` has it; the closest last.
enum class path : std::uint8_t {
  unknown,
  system,       ///< SYS: between NUMA nodes
  numa_node,    ///< NODE: between host bridges of one NUMA node
  host_bridge,  ///< PHB
  bridges,      ///< PXB: more than one PCI bridge
  bridge,       ///< PIX: one PCI bridge at most
};
struct link {
  path pci = path::unknown;
  std::uint8_t nvlinks = 0;  ///< between the two, in addition to PCI

  friend bool operator==(const link&, const link&) = default;
};

enum class policy : std::uint8_t {
  binpack,  ///< fill cards and nodes one after the other; cards without a share are kept for those who need them whole
  spread,   ///< the emptiest first
};

struct node_inventory {
  std::string name;
  service serves;
  std::vector<card> cards;          ///< the first `max_cards` of them are used
  std::vector<count> counts;        ///< what the node has of counted keys
  std::optional<policy> placement;  ///< the node's own (ack.node.gpu.placement); wins over the caller's for shares
  std::string pool{};               ///< empty: in none
  /// What hands out its cards is being replaced: no pod is placed here. What is there stays booked.
  bool changes_mode = false;
  std::vector<link> links{};  ///< of every two cards, row after row; of another size than cards x cards: not known

  /// Of cards a and b; unknown where the node does not say.
  link between(std::size_t a, std::size_t b) const {
    return links.size() == cards.size() * cards.size() ? links[a * cards.size() + b] : link{};
  }
  friend bool operator==(const node_inventory&, const node_inventory&) = default;
};

/// Cards of one node that are looked at.
inline constexpr std::size_t max_cards = 128;

}  // namespace quota
