#pragma once
// The rules of cards once more, in the plainest words and by another road: requests by hand for each vocabulary, fit by
// trying every assignment. Shares no code with the engine; small nodes only.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace brute {

using request = std::map<std::string, long>;  // one container

struct ask {
  int copies = 0;
  bool whole = false;
  bool apart = true;  // each copy on another card
  int cores = 0;
  long mib = 0;
  int percent = 0;         // of the card, instead of mib
  bool foretold = false;   // where the plugin chooses, it puts it where it likes
  bool unsteered = false;  // the plugin picks any card
};

struct piece {
  int container = 0;
  std::string card;
  bool whole = false;
  int cores = 0;
  long mib = 0;
};

struct card {
  std::string uuid;
  long mib = 0;
  int seats = 0;
  bool in_use_allowed = true;
  std::string model{};
  // Where it hangs: machine half, NUMA node, host bridge, switch. Two cards are as far as the first that differs.
  std::vector<int> slot{};
};

struct node {
  std::set<std::string> modes;
  std::vector<card> cards;
  std::map<std::string, long> counts;
  std::string pool{};
  bool plugin_chooses = true;  // of vgpu
};

/// A pod's annotations and labels that choose cards.
using notes = std::map<std::string, std::string>;
bool wanted(const node& node, const card& card, const notes& notes);

struct pod {
  std::string node;
  std::vector<piece> pieces;
  request counts;
  bool confirmed = false;
  long until = 0;
};

struct world {
  std::map<std::string, node> nodes;
  std::map<std::string, pod> pods;

  /// Every piece that lies on the card.
  std::vector<piece> on(const std::string& uuid) const;
  long counted(const std::string& node, const std::string& key) const;
  /// Could these pieces join? By the rules for what may lie together.
  bool sound(const card& card, const std::vector<piece>& there, const std::vector<piece>& joining) const;
  bool accepts(const std::string& node, const std::vector<piece>& pieces, const request& counts) const;
  bool fits(const std::string& node, const std::vector<std::optional<ask>>& asks, const request& counts,
            const notes& notes = {}) const;
  /// Where a plugin that chooses puts what it is asked for, container after container; nothing where a card it takes
  /// cannot be.
  std::optional<std::vector<piece>> foretold(const std::string& node, const std::vector<std::optional<ask>>& asks,
                                             const notes& notes = {}) const;
};

struct understood {
  std::vector<std::optional<ask>> asks;  // one a container; none: it asks for no card
  request counts;
};
/// Nothing where the words are wrong on such a node.
std::optional<understood> understand(const std::vector<request>& containers, const std::set<std::string>& modes);

/// Which of the free cards lie best together: every set there is, by the rules in topology.hpp. `near[a][b]` is how
/// well two cards reach each other.
struct lying {
  int numa = -1;
  long mib = 0;
  bool free = true;
};
std::vector<int> together(const std::vector<lying>& cards, const std::vector<std::vector<int>>& near, int wanted);

}  // namespace brute
