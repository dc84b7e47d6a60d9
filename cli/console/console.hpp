#pragma once
// `quartermaster console`: the page and its API, on a laptop or as a pod of the chart. It watches the cluster and
// writes nothing.

#include <string>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "cli/cluster/prometheus.hpp"

namespace cli::console {

struct console_options {
  std::string listen = "127.0.0.1:8888";
  std::string ns;               ///< where the operator's lease is; empty: found by its name
  std::string metrics_address;  ///< for /metrics and probes; empty: none
  bool metrics_authentication = false;
  std::vector<std::string> hosts;            ///< names by which people reach it, besides localhost
  std::vector<std::string> frame_ancestors;  ///< origins of pages that may show it in a frame
  std::string tls_certificate_file, tls_key_file;
  std::string view_address, view_certificate_file, view_key_file;  ///< of the aggregated API; empty: there is none
  bool audience_only = false;                                      ///< tokens for the API server itself do not sign in
  prometheus_options prometheus;
  std::string log_format = "text";
  std::string log_level;  ///< empty: warn where a link signs in, else info
  std::string language;   ///< of refusals; empty: that of the environment
  cluster_options cluster;
};

/// What is wrong with the options; empty: nothing.
text::phrase problem_of(const console_options& options);
/// Only this machine can reach it: then a link with a random token signs in.
bool signs_in_by_link(const console_options& options);
/// Where a browser on this machine opens the page; `port` is the one that is served.
std::string page_url(const console_options& options, unsigned short port);

/// Until a signal. 0: stopped, 1: failed, 2: wrong usage.
int run_console(console_options options);

}  // namespace cli::console
