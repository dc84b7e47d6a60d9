#pragma once
// `quartermaster verify [node]`: walks nodes from their label to what pods can ask for and lists everything that is
// wrong, in order, with what to do. The walk is reconcilers/verify/verify.hpp (pure); here are fetching and printing.
// Reads only, unless `--allocate` tries a pod (cli/verify/verify_allocate.hpp). `--scheduler` walks nothing: it tries a
// pod on a kube-scheduler (cli/verify/verify_scheduler.hpp).

#include <ostream>
#include <string>

#include "cli/cluster/cluster.hpp"
#include "cli/verify/verify_allocate.hpp"
#include "cli/verify/verify_scheduler.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli {

struct verify_options {
  std::string node;  ///< empty: every node that has or asks for a mode, and the cluster around them
  std::string ns;    ///< the operator's; empty: found by its lease
  std::string language = "en", output = "table";
  std::string snapshot;  ///< a file in place of the cluster
  bool strict = false;   ///< exit code 3 for all that is not good
  bool allocate = false;
  bool scheduler = false;
  allocate_options allocation;
  scheduler_test_options scheduler_with;
  cluster_options cluster;
};

/// table: what is wrong; wide: every step; json and yaml: every step, in both languages.
void print(const reconcilers::verify::report& report, const verify_options& options, std::ostream& out);

/// The exit code of the verb: 0 nothing wrong, 1 could not look, 3 found problems.
int run_verify(const verify_options& options, std::ostream& out, std::ostream& err);

}  // namespace cli
