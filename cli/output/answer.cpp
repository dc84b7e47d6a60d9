#include "cli/output/answer.hpp"
#include "text/yaml/writer.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::size_t longest_reason = 16'384;

}  // namespace

void add_language(CLI::App& verb, std::string& language) {
  language = language_of_environment();
  add_option(verb, "--lang", language, "en or zh; without it that of the environment (LC_ALL, LC_MESSAGES, LANG)")
      ->check(choice({"en", "zh"}));
}

void add_answer_options(CLI::App& verb, std::string& language, std::string& output,
                        const std::vector<std::string>& more) {
  add_language(verb, language);
  const auto for_people = output == "text" ? "text" : "table";
  std::vector<std::string> forms{"text", "table", "wide"};
  forms.insert(forms.end(), more.begin(), more.end());
  forms.insert(forms.end(), {"json", "yaml"});
  std::string names;
  for (const auto& form : more) names += form + ", ";
  add_option(verb, "-o,--output", output,
             "text (or table), wide (says more where there is more), " + names + "json or yaml")
      ->transform(
          [for_people](const std::string& value) { return value == "text" || value == "table" ? for_people : value; })
      ->check(choice(forms))
      ->capture_default_str();
}

void add_unused_namespace(CLI::App& verb) {
  const auto unused = std::make_shared<std::string>();
  verb.add_option_function<std::string>(
          "-n,--namespace", [unused](const std::string& value) { *unused = value; },
          "Without effect: nothing of a namespace is read here")
      ->check(namespace_name());
  verb.add_flag_callback("-A,--all-namespaces", [] {})->group("");  // a habit of kubectl; not in the help
}

bool printed_as_data(const nlohmann::ordered_json& answer, std::string_view output, std::ostream& out) {
  if (output == "yaml") {
    out << text::yaml::write(answer);
    return true;
  }
  if (output != "json") return false;
  out << answer.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  return true;
}

int failed(std::string_view reason, std::ostream& err, int code) {
  // Names, files and servers may say anything.
  err << "quartermaster: " << text::shown(reason, longest_reason) << "\n";
  return code;
}

int failed(const text::phrase& reason, text::language locale, std::ostream& err, int code) {
  failed(words_of(reason, locale), err, code);
  err << grant_lines(reason, locale);
  return code;
}

std::string grant_lines(const text::phrase& refused, text::language locale) {
  std::string out;
  for (const auto& [name, values, grant] : refused.arguments) {
    if (name != "grant") continue;
    out += "  " + text::shown(words_of(grant, locale), longest_reason) + "\n";
    for (const auto& argument : grant.arguments)
      if (argument.name == "command") out += "    " + text::shown(argument.values.front(), longest_reason) + "\n";
  }
  return out;
}

}  // namespace cli
