// quartermaster version

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "cli/verbs.hpp"

namespace cli {

std::string version_line() { return "quartermaster " QUARTERMASTER_VERSION; }

void add_version(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "version", "Print the version and the Kubernetes versions it supports");
  auto format = std::make_shared<std::string>("text");
  add_option(*verb, "-o,--output", *format, "text or json")->check(choice({"text", "json"}));
  verb->callback([format, &rc] {
    if (*format == "json") {
      const nlohmann::json out = {{"version", QUARTERMASTER_VERSION},
                                  {"kubernetes", {{"from", "1.30"}, {"to", "1.37"}}}};
      std::cout << out.dump() << "\n";
    } else {
      std::cout << version_line() << " (Kubernetes 1.30 to 1.37)\n";
    }
    rc = 0;
  });
}

}  // namespace cli
