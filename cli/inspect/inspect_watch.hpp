#pragma once
// `inspect nodes --watch`: the table again whenever it changed. What is printed is decided here, without a cluster or a
// clock; cli/inspect/inspect_watch.cpp also has the loop that reads.

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/inspect/inspect_fleet.hpp"
#include "cli/views/view_reply.hpp"

namespace cli {

class node_watch {
 public:
  /// `redraws`: a terminal, whose screen is cleared and gets the whole table. Otherwise, as kubectl -w, the table first
  /// and then the rows that are new or different; a node that is no longer listed is a row with the reason Gone.
  node_watch(look_options options, bool redraws) : options_(std::move(options)), redraws_(redraws) {}

  /// What is to be printed now; empty: nothing has changed.
  std::string changes(const std::vector<node_row>& rows);

 private:
  std::string text_of(const std::vector<node_row>& rows) const;

  look_options options_;
  bool redraws_, is_first_ = true;
  std::string screen_;
  std::map<std::string, std::string> known_;  ///< by node: its row, printed alone
};

/// What of nodes the console's server is asked by who may not read them.
view_question nodes_question(const look_options& options);

/// Until SIGINT or SIGTERM (0). 1: the first read failed; a later one that fails is a line on `err`, and is tried
/// again. Who may not read nodes and pods has the table of the console's server.
int run_watch_nodes(const look_options& options, bool redraws, std::ostream& out, std::ostream& err);

}  // namespace cli
