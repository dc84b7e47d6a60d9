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

struct view_outcome {
  std::optional<view_reply> reply;  ///< nothing: there is no such API, it does not answer, or the person may not ask it
  bool is_refused = false;          ///< it is there, and the person may not ask it about this namespace
};
kube::task<view_outcome> ask_view(kube::transport& transport, view_question question, listing_style style);
view_outcome view_reply_of(const cluster_options& cluster, const view_question& question, const listing_style& style);

/// For a person who may not see the whole cluster: the answer about the namespace that `scope` means, with `question`
/// as it is but for that. @return its exit code. Nothing: there is none, and `refused` then names the right that
/// suffices.
std::optional<int> namespace_answer(const cluster_options& cluster, const namespace_scope& scope,
                                    view_question question, const listing_style& style, text::phrase& refused,
                                    std::ostream& out, std::ostream& err);

/// With one line that says where it comes from. @return its exit code
int print(const view_reply& reply, text::language locale, std::ostream& out, std::ostream& err);

}  // namespace cli
