#include "cli/alerts/alerts.hpp"

#include <algorithm>

#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::string_view family = "Quartermaster";

/// What tells the alerts apart: without the family's name, which nearly all begin with.
std::string_view own_part(std::string_view name) {
  const bool has_family = text::lower_case(name.substr(0, family.size())) == text::lower_case(family);
  return has_family ? name.substr(family.size()) : name;
}

// Raw string literals that the build makes of docs/alerts.md and alerts.zh.md. Longer than every compiler has to take;
// ours does.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Woverlength-strings"
constexpr std::string_view alerts_page =
#include "alerts.md.inc"
    ;
constexpr std::string_view chinese_page =
#include "alerts.zh.md.inc"
    ;
#pragma clang diagnostic pop

/// What stands before a mark, which goes too; all where it is not there.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto end = text.find(mark);
  const auto out = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + mark.size());
  return out;
}

/// [agent.md](agent.md) is the file docs/agent.md.
std::string without_links(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto begin = text.find('['), middle = text.find("](", begin), end = text.find(')', middle);
    if (begin == text.npos || middle == text.npos || end == text.npos) return out + std::string(text);
    const auto words = text.substr(begin + 1, middle - begin - 1), target = text.substr(middle + 2, end - middle - 2);
    out += text.substr(0, begin);
    if (words != target) {
      out += text.substr(begin, end + 1 - begin);
    } else {
      out += "docs/" + std::string(words);
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

/// No blank stands between Chinese characters, nor where a line of them ended.
bool is_chinese(char byte) { return static_cast<unsigned char>(byte) >= 0x80; }

/// Markdown as a terminal shows it: a paragraph is one line, and a block of code has two blanks before each of its own.
std::vector<std::string> lines_of(std::string_view markdown) {
  std::vector<std::string> out;
  bool code = false, open = false;  // open: the last line goes on
  while (!markdown.empty()) {
    const auto line = cut(markdown, "\n");
    if (line.starts_with("```")) {
      code = !code;
      open = false;
    } else if (code) {
      out.push_back("  " + std::string(line));
    } else if (line.empty()) {
      open = false;
    } else if (open) {
      const bool is_joined = is_chinese(out.back().back()) && is_chinese(line.front());
      out.back() += (is_joined ? "" : " ") + std::string(line);
    } else {
      out.emplace_back(line);
      open = true;
    }
  }
  for (auto& line : out)
    if (!line.starts_with("  ")) line = without_links(line);
  return out;
}

/// What stands between the parts of a section.
struct page_marks {
  std::string_view severity, means, look, act;
};
constexpr page_marks english_marks{", ", "\n\n**Means:** ", "\n\n**Look:** ", "\n\n**Do:** "};
constexpr page_marks chinese_marks{"，", "\n\n**含义：** ", "\n\n**查看：** ", "\n\n**处理：** "};

std::vector<known_alert> read_page(std::string_view page, const page_marks& marks) {
  std::vector<known_alert> out;
  cut(page, "\n### ");
  while (!page.empty()) {
    auto section = cut(page, "\n### ");
    section = cut(section, "\n## ");
    auto& alert = out.emplace_back();
    alert.name = cut(section, "\n\n");
    alert.severity = cut(section, marks.severity);
    alert.delay = cut(section, marks.means);
    alert.means = lines_of(cut(section, marks.look));
    alert.look = lines_of(cut(section, marks.act));
    alert.act = lines_of(section);
  }
  return out;
}

}  // namespace

std::span<const known_alert> known_alerts(text::language language) {
  static const auto english = read_page(alerts_page, english_marks), chinese = read_page(chinese_page, chinese_marks);
  return language == text::language::zh ? chinese : english;
}

const known_alert* find_alert(std::string_view name, text::language language) {
  const auto wanted = text::lower_case(own_part(name));
  const auto all = known_alerts(language);
  const auto found = std::ranges::find_if(
      all, [&](const known_alert& alert) { return text::lower_case(own_part(alert.name)) == wanted; });
  return found == all.end() ? nullptr : &*found;
}

std::string_view nearest_alert(std::string_view name) {
  std::vector<std::string_view> own_parts;
  for (const auto& alert : known_alerts()) own_parts.push_back(own_part(alert.name));
  const auto near = text::nearest(own_part(name), own_parts);
  return near.empty() ? near : find_alert(near)->name;
}

}  // namespace cli
