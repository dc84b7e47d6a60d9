#pragma once
// What the console's server says to a person who may see one namespace alone: API group view.quartermaster.io, where
// the chart has installed it. A verb asks it when the API server refuses it the whole picture.

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "cli/output/listing.hpp"

namespace cli {

struct view_question {
  std::string ns, plural;
  std::string name = {};                                       ///< empty: all there are
  std::vector<std::pair<std::string, std::string>> more = {};  ///< parameters next to those of the style
};

/// As the verb would have printed it: standard output, standard error, and its exit code.
struct view_reply {
  std::string text, note;
  int code = 0;
};

/// Nothing: there is no such API, it does not answer, or the person may not ask it either.
kube::task<std::optional<view_reply>> ask_view(kube::transport& transport, view_question question, listing_style style);
std::optional<view_reply> view_reply_of(const cluster_options& cluster, const view_question& question,
                                        const listing_style& style);

/// With one line that says where it comes from. @return its exit code
int print(const view_reply& reply, text::language locale, std::ostream& out, std::ostream& err);

}  // namespace cli
