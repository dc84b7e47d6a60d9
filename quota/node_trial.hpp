#pragma once
// A node as it would be: a copy of what is given out of it, to which holdings are added and from which they are taken.
// The ledger stays as it is. Allocates.

#include <cstdint>
#include <vector>

#include "quota/ledger.hpp"

namespace quota {

class node_trial {
 public:
  explicit node_trial(const node_view& on)
      : on_(on.what), used_(on.used.begin(), on.used.end()), counts_(on.counts_used.begin(), on.counts_used.end()) {}

  void add(const holding& what) { apply(*on_, what, 1, used_, counts_); }
  void remove(const holding& what) { apply(*on_, what, -1, used_, counts_); }
  /// Valid as long as this and the ledger's node.
  node_view view() const { return {on_, used_, counts_}; }

 private:
  const node* on_;
  std::vector<card_use> used_;
  std::vector<std::int64_t> counts_;
};

}  // namespace quota
