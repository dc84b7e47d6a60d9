#pragma once
// `quartermaster explain alert`: what an alert of the chart means, what to look at and what to do, by its name.

#include <ostream>
#include <string>

namespace CLI {
class App;
}

namespace cli {

struct explain_alert_options {
  std::string name;  ///< in any case, also without Quartermaster before it
  std::string language = "en", output = "text";
};
/// The exit code of the verb: 0 explained, 1 not known.
int run_explain_alert(const explain_alert_options& options, std::ostream& out, std::ostream& err);

/// `explain alert`, below `explain`.
void add_explain_alert(CLI::App& explain, int& rc);

}  // namespace cli
