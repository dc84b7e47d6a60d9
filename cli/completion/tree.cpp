#include "cli/completion/tree.hpp"

#include <CLI/CLI.hpp>

#include "cli/alerts/alerts.hpp"

namespace cli {

std::vector<CLI::App*> shown_verbs(CLI::App& verb) {
  return verb.get_subcommands([](CLI::App* below) { return !below->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(CLI::App& verb) {
  const auto out = verb.get_options(
      [](const CLI::Option* option) { return option->nonpositional() && !option->get_group().empty(); });
  return {out.begin(), out.end()};
}

std::vector<const CLI::Option*> arguments_of(CLI::App& verb) {
  const auto out = verb.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return {out.begin(), out.end()};
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();  // TEXT:{en,zh}
  if (type == "ALERT") {                     // too many for the help
    std::vector<std::string> out;
    for (const auto& alert : known_alerts()) out.emplace_back(alert.name);
    return out;
  }
  const auto begin = type.find(":{"), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool takes_file(const CLI::Option& option) { return option.get_type_name().starts_with("FILE"); }

std::string long_name(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return option.get_snames().empty() ? option.get_name(true) : "-" + option.get_snames().front();
}

}  // namespace cli
