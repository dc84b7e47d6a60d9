#include "cli/flags/word_order.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace cli {
namespace {

/// The option of that name of the verb, or of one below it.
const CLI::Option* option_named(const CLI::App& verb, const std::string& name) {
  if (const auto* option = verb.get_option_no_throw(name)) return option;
  for (const auto* below : verb.get_subcommands(nullptr))
    if (const auto* option = option_named(*below, name)) return option;
  return nullptr;
}

/// Whether the word after this flag is its value. "-ojson" and "--output=json" have theirs.
bool takes_next(const CLI::App& verb, const std::string& flag) {
  if (flag.contains('=') || (!flag.starts_with("--") && flag.size() > 2)) return false;
  const auto* option = option_named(verb, flag);
  return option && option->get_items_expected_min() > 0;
}

/// `explain deploy/web` is `explain pod deploy/web`, and `explain node/a` is `explain node node/a`.
std::string_view verb_of_kind(std::string_view argument) {
  const auto slash = argument.find('/');
  if (slash == argument.npos) return {};
  const auto kind = argument.substr(0, slash);
  return kind == "node" || kind == "nodes" || kind == "no" ? "node" : "pod";
}

}  // namespace

std::vector<std::string> verbs_first(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const auto* verb = &app;
  std::vector<std::string> verbs, flags;
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--" && words[i] != "-"; ++i) {
    if (words[i].starts_with("-")) {
      const bool has_value = takes_next(*verb, words[i]) && i + 1 < words.size();
      flags.push_back(words[i]);
      if (has_value) flags.push_back(words[++i]);
      continue;
    }
    const auto choices = verb->get_subcommands(nullptr);
    const auto found = std::ranges::find_if(choices, [&](const auto* choice) { return choice->check_name(words[i]); });
    if (found == choices.end()) {
      const auto meant = verb->get_name() == "explain" ? verb_of_kind(words[i]) : std::string_view();
      if (!meant.empty()) verbs.emplace_back(meant);
      break;
    }
    verb = *found;
    verbs.push_back(words[i]);
  }
  verbs.insert(verbs.end(), flags.begin(), flags.end());
  verbs.insert(verbs.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return verbs;
}

}  // namespace cli
