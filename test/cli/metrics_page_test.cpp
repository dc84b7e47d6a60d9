// docs/metrics.md has every metric that the programs register, with its type, and no other. test/monitoring compares
// the labels of the real /metrics with the same page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "agent/agent.hpp"
#include "cli/controller/controller.hpp"

namespace {

using types_by_name = std::map<std::string, std::string>;

types_by_name served(const std::string& page) {
  types_by_name out;
  static const std::regex line("# TYPE ([a-z_]+) ([a-z]+)");
  for (std::sregex_iterator match(page.begin(), page.end(), line), end; match != end; ++match)
    out[(*match)[1]] = (*match)[2];
  return out;
}

/// Rows of the tables of this section, and of the one for all programs: | `name` | type | ...
types_by_name documented(const std::string& section) {
  std::ifstream file(SOURCE_ROOT "/docs/metrics.md");
  types_by_name out;
  bool is_inside = false;
  static const std::regex row("\\| `([a-z_]+)` \\| ([a-z]+) \\|.*");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_inside = line == "## " + section || line == "## Every program";
    if (std::smatch match; is_inside && std::regex_match(line, match, row)) out[match[1]] = match[2];
  }
  return out;
}

TEST(metrics_page, S75_has_every_metric_of_the_operator) {
  cli::controller_options options;
  options.ns = "quartermaster";
  options.webhook_address = options.extender_address = options.predicates_address = "127.0.0.1:0";
  EXPECT_THAT(documented("The operator"), testing::ContainerEq(served(cli::metrics_page(options))));
}

TEST(metrics_page, S75_has_every_metric_of_the_agent) {
  agent::options options;
  options.node = "gpu-1";
  options.metrics = {.port = 1, .pod_resources = "/pod-resources/kubelet.sock"};
  const agent::card_agent driver(options, {});
  EXPECT_THAT(documented("The agent for cards"), testing::ContainerEq(served(driver.metrics_page())));
}

}  // namespace
