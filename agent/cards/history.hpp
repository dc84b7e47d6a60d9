#pragma once
// What the agent knows of its cards over time: a card that no longer answers keeps its facts and is reported as lost,
// and a card with a fatal XID stays out of use until its driver is loaded again. Pure: time and events are arguments.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/cards/inventory.hpp"

namespace agent::cards {

/// What has become of one XID.
struct xid_note {
  std::string card;  ///< UUID
  std::uint64_t xid = 0;
  bool withdraws = false;  ///< the card was in order before, and gets nothing new from now on
};

class history {
 public:
  /// What an earlier agent of this node reported, since the same boot of the machine.
  void recall(const std::vector<card>& cards);
  /// The driver was loaded again: all cards begin again.
  void forget_defects();
  /// A person says that the card is in order again: its XID is over. Nothing else can be declared over.
  void restore(const std::string& uuid) { xids_.erase(uuid); }
  xid_note see(const std::string& uuid, std::uint64_t xid);
  /// The cards whose MPS has failed: nothing new until it is in order again.
  void take_without_mps(std::set<std::string> cards) { without_mps_ = std::move(cards); }
  /// The cards on which the driver limits the memory of pods.
  void take_limited(std::set<std::string> cards) { limited_ = std::move(cards); }
  /// The inventory with the cards that are lost, and with what is wrong with each. A card that was in order and that
  /// the driver no longer counts was taken out, and is not reported. A lost one stays lost: NVML counts cards when it
  /// starts, and not those. One that answers again has to do so for a while. Without a driver all cards that were
  /// known are reported as such.
  /// @param now since any moment, in milliseconds
  inventory complete(inventory seen, std::chrono::milliseconds now);
  /// When the same inventory will be completed otherwise: a lost card will have answered for long enough, or a warning
  /// will have been gone for long enough.
  std::optional<std::chrono::milliseconds> due() const;
  /// How long a lost card has to answer: one that comes and goes stays lost.
  static constexpr std::chrono::milliseconds steady{10'000};
  /// How long a warning stays that NVML no longer gives: clocks go down and up again with every load.
  static constexpr std::chrono::milliseconds fading{300'000};

 private:
  void keep_warnings(card& card, std::chrono::milliseconds now);

  std::map<std::string, card> known_;          ///< by UUID, without defects
  std::map<std::string, std::uint64_t> xids_;  ///< the first fatal one of each card
  std::set<std::string> lost_, without_mps_, limited_;
  std::map<std::string, std::chrono::milliseconds> back_;  ///< lost cards that answer, since when
  std::map<std::string, quota::link> links_;               ///< by "UUID UUID", also of cards that are lost
  std::map<std::string, std::set<std::string>> warnings_;  ///< by UUID, as they are reported
  /// By UUID and warning: those that NVML no longer gives, since when.
  std::map<std::pair<std::string, std::string>, std::chrono::milliseconds> fading_;
};

}  // namespace agent::cards
