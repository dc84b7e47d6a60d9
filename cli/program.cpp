#include "cli/program.hpp"

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iostream>

#include "cli/completion/completion.hpp"
#include "cli/completion/tree.hpp"
#include "cli/controller/config_file.hpp"
#include "cli/flags/usage.hpp"
#include "cli/flags/word_order.hpp"
#include "cli/output/whole_file.hpp"
#include "cli/verbs.hpp"
#include "controller/log.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

std::vector<CLI::App*> verbs_below(CLI::App& verb) {
  return verb.get_subcommands([](CLI::App*) { return true; });
}

bool takes_arguments(CLI::App& verb) {
  return !verb.get_options([](const CLI::Option* option) { return option->get_positional(); }).empty();
}

/// What people type who know kubectl.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> habits{
    {{"get", "inspect"}, {"list", "inspect"}, {"describe", "explain"}, {"status", "verify"}, {"why", "explain"}}};

/// The verb of these that the word stands for; empty: none is near.
std::string meant_verb(std::string_view word, const std::vector<CLI::App*>& choices) {
  std::vector<std::string> names;
  for (const auto* choice : choices) names.push_back(choice->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto habit = std::ranges::find(habits, word, &std::pair<std::string_view, std::string_view>::first);
  if (habit != habits.end() && std::ranges::find(views, habit->second) != views.end())
    return std::string(habit->second);
  return std::string(text::nearest(word, views));
}

/// How far the words of the command line name verbs, and what is wrong with the next one.
struct command_path {
  std::string path = "quartermaster";
  std::string problem;  ///< empty: CLI11 judges the rest
};

command_path path_of(CLI::App& app, const std::vector<std::string>& words, text::language locale) {
  command_path out;
  auto* verb = &app;
  for (const auto& word : words) {
    const auto choices = verbs_below(*verb);
    if (choices.empty() || word.starts_with("-")) break;
    const auto found = std::ranges::find_if(choices, [&](const auto* choice) { return choice->check_name(word); });
    if (found != choices.end()) {
      verb = *found;
      out.path += " " + verb->get_name();
      continue;
    }
    // A verb that takes arguments next to its own verbs judges the word itself.
    if (takes_arguments(*verb)) return out;
    for (const auto* choice : shown_verbs(*verb)) out.problem += (out.problem.empty() ? "" : ", ") + choice->get_name();
    out.problem = text::message("usage.no_verb", locale, {{"verb", word}, {"verbs", out.problem}});
    if (const auto meant = meant_verb(word, shown_verbs(*verb)); !meant.empty())
      out.problem = text::message("usage.meant", locale, {{"problem", out.problem}, {"verb", out.path + " " + meant}});
    return out;
  }
  return out;
}

/// The verbs below this one, a line each, as a person who typed too little wants to see them.
std::string list_of_verbs(CLI::App& verb) {
  std::size_t widest = 0;
  const auto choices = shown_verbs(verb);
  for (const auto* choice : choices) widest = std::max(widest, choice->get_name().size());
  std::string out;
  for (const auto* choice : choices)
    out += "  " + choice->get_name() + std::string(widest + 2 - choice->get_name().size(), ' ') +
           choice->get_description() + "\n";
  return out;
}

/// The verb that the words ended in.
CLI::App& last_verb(CLI::App& app) {
  auto* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

/// The verb's argument that takes one word and has it; null where there is none.
const CLI::Option* full_argument(CLI::App& verb) {
  for (const auto* option : verb.get_options([](const CLI::Option* entry) { return entry->get_positional(); }))
    if (option->count() > 0 && option->get_items_expected_max() == 1) return option;
  return nullptr;
}

std::string problem_of(CLI::App& app, const CLI::ParseError& wrong, text::language locale) {
  if (wrong.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError))
    return usage_problem(wrong.what(), locale);
  std::string words;  // CLI11's own message has them last first
  bool has_flags = false;
  for (const auto& word : app.remaining(true)) {
    words += (words.empty() ? "" : " ") + word;
    has_flags = has_flags || word.starts_with("-");
  }
  if (const auto* argument = has_flags ? nullptr : full_argument(last_verb(app)))
    return text::message(
        "usage.one_argument", locale,
        {{"name", argument->get_name(true)}, {"value", text::joined(argument->results())}, {"words", words}});
  return text::message("usage.not_taken", locale, {{"words", words}});
}

/// What a verb prints is its answer, and one line on stderr where it has none.
void silence_log() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) controller::log::configure(controller::log::format::text, controller::log::level::error, nowhere);
}

/// CLI11 takes the next word as the value of "--image=". An empty value that is a word of its own stays empty.
std::vector<std::string> with_empty_values(std::vector<std::string> words) {
  std::vector<std::string> out;
  bool has_flags = true;
  for (auto& word : words) {
    has_flags = has_flags && word != "--";
    const bool is_empty = has_flags && word.starts_with("--") && word.find('=') + 1 == word.size();
    if (is_empty) word.pop_back();
    out.push_back(std::move(word));
    if (is_empty) out.emplace_back();
  }
  return out;
}

/// A stream that is closed stays one to which nothing can be written: the next file or connection would take its number
/// and receive the answer.
void hold_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    (void)open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);  // the lowest number that is free
  }
}

bool runs_for_long(const std::vector<std::string>& words) {
  return !words.empty() && (words[0] == "controller" || words[0] == "agent" || words[0] == "console");
}

}  // namespace

void add_verbs(CLI::App& app, int& rc) {
  add_agent(app, rc);
  add_completion(app, rc);
  add_console(app, rc);
  add_controller(app, rc);
  add_explain(app, rc);
  add_inspect(app, rc);
  add_lint(app, rc);
  add_man(app, rc);
  add_render(app, rc);
  add_report(app, rc);
  add_simulate(app, rc);
  add_top(app, rc);
  add_uninstall(app, rc);
  add_verify(app, rc);
  add_version(app, rc);
}

namespace {

int run_verb(const std::string& called, std::vector<std::string> words) {
  CLI::App app{"Accelerators on Kubernetes: enrols nodes, rolls out device plugins, judges declarations.",
               "quartermaster"};
  app.set_version_flag("--version", version_line());
  app.require_subcommand(1);
  app.fallthrough(false);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage, 3 found problems.");

  int rc = 0;
  add_verbs(app, rc);
  words = command_of(called, std::move(words));
  if (!words.empty() && words[0] == completion_request) {
    std::cout << completions(app, {words.begin() + 1, words.end()});
    return 0;
  }
  words = verbs_first(app, std::move(words));
  if (!runs_for_long(words)) silence_log();
  const auto locale = language_asked(words);
  const auto named = path_of(app, words, locale);
  const auto refuse = [&](const std::string& reason) {
    std::cerr << "quartermaster: "
              << text::message("usage.see_help", locale, {{"problem", text::shown(reason, 1000)}, {"verb", named.path}})
              << "\n";
    return 2;
  };
  if (!named.problem.empty()) return refuse(named.problem);
  if (!words.empty() && words[0] == "controller") {
    std::vector<std::string> known;
    for (const auto* option : app.get_subcommand("controller")->get_options())
      known.push_back("--" + option->get_single_name());
    auto whole = with_config_file(std::move(words), known);
    if (!whole) {
      std::cerr << "quartermaster: " << words_of(whole.error(), locale) << "\n";
      return whole.error().key == "transport.config" ? 1 : 2;  // it could not be read
    }
    words = std::move(*whole);
  }
  words = with_empty_values(std::move(words));
  try {
    std::ranges::reverse(words);  // CLI11 takes them last first
    app.parse(std::move(words));
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::RequiredError& missing) {
    auto& verb = last_verb(app);
    const bool asks_for_verb = !verbs_below(verb).empty() && verb.get_subcommands().empty() && !takes_arguments(verb);
    if (!asks_for_verb) return refuse(usage_problem(missing.what(), locale));
    std::cerr << "quartermaster: " << text::message("usage.verb_missing", locale, {{"verb", named.path}}) << "\n"
              << list_of_verbs(verb);
    return 2;
  } catch (const CLI::ParseError& wrong) {
    return refuse(problem_of(app, wrong, locale));
  } catch (const std::exception& bug) {
    std::cerr << "quartermaster: internal error: " << bug.what() << "\n";
    return 1;
  }
  return rc;
}

}  // namespace

int run_program(const std::string& called, std::vector<std::string> words) {
  hold_closed_streams();
  outlive_size_limit();
  const auto locale = language_asked(words);
  const int rc = run_verb(called, std::move(words));
  std::cout.flush();
  if (std::cout) return rc;
  std::cerr << "quartermaster: " << text::message("usage.output_lost", locale) << "\n";
  return 1;
}

}  // namespace cli
