#include "cli/controller/config_file.hpp"

#include <algorithm>
#include <sstream>

#include "cli/cluster/refusal.hpp"
#include "kube/config.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

}  // namespace

std::expected<std::vector<std::string>, text::phrase> flags_of_file(const std::string& file,
                                                                    const std::vector<std::string>& known,
                                                                    const std::vector<std::string>& overrides) {
  const auto text = kube::read_file(file);
  if (!text) return std::unexpected(phrase_of(text.error()));
  std::vector<std::string> out, seen;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto content = std::string(text::trimmed(line));
    if (content.empty() || content.starts_with('#')) continue;
    const auto wrong = [&](const char* key, std::string_view value) {
      return std::unexpected(text::phrase{
          key, {{"file", file + ":" + std::to_string(number)}, {"value", text::shown(std::string(value))}}});
    };
    const auto equals = content.find('=');
    if (equals == std::string::npos || equals == 0) return wrong("usage.config.no_flag", content);
    const auto name = std::string(text::trimmed(std::string_view(content).substr(0, equals)));
    const auto value = std::string(text::trimmed(std::string_view(content).substr(equals + 1)));
    const auto flag = "--" + name;
    if (flag == "--config" || std::ranges::find(known, flag) == known.end()) return wrong("usage.config.unknown", name);
    if (std::ranges::find(seen, flag) != seen.end()) return wrong("usage.config.twice", name);
    seen.push_back(flag);
    if (std::ranges::find(overrides, flag) == overrides.end()) out.push_back(flag + "=" + value);
  }
  return out;
}

std::expected<std::vector<std::string>, text::phrase> with_config_file(std::vector<std::string> words,
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
