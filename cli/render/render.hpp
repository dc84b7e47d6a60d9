#pragma once
// `quartermaster render declaration`: a ConfigMap made of flags, linted before it is printed. What is not given is left
// out; what lint has a word against is refused in one line.

#include <ostream>
#include <string>

namespace cli {

struct declaration_options {
  std::string key, group, dialect = "cpaas", ns = "kube-public";
  std::string default_value, limits = "optional", requests = "disabled", unit;
  std::string label_en, label_zh, description_en, description_zh;
  std::string related, excluded, runtime_class;  ///< lists by commas
  bool ignore_node_check = false, disabled = false;
  std::string language = "en";  ///< of a refusal
  std::string output = "yaml";  ///< or json
};

/// The exit code of the verb: 0 printed, 2 refused.
int run_render_declaration(const declaration_options& options, std::ostream& out, std::ostream& err);

}  // namespace cli
