#pragma once
// How a verb answers: --lang and -o, alike for every verb that answers a question.

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "text/messages.hpp"
#include "text/phrase.hpp"

namespace CLI {
class App;
}

namespace cli {

struct report_style {
  std::string output = "text";  ///< text, wide, json or yaml
  std::string language = "en";

  bool as_data() const { return output == "json" || output == "yaml"; }
};

/// Adds --lang (en, zh) and -o (text, table, wide, json, yaml). `text` and `table` are one form: whichever `output`
/// holds by default is what `output` says for both. `wide` is the same where a verb has no more to show. Both strings
/// must outlive parsing. `more` are forms that only this verb has.
void add_answer_options(CLI::App& verb, std::string& language, std::string& output,
                        const std::vector<std::string>& more = {});

/// --lang of a verb that has text alone; without it `language` is that of the environment.
void add_language(CLI::App& verb, std::string& language);

/// Adds -n to a verb that reads nothing of a namespace: taken as kubectl takes it for nodes, and without effect.
void add_unused_namespace(CLI::App& verb);

/// The language of --lang.
struct bilingual {
  bool zh;
  explicit bilingual(std::string_view language) : zh(language == "zh") {}
  text::language locale() const { return zh ? text::language::zh : text::language::en; }
  /// The words of a key (text/messages.hpp).
  std::string message(std::string_view key, std::initializer_list<text::parameter> parameters = {}) const {
    return text::message(key, locale(), parameters);
  }
};

/// Prints what programs read, or returns false where people do.
bool printed_as_data(const nlohmann::ordered_json& answer, std::string_view output, std::ostream& out);

/// Says in one line why there is no answer. Returns `code`, the exit code.
int failed(std::string_view reason, std::ostream& err, int code = 1);
/// Below it the roles that would allow what was refused, with their commands, each on a line of its own.
int failed(const text::phrase& reason, text::language locale, std::ostream& err, int code = 1);
/// These lines; empty where nothing was refused.
std::string grant_lines(const text::phrase& refused, text::language locale);

}  // namespace cli
