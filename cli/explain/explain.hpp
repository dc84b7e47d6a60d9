#pragma once
// `quartermaster explain error`: what an error means, how to check and what to do, by code, name or pasted log.
// `quartermaster explain compat`: whether an image of a CUDA version runs on a driver or a node, by which rule, with
// its source. Reads one node at most, changes nothing.

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "kube/projections/node.hpp"

namespace cli {

struct explain_error_options {
  std::vector<std::string> words;  ///< joined with blanks; "-" alone: `input` is read
  std::string language = "en", output = "text";
};
/// The exit code of the verb: 0 explained, 1 not known.
int run_explain_error(const explain_error_options& options, std::istream& input, std::ostream& out, std::ostream& err);

struct explain_compat_options {
  std::string cuda;                      ///< of the image: "12.4"
  std::string node;                      ///< asked of the cluster, or
  std::string driver, capability, card;  ///< given; all empty: what a driver must be
  std::string mode;                      ///< empty: the node's, or whole cards
  std::string language = "en", output = "text";
  cluster_options cluster;
};
/// `node`: the node, where one was named. The exit code of the verb: 0 works, 2 wrong usage, 3 does not work or is not
/// known.
int explain_compat(const explain_compat_options& options, const std::optional<kube::node>& node, std::ostream& out,
                   std::ostream& err);

kube::task<kube::node> read_node(kube::transport& transport, std::string name);
/// As above, and 1 where the node cannot be read.
int run_explain_compat(const explain_compat_options& options, std::ostream& out, std::ostream& err);

}  // namespace cli
