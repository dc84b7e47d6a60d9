#include "cli/explain/own_reasons.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::language;
using keys_by_name = std::multimap<std::string, std::string, std::less<>>;

constexpr std::string_view reason_table = "reason.";

/// Tables of findings, and the part of a row that says what it means.
struct code_table {
  std::string_view prefix, wrong;
};
constexpr std::array code_tables{code_table{"verify.", ".wrong"},          code_table{"lint.", ".wrong"},
                                 code_table{"declaration.", ".wrong"},     code_table{"scheduler_config.", ".wrong"},
                                 code_table{"preflight_cause.", ".found"}, code_table{"preflight.", ".title"}};

/// Sentences that others show: kube-scheduler, the kubelet and the API server.
constexpr std::array<std::string_view, 5> sentence_tables{"start.", "objection.", "engine.reason.", "engine.limit.",
                                                          "engine.kept_for"};

/// Messages whose keys objects of the API have as `cause`.
constexpr std::array<std::string_view, 6> message_tables{"status.", "intent.",     "nvml.",
                                                         "disk.",   "static_pod.", "fix_runtime."};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/// "unknownmode" of "UnknownMode" and of "unknown_mode".
std::string folded(std::string_view name) {
  auto out = text::lower_case(name);
  std::erase(out, '_');
  return out;
}

/// "node.stuck" of "reason.node.stuck.means"; empty: another key.
std::string_view row_of(std::string_view key, std::string_view prefix, std::string_view part) {
  if (key.size() < prefix.size() + part.size() || !key.starts_with(prefix) || !key.ends_with(part)) return {};
  key.remove_prefix(prefix.size());
  key.remove_suffix(part.size());
  return key;
}

const keys_by_name& reasons_by_name() {
  static const keys_by_name all = [] {
    keys_by_name out;
    for (const auto& entry : text::catalogue()) {
      const auto row = row_of(entry.key, reason_table, ".means");
      if (const auto dot = row.find('.'); dot != row.npos)
        out.emplace(folded(row.substr(dot + 1)), std::string(reason_table) + std::string(row));
    }
    return out;
  }();
  return all;
}

const keys_by_name& codes_by_name() {
  static const keys_by_name all = [] {
    keys_by_name out;
    for (const auto& entry : text::catalogue())
      for (const auto& [prefix, wrong] : code_tables) {
        // Of an objection `objection` says what is wrong; its row has the remedy alone.
        auto row = row_of(entry.key, prefix, wrong);
        if (row.empty()) row = row_of(entry.key, prefix, ".remedy");
        if (row.empty() || row.contains('.')) continue;
        const auto key = std::string(prefix) + std::string(row);
        const auto [begin, end] = out.equal_range(std::string(row));
        if (std::none_of(begin, end, [&](const auto& known) { return known.second == key; })) out.emplace(row, key);
      }
    return out;
  }();
  return all;
}

/// What stands between the placeholders of a pattern.
std::vector<std::string_view> fragments_of(std::string_view pattern) {
  std::vector<std::string_view> out;
  for (const auto name : text::placeholders_of(pattern)) {
    const auto begin = static_cast<std::size_t>(name.data() - pattern.data()) - 1;
    if (begin > 0) out.push_back(pattern.substr(0, begin));
    pattern.remove_prefix(begin + name.size() + 2);
  }
  if (!pattern.empty()) out.push_back(pattern);
  return out;
}

/// A sentence; what does not change in it sets it apart from others.
struct sentence {
  std::string_view key;
  std::vector<std::string_view> fragments;

  bool stands_in(std::string_view line) const {
    for (const auto fragment : fragments) {
      const auto match = line.find(fragment);
      if (match == line.npos) return false;
      line.remove_prefix(match + fragment.size());
    }
    return true;
  }
};

const std::vector<sentence>& sentences() {
  constexpr std::size_t least = 12, least_with_gaps = 25;
  static const std::vector<sentence> all = [] {
    std::vector<sentence> out;
    for (const auto& entry : text::catalogue()) {
      const auto begins = [&](std::string_view prefix) { return entry.key.starts_with(prefix); };
      if (std::ranges::none_of(sentence_tables, begins)) continue;
      for (const auto pattern : entry.words) {
        sentence made{entry.key, fragments_of(pattern)};
        std::size_t size = 0;
        for (const auto fragment : made.fragments) size += fragment.size();
        const bool has_gaps = made.fragments.size() != 1 || made.fragments.front().size() != pattern.size();
        const bool is_part = entry.key.starts_with("engine.limit.") && !has_gaps && !entry.key.contains(".short.");
        const auto enough = has_gaps && !entry.key.starts_with("start.") ? least_with_gaps : least;
        if (size >= enough && !is_part) out.push_back(std::move(made));
      }
    }
    return out;
  }();
  return all;
}

/// Two capitals with small letters between, as no word of a language has them.
bool has_parts(std::string_view word) {
  bool has_small = false;
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (is_upper(word[i]) && has_small) return true;
    has_small = has_small || (word[i] >= 'a' && word[i] <= 'z');
  }
  return false;
}

void add_named(const keys_by_name& table, std::string_view name, std::string_view sought, std::set<own_reason>& out) {
  const auto [begin, end] = table.equal_range(std::string(sought));
  for (auto match = begin; match != end; ++match) out.insert({std::string(name), match->second});
}

/// Events and rows of kube-schedulers put a word before it: "SchedulerPodsWait", "SchedulerConfigStopped".
void add_reason(std::string_view word, std::set<own_reason>& out) {
  const auto known = out.size();
  add_named(reasons_by_name(), word, folded(word), out);
  if (out.size() > known) return;
  for (const std::string_view prefix : {"SchedulerConfig", "Scheduler"}) {
    if (!word.starts_with(prefix) || word.size() == prefix.size()) continue;
    const auto [begin, end] = reasons_by_name().equal_range(folded(word.substr(prefix.size())));
    for (auto match = begin; match != end; ++match)
      if (match->second.starts_with("reason.scheduler.")) out.insert({std::string(word), match->second});
    if (out.size() > known) return;
  }
}

/// Whether a line calls the word at this place a reason.
bool is_called_reason(std::string_view line, std::size_t begin) {
  auto before = text::trimmed(line.substr(0, begin));
  while (!before.empty() && std::string_view("\"'=: ").contains(before.back())) before.remove_suffix(1);
  if (text::lower_case(before).ends_with("reason") || before.ends_with("phase")) return true;
  const bool is_event = before.ends_with("Warning") || before.ends_with("Normal");
  return is_event && text::lower_case(line).contains("accelerator");
}

/// "[plugin_missing]", as lint prints it, and "\"plugin_missing\"", as JSON has it.
bool is_in_marks(std::string_view line, std::size_t begin, std::size_t end) {
  if (begin == 0 || end >= line.size()) return false;
  return (line[begin - 1] == '[' && line[end] == ']') || (line[begin - 1] == '"' && line[end] == '"');
}

/// "status.node.untolerated"
bool is_message_key(std::string_view word) {
  const auto begins = [&](std::string_view prefix) { return word.starts_with(prefix); };
  return std::ranges::any_of(message_tables, begins) && !text::pattern_of(word, language::en).empty();
}

void read_line(std::string_view line, bool is_whole, std::set<own_reason>& out) {
  for (std::size_t begin = 0; begin < line.size();) {
    if (!is_word(line[begin])) {
      ++begin;
      continue;
    }
    auto end = begin;
    while (end < line.size() &&
           (is_word(line[end]) || (line[end] == '.' && end + 1 < line.size() && is_word(line[end + 1]))))
      ++end;
    const auto word = line.substr(begin, end - begin);
    const bool is_alone = is_whole && word.size() == line.size();
    if (word.contains('.')) {
      if (is_message_key(word)) out.insert({std::string(word), std::string(word)});
      end = begin + word.find('.');
    }
    const auto part = line.substr(begin, end - begin);
    if (is_upper(part.front()) && (has_parts(part) || is_alone || is_called_reason(line, begin))) add_reason(part, out);
    if (is_alone || is_in_marks(line, begin, end)) add_named(codes_by_name(), part, part, out);
    begin = end + 1;
  }
  for (const auto& sentence : sentences())
    if (sentence.stands_in(line)) out.insert({std::string(sentence.key), std::string(sentence.key)});
}

/// What a finding writes at this place: "<resource>". @param code of the row, where a word of its own says more
std::string gap_words(std::string_view name, std::string_view code, language locale) {
  const std::string place(name);
  for (const auto& key : {std::string(code) + "." + place, place})
    if (const auto words = text::pattern_of("reason.gap." + key, locale); !words.empty())
      return "<" + std::string(words) + ">";
  return "<" + place + ">";
}

/// The words of a row with the names of what fills them.
std::string general_words(std::string_view key, language locale) {
  const auto pattern = text::pattern_of(key, locale);
  const auto begin = key.find('.') + 1;
  const auto code = key.substr(begin, key.find('.', begin) - begin);
  std::vector<text::parameter> gaps;
  for (const auto name : text::placeholders_of(pattern)) gaps.push_back({name, gap_words(name, code, locale)});
  return text::filled(pattern, gaps);
}

std::string row_words(std::string_view key, std::string_view part, language locale) {
  return general_words(std::string(key) + std::string(part), locale);
}

/// "verify" of "verify.plugin_missing".
std::string table_of(std::string_view key) { return std::string(key.substr(0, key.find('.'))); }

reason_words words_of_reason(const own_reason& reason, language locale) {
  auto family = reason.key.substr(reason_table.size());
  family.resize(family.find('.'));
  auto act = row_words(reason.key, ".do", locale);
  if (act.empty()) act = text::message("reason.nothing", locale);
  return {text::message("reason.title", locale,
                        {{"name", reason.name}, {"origin", text::message("reason.of." + family, locale)}}),
          row_words(reason.key, ".means", locale), text::message("reason.look." + family, locale), std::move(act)};
}

}  // namespace

std::set<own_reason> own_reasons_in(std::string_view text) {
  std::set<own_reason> out;
  text = text::trimmed(text);
  const bool is_line = !text.contains('\n');
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    read_line(text::trimmed(text.substr(0, end)), is_line, out);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::string> own_names() {
  std::vector<std::string> out;
  for (const auto& [code, key] : codes_by_name())
    if (out.empty() || out.back() != code) out.push_back(code);
  for (const auto& entry : text::catalogue()) {
    const auto row = row_of(entry.key, reason_table, ".means");
    const auto dot = row.find('.');
    if (dot == row.npos) continue;
    std::string name;
    for (bool is_begin = true; const char c : row.substr(dot + 1)) {
      if (c != '_') name += is_begin ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      is_begin = c == '_';
    }
    if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
  }
  return out;
}

reason_words words_of(const own_reason& reason, language locale) {
  if (reason.key.starts_with(reason_table)) return words_of_reason(reason, locale);
  const auto table = table_of(reason.key);
  const auto title = text::message("reason.code", locale,
                                   {{"name", reason.name}, {"origin", text::message("reason.by." + table, locale)}});
  const auto look = text::message("reason.look.finding", locale);
  for (const auto* part : {".wrong", ".found", ".title"})
    if (auto means = row_words(reason.key, part, locale); !means.empty())
      return {title, std::move(means), look, row_words(reason.key, ".remedy", locale)};
  if (auto remedy = row_words(reason.key, ".remedy", locale); !remedy.empty())
    return {title, text::message("reason.objection", locale), look, std::move(remedy)};
  return {title, general_words(reason.key, locale), look, text::message("reason.sentence", locale)};
}

}  // namespace cli
