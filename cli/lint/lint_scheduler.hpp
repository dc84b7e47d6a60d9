#pragma once
// `quartermaster lint scheduler-config`: the configuration of a kube-scheduler, and the manifest it is started by,
// judged without running it (scheduler_config).

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "text/phrase.hpp"

namespace cli {

struct lint_scheduler_options {
  std::vector<std::string> files, plugins;
  std::string manifest, kubernetes, language = "en", output = "text";
  bool strict = false, in_cluster = false;
};

/// "1.36", "v1.36.3" -> 36; nothing for anything else.
std::optional<int> minor_of_version(std::string_view text);
/// The message about such a --kubernetes.
text::phrase not_a_version(std::string_view text);

/// The exit code of the verb: 0 clean, 1 unreadable, 2 wrong usage, 3 found errors (warnings too when `strict`).
int run_lint_scheduler(const lint_scheduler_options& options, std::istream& input, std::ostream& out,
                       std::ostream& err);

}  // namespace cli
