#include "cli/controller/config_file.hpp"

#include <algorithm>
#include <sstream>

#include "kube/config.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

}  // namespace

kube::result<std::vector<std::string>> flags_of_file(const std::string& file, const std::vector<std::string>& known,
                                                     const std::vector<std::string>& overrides) {
  const auto text = kube::read_file(file);
  if (!text) return std::unexpected(text.error());
  std::vector<std::string> out, seen;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto content = std::string(text::trimmed(line));
    if (content.empty() || content.starts_with('#')) continue;
    const auto prefix = file + ":" + std::to_string(number) + ": ";
    const auto equals = content.find('=');
    if (equals == std::string::npos || equals == 0)
      return kube::config_error(prefix + "\"" + text::shown(content) + "\" is not flag=value");
    const auto name = std::string(text::trimmed(std::string_view(content).substr(0, equals)));
    const auto value = std::string(text::trimmed(std::string_view(content).substr(equals + 1)));
    const auto flag = "--" + name;
    if (flag == "--config" || std::ranges::find(known, flag) == known.end())
      return kube::config_error(prefix + "no flag \"" + text::shown(name) + "\"; see quartermaster controller --help");
    if (std::ranges::find(seen, flag) != seen.end()) return kube::config_error(prefix + name + " is set twice");
    seen.push_back(flag);
    if (std::ranges::find(overrides, flag) == overrides.end()) out.push_back(flag + "=" + value);
  }
  return out;
}

kube::result<std::vector<std::string>> with_config_file(std::vector<std::string> words,
                                                        const std::vector<std::string>& known) {
  std::string file;
  std::vector<std::string> overrides;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--config" && i + 1 < words.size()) file = words[i + 1];
    if (words[i].starts_with("--config=")) file = words[i].substr(9);
    if (words[i].starts_with("--")) overrides.push_back(flag_of(words[i]));
    if (words[i] == "-n") overrides.emplace_back("--namespace");
  }
  if (file.empty()) return words;
  auto more = flags_of_file(file, known, overrides);
  if (!more) return std::unexpected(std::move(more.error()));
  words.insert(words.begin() + (words.empty() ? 0 : 1), more->begin(), more->end());
  return words;
}

}  // namespace cli
