#pragma once
// A node as it would be: a copy of what is given out of it, to which holdings are added and from which they are taken.
// The ledger stays as it is. Allocates.

#include <cstdint>
#include <vector>

#include "quota/ledger.hpp"

namespace quota {

class node_trial {
 public:
  explicit node_trial(const node_view& node_view)
      : node_(node_view.inventory),
        used_(node_view.used.begin(), node_view.used.end()),
        counts_(node_view.counts_used.begin(), node_view.counts_used.end()) {}

  void add(const holding& holding) { apply(*node_, holding, 1, used_, counts_); }
  void remove(const holding& holding) { apply(*node_, holding, -1, used_, counts_); }
  /// Valid as long as this and the ledger's node.
  node_view view() const { return {node_, used_, counts_}; }

 private:
  const node_inventory* node_;
  std::vector<card_use> used_;
  std::vector<std::int64_t> counts_;
};

}  // namespace quota
