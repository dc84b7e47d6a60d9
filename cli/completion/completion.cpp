#include "cli/completion/completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "cli/completion/tree.hpp"

namespace cli {
namespace {

/// Where the words before the cursor have led to.
struct position {
  CLI::App* verb;
  const CLI::Option* open = nullptr;  ///< its value comes next
  bool only_arguments = false;        ///< after --
};

const CLI::Option* option_named(CLI::App& verb, const std::string& word) {
  const auto options = options_of(verb);
  const auto found = std::ranges::find_if(options, [&](const auto* option) { return option->check_name(word); });
  return found == options.end() ? nullptr : *found;
}

position after(CLI::App& app, std::span<const std::string> words) {
  position out{&app};
  for (const auto& word : words) {
    if (out.open) {
      out.open = nullptr;
    } else if (out.only_arguments) {
      continue;
    } else if (word == "--") {
      out.only_arguments = true;
    } else if (word.starts_with("-")) {
      const auto* option = word.contains('=') ? nullptr : option_named(*out.verb, word);
      if (option && takes_value(*option)) out.open = option;
    } else {
      const auto verbs = shown_verbs(*out.verb);
      const auto next = std::ranges::find_if(verbs, [&](const auto* verb) { return verb->check_name(word); });
      if (next != verbs.end()) out.verb = *next;
    }
  }
  return out;
}

/// What fits the word under the cursor, as it is collected.
struct candidates {
  std::string word, lines;
  bool files = false;

  void add(const std::string& text, const std::string& meaning) {
    if (text.starts_with(word)) lines += text + (meaning.empty() ? "" : "\t" + meaning) + "\n";
  }
  /// The values of an option or argument. `before`: "--lang=" where both are one word.
  void add_values(const CLI::Option& option, const std::string& before = "") {
    for (const auto& choice : choices_of(option)) add(before + choice, "");
    files |= takes_file(option);
  }
};

}  // namespace

std::string completions(CLI::App& app, const std::vector<std::string>& words) {
  candidates found{words.empty() ? "" : words.back(), ""};
  const auto place = after(app, {words.begin(), words.empty() ? words.end() : words.end() - 1});
  const auto equals = found.word.find('=');
  if (place.open) {
    found.add_values(*place.open);
  } else if (!place.only_arguments && found.word.starts_with("-") && equals != std::string::npos) {
    const auto* option = option_named(*place.verb, found.word.substr(0, equals));
    if (option) found.add_values(*option, found.word.substr(0, equals + 1));
  } else if (!place.only_arguments && found.word.starts_with("-")) {
    for (const auto* option : options_of(*place.verb)) found.add(long_name(*option), option->get_description());
  } else {
    if (!place.only_arguments) {
      for (const auto* verb : shown_verbs(*place.verb)) found.add(verb->get_name(), verb->get_description());
    }
    for (const auto* argument : arguments_of(*place.verb)) found.add_values(*argument);
  }
  return found.lines + (found.files ? ":0\n" : ":4\n");
}

}  // namespace cli
