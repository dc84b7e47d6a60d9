#pragma once
// `quartermaster top nodes|pods|cards`: what is given out of the cards, most first. The rows are those that the console
// shows. What cards and pods use of it, the exporter says (docs/metrics.md).

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "cli/cluster/picture.hpp"
#include "cli/console/holdings.hpp"
#include "cli/output/listing.hpp"

namespace cli {

struct top_options {
  std::string name;       ///< of one node, or of pods; empty: all
  namespace_scope scope;  ///< of pods
  listing_style style;
  std::string snapshot;
  cluster_options cluster;
};

/// `only`: that node; empty: all.
void top_nodes(const picture& picture, const listing_style& style, std::ostream& out, std::string_view only = {});
void top_cards(const picture& picture, const listing_style& style, std::ostream& out, std::string_view only = {});

}  // namespace cli
